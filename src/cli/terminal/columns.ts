import { formatTable } from "./format-table.ts";

/** One column of a table for people. */
export interface Column<Item> {
  readonly title: string;
  /** `now` in milliseconds, for ages. */
  readonly cell: (item: Item, now: number) => string;
  /** Only with `-o wide`. */
  readonly wide?: true;
}

/** The table of some items; an empty cell is shown as `-`, so that scripts can split rows at blanks. `wide`: all columns, in full width. */
export function drawTable<Item>(
  columns: readonly Column<Item>[],
  items: readonly Item[],
  { wide, now }: { readonly wide: boolean; readonly now: number },
): string {
  const shown = columns.filter((column) => wide || !column.wide);
  return formatTable(
    shown.map(({ title }) => title),
    items.map((item) => shown.map(({ cell }) => cell(item, now) || "-")),
    wide ? { columns: Infinity } : {},
  );
}
