import { cleanLine } from "#engine/events/clean.ts";
import { padColumns, widthOf } from "#base/text.ts";
import type { Column } from "#tui/columns/column.ts";
import { wrapWords } from "#tui/ink/text.ts";

/** How a table is drawn. */
export interface TableStyle {
  /** Columns of the terminal; infinite for a file or a pipe. */
  readonly columns?: number;
  /** Colours the text of a cell in this column, counted from 0. */
  readonly paint?: (text: string, column: number) => string;
}

const gap = "  ";
/** The longest word that is not broken: ids, commits and addresses stay in one piece. */
const longestPiece = 40;

/** Columns of a stream's terminal; infinite for a file or a pipe. */
export function screenColumns({ isTTY, columns }: { readonly isTTY?: boolean; readonly columns?: number }): number {
  return isTTY ? columns || 80 : Infinity;
}

/**
 * Rows under a heading, columns aligned, two blanks between; ends with a line break. A narrow terminal first loses columns
 * without values; then long cells are wrapped; then the last columns go, and a last line names them.
 */
export function formatTable(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  { columns = screenColumns(process.stdout), paint = (text) => text }: TableStyle = {},
): string {
  const lines = [heading, ...rows].map((row) => heading.map((_, column) => cleanLine(row[column] ?? "")));
  const most = (measure: (cell: string) => number) =>
    heading.map((_, column) => lines.reduce((width, row) => Math.max(width, measure(row[column] ?? "")), 0));
  const widths = most(widthOf);
  const least = most((cell) =>
    cell.split(" ").reduce((width, word) => Math.max(width, Math.min(longestPiece, widthOf(word))), 0),
  );
  let shown = [...heading.keys()];
  const needs = (of: readonly number[]) =>
    shown.reduce((sum, column) => sum + (of[column] ?? 0), gap.length * (shown.length - 1));
  if (needs(widths) > columns)
    shown = shown.filter((column) => column === 0 || rows.some((row) => !["", "-"].includes(row[column] ?? "")));
  const dropped: string[] = [];
  while (shown.length > 1 && needs(least) > columns) dropped.unshift(heading[shown.pop() ?? 0] ?? "");
  while (needs(widths) > columns) {
    const widest = shown.filter((column) => (widths[column] ?? 0) > (least[column] ?? 0));
    const column = widest.toSorted((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))[0] ?? shown[0] ?? 0;
    widths[column] = Math.max(1, (widths[column] ?? 0) - 1);
    if (widths[column] === 1) break;
  }
  const drawn = lines.flatMap((row) => {
    const cells = shown.map((column) => wrapWords(row[column] ?? "", widths[column] ?? 0));
    const height = Math.max(...cells.map(({ length }) => length));
    return Array.from({ length: height }, (_, line) =>
      cells
        .map((cell, at) => {
          const text = cell[line] ?? "";
          const padded = padColumns(text, widths[shown[at] ?? 0] ?? 0);
          return (row === lines[0] ? text : paint(text, shown[at] ?? 0)) + padded.slice(text.length);
        })
        .join(gap)
        .trimEnd(),
    );
  });
  const rest = dropped.filter((title) => title.trim() !== "").join(", ");
  const note = rest === "" ? [] : wrapWords(`(no room for ${rest}: a wider terminal or -o json shows them)`, columns);
  return [...drawn, ...note].map((line) => `${line}\n`).join("");
}

/** A title and its value; without a value there is no line. */
export type TitledValue = readonly [title: string, value: string | undefined];

/** Values behind their titles, one a line; the values begin in column `width`. */
export function formatTitled(values: readonly TitledValue[], width: number): string {
  return values.map(([title, value]) => (value ? `${padColumns(title, width)}${cleanLine(value)}\n` : "")).join("");
}

/** Wraps a text to the terminal's width. */
export function wrapToScreen(text: string): string {
  return wrapWords(text, screenColumns(process.stdout)).join("\n");
}

/** The first sentence of a text, as lists show it. */
export function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s)/.exec(text)?.[0] ?? text;
}

/** The lines of a table or another text, without its end. */
export function tableLines(text: string): readonly string[] {
  return text.trimEnd().split("\n");
}

/** The table of some items; an empty cell is shown as `-`, so that scripts can split rows at blanks. `wide`: all columns, in full width. */
export function drawTable<Item>(
  columns: readonly Column<Item>[],
  items: readonly Item[],
  { wide, now }: { readonly wide: boolean; readonly now: number },
): string {
  const shown = columns.filter((column) => !column.live && (wide || !column.wide));
  return formatTable(
    shown.map(({ title }) => title),
    items.map((item) => shown.map(({ cell }) => cell(item, now) || "-")),
    wide ? { columns: Infinity } : {},
  );
}
