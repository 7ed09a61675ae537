import { stripVTControlCharacters } from "node:util";
import { wrapLine } from "#base/text.ts";

/** A line of a file and the mark below it: they must stay in their columns. */
const excerpt = /^\s*\d* \| /;

/**
 * A coloured line as lines of at most so many columns, broken between words; further lines have two more columns of indent. A
 * longer word stays whole, for it is a path or a command that an operator copies.
 */
export function wrapPainted(line: string, columns: number): readonly string[] {
  if (excerpt.test(stripVTControlCharacters(line))) return [line];
  return wrapLine(line, columns, `${/^ */.exec(line)?.[0] ?? ""}  `);
}
