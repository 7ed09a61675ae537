import { cleanText } from "#engine/events/clean.ts";
import { takeColumns } from "#base/text.ts";

/**
 * Draws lines on the terminal in the place of the former ones; lines that do not fit on the screen are counted. `above`
 * is printed over them, and stays.
 */
export function redrawing(
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
