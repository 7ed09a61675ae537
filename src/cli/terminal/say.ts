import { cleanText } from "#engine/events/clean.ts";
import { detectCi, escapeForCi } from "#tui/ci.ts";

/** Tells a person something beside the result. */
export type Say = (text: string) => void;

/** Says it on stderr, where nothing is drawn anew at a terminal; what it quotes drives no terminal, and speaks to no CI that reads it. */
export function toStderr(text: string): void {
  process.stderr.write(`${escapeForCi(detectCi(process.env), cleanText(text))}\n`);
}
