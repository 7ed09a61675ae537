import type { RowWindow } from "./blocks.ts";
import { fitExactly, fitLine, lineWidth, padLine, span, type Line, type Span } from "./text.ts";
import type { Glyphs } from "./theme.ts";

/** The room of a column on the terminal. */
export interface ColumnRoom {
  /** The heading, where the title is too wide. */
  readonly short?: string;
  /** The minimum width. */
  readonly width: number;
  /** The column's share of the spare width; absent: the column does not grow. */
  readonly grow?: number;
  /** The column grows to its maximum before others get a share. */
  readonly first?: boolean;
  readonly max?: number;
  readonly align?: "right";
  /** On a narrow terminal, the column with the highest number is left out first; a column with 0 never is. */
  readonly drop: number;
}

/** One column of a table on the terminal. */
export interface ScreenColumn<Row> extends ColumnRoom {
  readonly title: string;
  readonly cell: (row: Row, width: number) => Line;
}

/** A column with its assigned width. */
export interface PlacedColumn<Row> extends ScreenColumn<Row> {
  readonly columns: number;
}

const gap = 1;

/** Chooses the columns that fit, and shares the spare width among these. */
export function placeColumns<Row>(columns: readonly ScreenColumn<Row>[], width: number): readonly PlacedColumn<Row>[] {
  let shown = [...columns];
  const needs = () => shown.reduce((sum, column) => sum + column.width, 0) + gap * (shown.length - 1);
  while (needs() > width && shown.length > 1) {
    const worst = shown.reduce((one, other) => (other.drop > one.drop ? other : one));
    if (worst.drop === 0) break;
    shown = shown.filter((column) => column !== worst);
  }
  let spare = Math.max(0, width - needs());
  const ahead = new Map<ScreenColumn<Row>, number>();
  for (const column of shown)
    if (column.first) {
      const extra = Math.min(spare, (column.max ?? Infinity) - column.width);
      ahead.set(column, extra);
      spare -= extra;
    }
  let shares = shown.reduce((sum, { grow = 0 }) => sum + grow, 0);
  return shown.map((column) => {
    const { grow = 0, max = Infinity } = column;
    const reserved = ahead.get(column);
    if (reserved !== undefined) return { ...column, columns: column.width + reserved };
    const extra = shares === 0 ? 0 : Math.min(Math.floor((spare * grow) / shares), max - column.width);
    spare -= extra;
    shares -= grow;
    return { ...column, columns: column.width + extra };
  });
}

export function headingLine<Row>(placed: readonly PlacedColumn<Row>[], glyphs: Glyphs): Line {
  return placed.flatMap(({ title, columns, align }, index) => [
    ...(index > 0 ? [span(" ".repeat(gap))] : []),
    span(fitExactly(title, columns, glyphs, align), "muted"),
  ]);
}

interface RowsProps<Row> {
  readonly window: RowWindow;
  readonly selected: number;
  readonly glyphs: Glyphs;
  /** The title of the column that stands out in the selected row. */
  readonly name: string;
  /** The shape before each row. */
  readonly mark?: (row: Row) => Span;
}

/** The rows of the window; a pointer stands before the selected one. */
export function rowLines<Row>(
  placed: readonly PlacedColumn<Row>[],
  rows: readonly Row[],
  { window, selected, glyphs, name, mark }: RowsProps<Row>,
): readonly Line[] {
  return rows.slice(window.top, window.end).map((row, index): Line => {
    const isSelected = window.top + index === selected;
    const cells = placed.flatMap((column, at) => {
      const cell = alignCell(column.cell(row, column.columns), column, glyphs);
      const isName = isSelected && column.title === name;
      return [
        ...(at > 0 ? [span(" ".repeat(gap))] : []),
        ...(isName ? cell.map(({ text }) => span(text, "selected")) : cell),
      ];
    });
    return [
      span(isSelected ? glyphs.pointer : " ", "accent"),
      span(" "),
      ...(mark ? [mark(row), span(" ")] : []),
      ...cells,
    ];
  });
}

function alignCell<Row>(cell: Line, { columns, align }: PlacedColumn<Row>, glyphs: Glyphs): Line {
  if (align !== "right") return padLine(cell, columns, glyphs);
  const fitted = fitLine(cell, columns, glyphs);
  return [span(" ".repeat(columns - lineWidth(fitted))), ...fitted];
}
