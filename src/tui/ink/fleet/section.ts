import type { Column } from "../table.ts";
import type { Line } from "../text.ts";
import type { Role, Theme } from "../theme.ts";
import type { FleetSnapshot } from "./snapshot.ts";
import type { SectionName } from "./fleet-ui.ts";

/** How much a row wants an operator's eye: failed, look here, in order, put aside. */
export type Concern = 0 | 1 | 2 | 3;

export interface DrawOptions {
  readonly theme: Theme;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A kind of row of the dashboard: what it is called, how it is ordered, searched, shown and opened. */
export interface Section<Row> {
  readonly name: SectionName;
  readonly title: string;
  /** What is said where there is none. */
  readonly none: string;
  readonly rows: (snapshot: FleetSnapshot) => readonly Row[];
  readonly key: (row: Row) => string;
  readonly dc: (row: Row) => string | undefined;
  /** What a search looks at. */
  readonly text: (row: Row) => string;
  readonly concern: (row: Row, at: number) => Concern;
  /** After the first, which is by concern and then by the second. */
  readonly orders: readonly Order<Row>[];
  readonly columns: (options: DrawOptions) => readonly Column<Row>[];
  /** A row's own page: its name and what is known of it. */
  readonly open: (row: Row, snapshot: FleetSnapshot, options: DrawOptions & { readonly width: number }) => Page;
  /** The command that tells more, to be copied. */
  readonly command: (row: Row, now: number) => string;
}

export interface Order<Row> {
  readonly name: string;
  readonly by: (row: Row) => string | number;
}

export interface Page {
  readonly title: string;
  readonly lines: readonly Line[];
}

const roles: Readonly<Record<Concern, Role>> = { 0: "failed", 1: "warning", 2: "ok", 3: "muted" };

export function roleOf(concern: Concern): Role {
  return roles[concern];
}
