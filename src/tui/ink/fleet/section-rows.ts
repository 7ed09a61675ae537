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

/** The rows of one section, filtered and ordered. */
export interface SectionRows {
  readonly title: string;
  readonly emptyText: string;
  /** The number of all rows. */
  readonly total: number;
  /** The number of rows by concern. */
  readonly counts: readonly number[];
  /** The keys of the shown rows, in their order. */
  readonly keys: readonly string[];
  /** The name of the present order. */
  readonly order: string;
  /** The number of orders, with the one by concern. */
  readonly orderCount: number;
  /** The heading, and the rows in the window. */
  readonly lines: (window: RowWindow, selected: number, options: FleetDrawOptions & TableOptions) => readonly Line[];
  /** The page of a row; undefined for an unknown key. */
  readonly page: (key: string, options: FleetDrawOptions & { readonly width: number }) => PageLines | undefined;
  /** The next command for a row; undefined for an unknown key. */
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

/** The settings that decide which rows are shown, and in which order. */
export type RowFilter = Pick<FleetUi, "search" | "trouble" | "states" | "dc">;

type Lister = (snapshot: FleetSnapshot, filter: RowFilter) => SectionRows;

interface RankedRows<Row> {
  readonly rows: readonly { readonly row: Row; readonly concern: Concern }[];
  readonly counts: readonly number[];
  /** The rows of the last filter, because the same filter is applied in every frame. */
  last?: { readonly filter: string; readonly rows: readonly Row[]; readonly keys: readonly string[] };
}

function lister<Row>(section: Section<Row>): Lister {
  const known = new WeakMap<FleetSnapshot, RankedRows<Row>>();
  return (snapshot, filter) => {
    let ranked = known.get(snapshot);
    if (!ranked) {
      ranked = rankRows(section, snapshot);
      known.set(snapshot, ranked);
    }
    const { rows: all, counts } = ranked;
    const { sort } = filter.states[section.name];
    // Filtered on demand, because sections out of sight need only their counts.
    const filtered = () => filteredRows(section, ranked, filter);
    const find = (key: string): Row | undefined => all.find(({ row }) => section.key(row) === key)?.row;
    return {
      title: section.title,
      emptyText: section.emptyText,
      total: all.length,
      counts,
      get keys() {
        return filtered().keys;
      },
      order: orderName(section, sort),
      orderCount: section.orders.length + 1,
      lines: (window, selected, options) => tableLines(section, filtered().rows, { ...options, window, selected }),
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

function filteredRows<Row>(section: Section<Row>, ranked: RankedRows<Row>, filter: RowFilter) {
  const { search, trouble, dc = "" } = filter;
  const { sort, reversed } = filter.states[section.name];
  const key = JSON.stringify([search, trouble, dc, sort, reversed]);
  if (ranked.last?.filter !== key) {
    const rows = filterRows(section, ranked, filter);
    ranked.last = { filter: key, rows, keys: rows.map(section.key) };
  }
  return ranked.last;
}

function rankRows<Row>(section: Section<Row>, snapshot: FleetSnapshot): RankedRows<Row> {
  const rows = section.rows(snapshot).map((row) => ({ row, concern: section.concern(row, snapshot.at) }));
  const counts = [0, 0, 0, 0];
  for (const { concern } of rows) counts[concern] = (counts[concern] ?? 0) + 1;
  return { rows, counts };
}

function filterRows<Row>(section: Section<Row>, { rows }: RankedRows<Row>, filter: RowFilter): readonly Row[] {
  const { search, trouble, states, dc } = filter;
  const { sort, reversed } = states[section.name];
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

/** A column with the shape of each row's concern; then the section's columns that have room, with their short headings. */
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

/** The columns of a section that these rows need. */
function neededColumns<Row>({ columns }: Section<Row>, rows: readonly Row[], now: number): Section<Row>["columns"] {
  return columns.filter(({ room, ifAny, cell }) => room && (!ifAny || rows.some((row) => cell(row, now) !== "")));
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
  const columns = neededColumns(section, rows, options.now);
  const placed = placeColumns(columnsOf({ ...section, columns }, options), width - 2);
  const name = placed[1]?.title ?? "";
  const lines = rowLines(placed, rows, { window, selected, glyphs, name });
  const keepsColour = ({ text, role }: Span) => role === "selected" || text === glyphs.pointer;
  const greyed = (line: Line): Line => line.map((one) => (keepsColour(one) ? one : span(one.text, "muted")));
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

/** The functions that list a section's rows, by section. */
export const listers = Object.fromEntries(
  Object.values(sections).map((section) => [section.name, lister(section as Section<unknown>)]),
) as Readonly<Record<SectionName, Lister>>;

/** A section with all its rows, and all its columns that have room, for the browser or a pipe. */
export interface FleetTable {
  readonly name: SectionName;
  readonly title: string;
  readonly emptyText: string;
  /** The first heading is empty: the first column has shapes. */
  readonly headings: readonly string[];
  readonly rows: readonly { readonly key: string; readonly cells: readonly Line[] }[];
}

/** All sections with all rows, ordered by concern. */
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
  const { name, title, emptyText, key } = section;
  const rows = filterRows(section, rankRows(section, snapshot), freshFleetUi);
  const needed = neededColumns(section, rows, options.now);
  const columns = columnsOf({ ...section, columns: needed }, options);
  return {
    name,
    title,
    emptyText,
    headings: ["", ...needed.map((column) => column.title)],
    rows: rows.map((row) => ({ key: key(row), cells: columns.map(({ cell }) => cell(row, 200)) })),
  };
}
