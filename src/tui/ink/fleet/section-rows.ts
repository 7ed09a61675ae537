import type { RowWindow } from "../blocks.ts";
import type { Concern } from "../../columns/concern.ts";
import { headingLine, placeColumns, rowLines, type ScreenColumn } from "../table.ts";
import { span, type Line, type Span } from "../text.ts";
import { concernMark, drawCell, pageLines } from "./cells.ts";
import { certificatesSection } from "./certificates-section.ts";
import { conflictsSection } from "./conflicts-section.ts";
import { controllersSection } from "./controllers-section.ts";
import { dcsSection } from "./dcs-section.ts";
import { freshFleetUi, type FleetUi, type SectionName } from "./fleet-ui.ts";
import { nodesSection } from "./nodes-section.ts";
import type { FleetDrawOptions, RowOrder, Section } from "./section.ts";
import type { FleetSnapshot } from "./snapshot.ts";
import { updatesSection } from "./updates-section.ts";

/** A section's rows of any kind, filtered and ordered. */
export interface SectionRows {
  readonly title: string;
  readonly none: string;
  /** The number of all rows, and that of each concern. */
  readonly total: number;
  readonly counts: readonly number[];
  /** The keys of the shown rows, in their order. */
  readonly keys: readonly string[];
  readonly order: string;
  readonly orders: number;
  /** The heading, and the rows in the window. */
  readonly lines: (window: RowWindow, selected: number, options: FleetDrawOptions & TableOptions) => readonly Line[];
  readonly page: (key: string, options: FleetDrawOptions & { readonly width: number }) => PageLines | undefined;
  readonly command: (key: string) => string | undefined;
}

interface PageLines {
  readonly title: string;
  readonly lines: readonly Line[];
}

interface TableOptions {
  readonly width: number;
  /** The data may be out of date: rows are drawn in grey. */
  readonly stale: boolean;
}

export type RowFilter = Pick<FleetUi, "search" | "trouble" | "places" | "dc">;

type Lister = (snapshot: FleetSnapshot, choice: RowFilter) => SectionRows;

interface RankedRows<Row> {
  readonly rows: readonly { readonly row: Row; readonly concern: Concern }[];
  readonly counts: readonly number[];
  /** The last choice and its rows: the same choice is sorted once for each snapshot. */
  chosen?: { readonly choice: string; readonly rows: readonly Row[]; readonly keys: readonly string[] };
}

function lister<Row>(section: Section<Row>): Lister {
  const known = new WeakMap<FleetSnapshot, RankedRows<Row>>();
  return (snapshot, choice) => {
    let prepared = known.get(snapshot);
    if (!prepared) {
      prepared = rankRows(section, snapshot);
      known.set(snapshot, prepared);
    }
    const { rows: all, counts } = prepared;
    const place = choice.places[section.name];
    // Ordered on demand: sections out of sight need only their counts.
    const chosen = () => filteredRows(section, prepared, choice);
    const find = (key: string): Row | undefined => all.find(({ row }) => section.key(row) === key)?.row;
    return {
      title: section.title,
      none: section.none,
      total: all.length,
      counts,
      get keys() {
        return chosen().keys;
      },
      order: orderName(section, place.sort),
      orders: section.orders.length + 1,
      lines: (window, selected, options) => tableLines(section, chosen().rows, { ...options, window, selected }),
      page: (key, options) => {
        const row = find(key);
        const page = row && section.open(row, snapshot, options);
        return page && { title: page.title, lines: pageLines(page, options.width) };
      },
      command: (key) => {
        const row = find(key);
        return row && section.command(row, snapshot.at);
      },
    };
  };
}

function filteredRows<Row>(section: Section<Row>, prepared: RankedRows<Row>, choice: RowFilter) {
  const { search, trouble, dc = "" } = choice;
  const { sort, reversed } = choice.places[section.name];
  const asked = JSON.stringify([search, trouble, dc, sort, reversed]);
  if (prepared.chosen?.choice !== asked) {
    const rows = filterRows(section, prepared, choice);
    prepared.chosen = { choice: asked, rows, keys: rows.map(section.key) };
  }
  return prepared.chosen;
}

function rankRows<Row>(section: Section<Row>, snapshot: FleetSnapshot): RankedRows<Row> {
  const rows = section.rows(snapshot).map((row) => ({ row, concern: section.concern(row, snapshot.at) }));
  const counts = [0, 0, 0, 0];
  for (const { concern } of rows) counts[concern] = (counts[concern] ?? 0) + 1;
  return { rows, counts };
}

function filterRows<Row>(section: Section<Row>, { rows }: RankedRows<Row>, choice: RowFilter): readonly Row[] {
  const { search, trouble, places, dc } = choice;
  const { sort, reversed } = places[section.name];
  const words = search.toLowerCase().split(" ").filter(Boolean);
  const order = section.orders[Math.max(0, sort - 1)] as RowOrder<Row>;
  const shown = rows.filter(({ row, concern }) => {
    if (trouble && concern > 1) return false;
    if (dc !== undefined && section.dc(row) !== undefined && section.dc(row) !== dc) return false;
    if (words.length === 0) return true;
    const text = section.text(row).toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const keyed = shown.map(({ row, concern }) => ({ row, concern, by: order.by(row), id: section.key(row) }));
  keyed.sort((a, b) => (sort === 0 ? a.concern - b.concern : 0) || compare(a.by, b.by) || compare(a.id, b.id));
  if (reversed) keyed.reverse();
  return keyed.map(({ row }) => row);
}

function compare(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function orderName<Row>({ orders }: Section<Row>, sort: number): string {
  return sort === 0 ? "concern" : (orders[sort - 1]?.name ?? "");
}

/** The columns of a section that have room, with their headings on a terminal. A shape for each row's concern stands before them. */
function columnsOf<Row>({ columns, concern }: Section<Row>, options: FleetDrawOptions): readonly ScreenColumn<Row>[] {
  const { theme, now } = options;
  return [
    { title: "", width: 1, drop: 0, cell: (row) => [concernMark(concern(row, now), theme)] },
    ...columns.flatMap((column): readonly ScreenColumn<Row>[] => {
      const { title, room } = column;
      return room ? [{ title: room.short ?? title, ...room, cell: (row) => drawCell(column, row, options) }] : [];
    }),
  ];
}

function tableLines<Row>(
  section: Section<Row>,
  rows: readonly Row[],
  {
    window,
    selected,
    width,
    stale,
    ...options
  }: FleetDrawOptions & TableOptions & { readonly window: RowWindow; readonly selected: number },
): readonly Line[] {
  const { glyphs } = options.theme;
  const placed = placeColumns(columnsOf(section, options), width - 2);
  const name = placed[1]?.title ?? "";
  const lines = rowLines(placed, rows, { window, selected, glyphs, name });
  const isKept = ({ text, role }: Span) => role === "selected" || text === glyphs.pointer;
  const greyed = (line: Line): Line => line.map((one) => (isKept(one) ? one : span(one.text, "muted")));
  return [[span("  "), ...headingLine(placed, glyphs)], ...(stale ? lines.map(greyed) : lines)];
}

const sections = {
  nodes: nodesSection,
  dcs: dcsSection,
  controllers: controllersSection,
  certificates: certificatesSection,
  conflicts: conflictsSection,
  updates: updatesSection,
} as const;

/** The listings of the dashboard's sections by their names. */
export const listers = Object.fromEntries(
  Object.values(sections).map((section) => [section.name, lister(section as Section<unknown>)]),
) as Readonly<Record<SectionName, Lister>>;

/** A section with all of its rows and columns, for a page or a pipe. */
export interface FleetTable {
  readonly name: SectionName;
  readonly title: string;
  readonly none: string;
  /** The first column has a shape and no heading. */
  readonly headings: readonly string[];
  readonly rows: readonly { readonly key: string; readonly cells: readonly Line[] }[];
}

/** All sections whole, in their first order. */
export function fleetTables(snapshot: FleetSnapshot, options: FleetDrawOptions): readonly FleetTable[] {
  return Object.values(sections).map((section) => wholeTable(section as Section<unknown>, snapshot, options));
}

/** The page of one row, and the command that shows more; undefined for an unknown row. */
export function fleetPage(
  snapshot: FleetSnapshot,
  section: string,
  key: string,
  options: FleetDrawOptions & { readonly width: number },
): (PageLines & { readonly command: string }) | undefined {
  if (!Object.hasOwn(listers, section)) return undefined;
  const listing = listers[section as SectionName](snapshot, freshFleetUi);
  const [page, command] = [listing.page(key, options), listing.command(key)];
  return page && command !== undefined ? { ...page, command } : undefined;
}

function wholeTable<Row>(section: Section<Row>, snapshot: FleetSnapshot, options: FleetDrawOptions): FleetTable {
  const { name, title, none, key } = section;
  const columns = columnsOf(section, options);
  const rows = filterRows(section, rankRows(section, snapshot), freshFleetUi);
  return {
    name,
    title,
    none,
    headings: ["", ...section.columns.flatMap((column) => (column.room ? [column.title] : []))],
    rows: rows.map((row) => ({ key: key(row), cells: columns.map(({ cell }) => cell(row, 200)) })),
  };
}
