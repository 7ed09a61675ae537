import type { NodeRow, Rank } from "./node-row.ts";

/** A filter of rows, as the keys f, m and r set it. */
export type Filter = "all" | "failed" | "changed" | "running";

/** The orders of rows; failures come first in each. */
export const sorts = ["state", "name", "role", "dc", "time"] as const;
export type Sort = (typeof sorts)[number];

export interface OrderOptions {
  readonly filter: Filter;
  /** Words that must all fit: {@link wordTest}. */
  readonly search: string;
  readonly sort: Sort;
  readonly now: number;
  /** The number of rows that fit. If all do, only failures move: no row jumps without need. */
  readonly height: number;
  /** The selected row, which stays among rows of its rank at the time of the selection, until the row fails. */
  readonly held?: { readonly name: string; readonly rank: Rank };
}

/** The rows to show: failures first; if not all fit, running rows before waiting and ended ones. */
export function orderRows(
  rows: readonly NodeRow[],
  { filter, search, sort, now, height, held }: OrderOptions,
): readonly NodeRow[] {
  const tests = search
    .split(" ")
    .filter((word) => word !== "")
    .map(wordTest);
  const kept = rows.filter((row) => filters[filter](row) && tests.every((test) => test(row)));
  if (sort !== "state") return sortRows(kept, sort, now);
  const groups: [NodeRow[], NodeRow[], NodeRow[], NodeRow[]] = [[], [], [], []];
  const allFit = kept.length <= height;
  for (const row of kept) {
    const rank = held?.name === row.name && row.rank > 0 ? held.rank : row.rank;
    groups[rank === 0 || !allFit ? rank : 1].push(row);
  }
  return groups.flat();
}

const filters: Readonly<Record<Filter, (row: NodeRow) => boolean>> = {
  all: () => true,
  failed: ({ rank }) => rank === 0,
  changed: ({ changed }) => changed > 0,
  running: ({ rank }) => rank === 1,
};

type Test = (row: NodeRow) => boolean;

/**
 * The test for a word of a search; case does not count. `role:worker`, `dc:fra1`, `state:failed`, `name:n1` match from the start. Any other
 * word matches within name, step, module, milestone, reason, state, roles and datacenter. `!` before a word negates the test.
 */
export function wordTest(word: string): Test {
  const wanted = word.toLowerCase();
  if (wanted.length > 1 && wanted.startsWith("!")) {
    const test = wordTest(wanted.slice(1));
    return (row) => !test(row);
  }
  const [, kind = "", start = ""] = /^(role|dc|state|name):(.*)$/.exec(wanted) ?? [];
  const valuesOf = valuesByKind[kind];
  if (!valuesOf) return (row) => mentions(row, wanted);
  return (row) => valuesOf(row).some((value) => value.toLowerCase().startsWith(start));
}

/** The values of a row that a word such as `role:worker` is compared with, by the word's kind. */
const valuesByKind: Readonly<Record<string, (row: NodeRow) => readonly string[]>> = {
  role: ({ roles }) => roles,
  dc: ({ dc, isBastion }) => (isBastion ? [] : [dc]),
  state: ({ state }) => [state],
  name: ({ name }) => [name],
};

function mentions({ name, item, milestone, reason, state, roles, dc }: NodeRow, wanted: string): boolean {
  return [name, item?.title, item?.module, milestone, reason, state, dc, ...roles].some((text) =>
    text?.toLowerCase().includes(wanted),
  );
}

const { compare } = new Intl.Collator("en", { numeric: true });

function sortRows(rows: readonly NodeRow[], sort: Exclude<Sort, "state">, now: number): readonly NodeRow[] {
  const keyed = rows.map((row) => ({
    row,
    key: sortKey(row, sort),
    time: sort === "time" ? (row.time(now) ?? -1) : 0,
  }));
  keyed.sort(
    (a, b) =>
      Number(a.row.rank !== 0) - Number(b.row.rank !== 0) ||
      b.time - a.time ||
      // The keys are usually equal, and comparing them is expensive.
      (a.key === b.key ? 0 : compare(a.key, b.key)) ||
      compare(a.row.name, b.row.name),
  );
  return keyed.map(({ row }) => row);
}

function sortKey({ roles, dc }: NodeRow, sort: Exclude<Sort, "state">): string {
  if (sort === "role") return roles.join(",");
  return sort === "dc" ? dc : "";
}
