import { cleanLine } from "#engine/events/clean.ts";

/** Rows under a heading, columns aligned, two blanks between; ends with a line break. Cells hold no line breaks. */
export function formatTable(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [heading, ...rows].map((row) => row.map((cell) => cleanLine(cell)));
  const widths = heading.map((_, column) => Math.max(...lines.map((row) => row[column]?.length ?? 0)));
  return lines
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}
