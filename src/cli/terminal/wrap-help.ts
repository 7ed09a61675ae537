import type { Command } from "commander";
import { wrapLine } from "#base/text.ts";

/** The indent of a text below its term. */
const indent = " ".repeat(6);

/**
 * A command's help, wrapped between words. A term's long text is wrapped beside the term, or below it if there is no room.
 * An example command stays in one line, so that it can be copied.
 */
export function wrapHelp(text: string, columns: number): string {
  return joinParagraphs(text.split("\n"), columns)
    .flatMap((line) => (line.length <= columns ? [line] : wrapTerm(line, columns)))
    .join("\n");
}

/** Joins the lines of a paragraph that has an overlong line, so that the paragraph is wrapped as a whole. */
function joinParagraphs(lines: readonly string[], columns: number): readonly string[] {
  const joined: string[] = [];
  for (const line of lines) {
    const last = joined.at(-1) ?? "";
    const goesOn = last.length > columns && /^\S/.test(last) && /^\S/.test(line);
    if (goesOn) joined[joined.length - 1] = `${last} ${line}`;
    else joined.push(line);
  }
  return joined;
}

function wrapTerm(line: string, columns: number): readonly string[] {
  const [term] = /^ +\S.*?\S {2,}(?=\S)/.exec(line) ?? [];
  if (term === undefined) return line.startsWith("  ") ? [line] : wrapLine(line, columns, "");
  const description = line.slice(term.length);
  if (term.length > columns / 2) return [term.trimEnd(), ...wrapLine(indent + description, columns, indent)];
  return wrapLine(line, columns, " ".repeat(term.length));
}

/** A command's name behind the names of its parents: `kcore get nodes`. */
export function commandPath(command: Command): string {
  return command.parent ? `${commandPath(command.parent)} ${command.name()}` : command.name();
}
