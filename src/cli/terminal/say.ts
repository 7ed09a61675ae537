/** Tells a person something beside the result. */
export type Say = (text: string) => void;

/** Says it on stderr: where nothing is drawn anew at a terminal. */
export function toStderr(text: string): void {
  process.stderr.write(`${text}\n`);
}
