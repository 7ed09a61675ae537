import { cleanText } from "#engine/events/clean.ts";
import { takeColumns } from "#base/text.ts";

/**
 * Returns a function that draws lines on the terminal in place of the lines before. A last line counts the lines that the
 * screen has no room for. `above` is printed over the lines, and stays.
 */
export function createRedraw(
  stream: NodeJS.WriteStream = process.stdout,
): (lines: readonly string[], above?: string) => void {
  let shown = 0;
  return (texts, above) => {
    const { columns, rows } = stream;
    const all = texts.map((line) => takeColumns(line, columns));
    const lines = all.length < rows ? all : [...all.slice(0, rows - 2), `… and ${all.length - rows + 2} more`];
    stream.write(
      `${shown > 0 ? `\u001B[${shown}A\u001B[J` : ""}${above === undefined ? "" : `${cleanText(above)}\n`}${lines.map((line) => `${line}\n`).join("")}`,
    );
    shown = lines.length;
  };
}
