import { cleanText } from "#engine/events/clean.ts";
import { detectCi, escapeForCi } from "#tui/ci.ts";

/** Shows the operator a message beside the result. */
export type Say = (text: string) => void;

/** Writes a line to stderr, escaped so that quoted text controls no terminal and a CI finds no commands in it. */
export function toStderr(text: string): void {
  process.stderr.write(`${escapeForCi(detectCi(process.env), cleanText(text))}\n`);
}
