/** Whether this is the long form of the hostile tests: `npm run test:hostile` sets `KCORE_HOSTILE=full`. */
export const isLongForm = process.env["KCORE_HOSTILE"] === "full";

/**
 * The number of tries of a hostile test, or its duration in milliseconds. `short` holds in every run, and takes seconds.
 * `long` holds in `npm run test:hostile`, which runs the files named `hostile.test.ts`.
 */
export function tries(short: number, long: number): number {
  return isLongForm ? long : short;
}

/** Prints a measurement for the table in docs/security.md, in the long form only. */
export function tellLongForm(text: string): void {
  if (isLongForm) console.log(`      ${text}`);
}
