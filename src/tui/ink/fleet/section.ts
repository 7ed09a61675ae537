import type { Column } from "../../columns/column.ts";
import type { Concern } from "../../columns/concern.ts";
import type { TextRole, Theme } from "../theme.ts";
import type { FleetSnapshot } from "./snapshot.ts";
import type { SectionName } from "./fleet-ui.ts";

export interface FleetDrawOptions {
  readonly theme: Theme;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A kind of row of the dashboard: its name, orders, search, columns and page. */
export interface Section<Row> {
  readonly name: SectionName;
  readonly title: string;
  /** The text shown in place of rows if there is none. */
  readonly emptyText: string;
  readonly rows: (snapshot: FleetSnapshot) => readonly Row[];
  readonly key: (row: Row) => string;
  /** The row's datacenter; undefined: a filter by datacenter does not apply. */
  readonly dc: (row: Row) => string | undefined;
  /** The text in which a search looks for its words. */
  readonly text: (row: Row) => string;
  readonly concern: (row: Row, at: number) => Concern;
  /** The orders that `s` chooses after the first order, which is by concern. */
  readonly orders: readonly RowOrder<Row>[];
  readonly columns: readonly Column<Row>[];
  /** Makes a row's own page. */
  readonly open: (row: Row, snapshot: FleetSnapshot, options: FleetDrawOptions) => DetailPage;
  /** The next command for the row, which the key c copies. */
  readonly command: (row: Row, now: number) => string;
}

export interface RowOrder<Row> {
  readonly name: string;
  readonly by: (row: Row) => string | number;
}

export type DetailFact = readonly [label: string, value: string, role?: TextRole];

/** The page of a row: its name, its facts, and groups of further facts. An empty heading is a blank line. */
export interface DetailPage {
  readonly title: string;
  readonly facts: readonly DetailFact[];
  readonly groups?: readonly (readonly [heading: string, facts: readonly DetailFact[]])[];
}
