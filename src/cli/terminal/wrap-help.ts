import type { Command } from "commander";
import { wrapLine } from "#base/text.ts";

/** The indent of a text below its term. */
const indent = " ".repeat(6);

/**
 * A command's help, wrapped between words. A long text beside a term continues below itself, or below the term if there
 * is no room beside it. An example command stays in one line, so that it can be copied.
 */
export function wrapHelp(text: string, columns: number): string {
  return joinParagraphs(text.split("\n"), columns)
    .flatMap((line) => (line.length <= columns ? [line] : wrapTerm(line, columns)))
    .join("\n");
}

/** Joins a paragraph that has an overlong line: wrapped by itself, that line would leave a short one in the middle. */
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
  const [beside] = /^ +\S.*?\S {2,}(?=\S)/.exec(line) ?? [];
  if (beside === undefined) return line.startsWith("  ") ? [line] : wrapLine(line, columns, "");
  const said = line.slice(beside.length);
  if (beside.length > columns / 2) return [beside.trimEnd(), ...wrapLine(indent + said, columns, indent)];
  return wrapLine(line, columns, " ".repeat(beside.length));
}

/** A command's name behind the names of its parents: `kcore get nodes`. */
export function commandPath(command: Command): string {
  return command.parent ? `${commandPath(command.parent)} ${command.name()}` : command.name();
}
