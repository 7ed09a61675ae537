import { stripVTControlCharacters } from "node:util";
import { widthOf } from "#base/text.ts";

/** What must stay in its columns: a line of a file, and the mark below it. */
const excerpt = /^\s*\d* \| /;

/**
 * A line with colours in it as lines of at most so many columns, broken between words; those after the first stand two columns
 * further in. A word that is longer stays whole: it is a path or a command that somebody copies.
 */
export function wrapPainted(line: string, columns: number): readonly string[] {
  const width = (text: string) => widthOf(stripVTControlCharacters(text));
  if (width(line) <= columns || excerpt.test(stripVTControlCharacters(line))) return [line];
  const indent = `${/^ */.exec(line)?.[0] ?? ""}  `;
  const lines: string[] = [];
  let current = "";
  for (const word of line.split(/(?<=\S)(?= )/)) {
    if (current !== "" && width(current + word) > columns) {
      lines.push(current);
      current = indent + word.trimStart();
    } else current += word;
  }
  return [...lines, current];
}
