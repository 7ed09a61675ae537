import { since, until } from "#base/units.ts";
import type { ColumnRoom } from "../ink/table.ts";
import type { TextRole } from "../ink/theme.ts";
import { concernOfExpiry, roleOf } from "./concern.ts";

/** One column of records, for the tables of `kcore get`, the dashboard and the browser. `now`: milliseconds since the epoch. */
export interface Column<Row> {
  readonly title: string;
  /** The value as text; empty for a row without a value. */
  readonly cell: (row: Row, now: number) => string;
  /** In `kcore get` only with `-o wide`. */
  readonly wide?: true;
  /** Only on the dashboard and in the browser. */
  readonly live?: true;
  /** The room on the dashboard; absent: neither the dashboard nor the browser has the column. */
  readonly room?: ColumnRoom;
  /** On the dashboard and in the browser only if a row has a value. */
  readonly ifAny?: true;
  /** The text on the dashboard and in the browser, if it differs: ages count in steps there. */
  readonly onScreen?: (row: Row, now: number) => string;
  readonly role?: TextRole | ((row: Row, now: number) => TextRole);
  /** Shares of 0 to 1, which the dashboard draws before the text. */
  readonly graph?: (row: Row) => readonly number[];
}

/** A column of ages. `time`: a time in ISO 8601, empty without one. */
export function ageColumn<Row>(
  title: string,
  time: (row: Row) => string,
  { room, role = "muted" }: Pick<Column<Row>, "room" | "role"> = {},
): Column<Row> {
  return {
    title,
    cell: (row, now) => since(time(row), now),
    onScreen: (row, now) => coarseSince(time(row), now),
    role,
    ...alignRight(room),
  };
}

/** A column of the time left until an expiry in ISO 8601; a short time is coloured. */
export function expiryColumn<Row>(
  title: string,
  time: (row: Row) => string | undefined,
  room?: ColumnRoom,
): Column<Row> {
  const role = (row: Row, now: number): TextRole => {
    const concern = concernOfExpiry(time(row), now);
    return concern === 2 ? "muted" : roleOf(concern);
  };
  return { title, cell: (row, now) => until(time(row) ?? "", now), role, ...alignRight(room) };
}

/** A column of numbers that should be zero; any other number is a warning. */
export function countColumn<Row>(
  title: string,
  count: (row: Row) => number | undefined,
  room?: ColumnRoom,
): Column<Row> {
  const role = (row: Row): TextRole => (count(row) === 0 ? "muted" : "warning");
  return { title, cell: (row) => String(count(row) ?? ""), role, ...alignRight(room) };
}

function alignRight(room: ColumnRoom | undefined): { readonly room?: ColumnRoom } {
  return room ? { room: { ...room, align: "right" } } : {};
}

/** The age of a time in ISO 8601; below two minutes in steps of five seconds, so that heartbeats do not make the screen flicker. */
export function coarseSince(time: string, now: number): string {
  const age = now - Date.parse(time);
  if (time === "" || age >= 120_000) return since(time, now);
  return age < 5000 ? "<5s" : `${Math.floor(age / 5000) * 5}s`;
}
