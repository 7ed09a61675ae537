import { stripVTControlCharacters } from "node:util";
import { wrapLine } from "#base/text.ts";

/** What must stay in its columns: a line of a file, and the mark below it. */
const excerpt = /^\s*\d* \| /;

/**
 * A line with colours in it as lines of at most so many columns, broken between words; those after the first stand two columns
 * further in. A word that is longer stays whole: it is a path or a command that somebody copies.
 */
export function wrapPainted(line: string, columns: number): readonly string[] {
  if (excerpt.test(stripVTControlCharacters(line))) return [line];
  return wrapLine(line, columns, `${/^ */.exec(line)?.[0] ?? ""}  `);
}
