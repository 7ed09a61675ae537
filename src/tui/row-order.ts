import type { NodeRow, Rank } from "./node-row.ts";

/** Which rows are shown. */
export type Filter = "all" | "failed" | "changed" | "running";

export interface OrderOptions {
  readonly filter: Filter;
  /** Text that must occur in the name, the step, the milestone or the reason; case does not matter. */
  readonly search: string;
  /** Rows that fit. When all do, only failures move: nothing jumps without need. */
  readonly height: number;
  /** This row keeps the place of a rank that it had when it was selected, so that it does not run away. */
  readonly held?: { readonly name: string; readonly rank: Rank };
}

/** The rows to show: failures first, and where not all fit what goes on before what waits and what is over. */
export function orderRows(
  rows: readonly NodeRow[],
  { filter, search, height, held }: OrderOptions,
): readonly NodeRow[] {
  const wanted = search.toLowerCase();
  const kept = rows.filter((row) => fits(row, filter) && (wanted === "" || mentions(row, wanted)));
  const groups: [NodeRow[], NodeRow[], NodeRow[], NodeRow[]] = [[], [], [], []];
  const allFit = kept.length <= height;
  for (const row of kept) {
    const rank = held?.name === row.name && row.rank > 0 ? held.rank : row.rank;
    groups[rank === 0 || !allFit ? rank : 1].push(row);
  }
  return groups.flat();
}

function fits(row: NodeRow, filter: Filter): boolean {
  switch (filter) {
    case "all":
      return true;
    case "failed":
      return row.rank === 0;
    case "changed":
      return row.changed > 0;
    case "running":
      return row.rank === 1;
  }
}

function mentions({ name, item, milestone, reason, state }: NodeRow, wanted: string): boolean {
  return [name, item?.title, item?.module, milestone, reason, state].some((text) =>
    text?.toLowerCase().includes(wanted),
  );
}
