import type { WriteList } from "#api/schemas.ts";
import { parseEntry, type TrailEntry } from "#audit/chain.ts";
import { KcoreError } from "#errors/problem.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import type { ResultFormat } from "../options.ts";
import type { Column } from "#tui/columns/column.ts";
import { drawTable } from "../terminal/format-table.ts";
import { findTrails, type KnownTrail, type TrailFlags } from "./trails.ts";
import { printResult } from "../terminal/format-result.ts";

export interface ShowTrailsFlags extends TrailFlags {
  readonly output: ResultFormat;
  /** Milliseconds: older entries are left out. */
  readonly since?: number;
  readonly limit: number;
  /** A controller's id, or its beginning. */
  readonly origin?: string;
}

type NamedEntry = TrailEntry & { readonly trail: string };

const text = (value: unknown): string => (typeof value === "string" ? value : "");

const columns: readonly Column<NamedEntry>[] = [
  { title: "TIME", cell: ({ at }) => new Date(at).toISOString().replace(/\.\d+Z$/, "Z") },
  { title: "TRAIL", cell: ({ trail }) => trail },
  { title: "ENTRY", cell: ({ n }) => String(n), wide: true },
  { title: "WHO", cell: (entry) => text(entry["by"] ?? entry["who"]) },
  { title: "WHAT", cell: (entry) => text(entry["method"] ?? entry["type"]) },
  { title: "ABOUT", cell: (entry) => text(entry["target"] ?? entry["command"] ?? entry["run"]) },
  { title: "OUTCOME", cell: outcomeOf },
  { title: "RUN", cell: (entry) => text(entry["run"]), wide: true },
  { title: "FROM", cell: (entry) => text(entry["from"]), wide: true },
];

/** With a refused commit a pass of `kcore reconcile` finds the nodes in order with the commit before, so its first reason stands beside that. */
function outcomeOf({ outcome, reasons, away }: NamedEntry): string {
  const [reason] = text([reasons].flat()[0]).split("\n", 1);
  const missing = [away].flat().map(text).join(", ");
  return [text(outcome), missing && `without ${missing}`, reason].filter(Boolean).join("; ");
}

const writeColumns: readonly Column<WriteList["writes"][number]>[] = [
  { title: "TIME", cell: ({ at }) => at.replace(/\.\d+Z$/, "Z") },
  { title: "KEY", cell: ({ key }) => key },
  { title: "WHAT", cell: ({ isDeleted }) => (isDeleted ? "deleted" : "written") },
  { title: "TRANSACTION", cell: ({ dot }) => dot, wide: true },
];

/**
 * `kcore audit show`: prints the newest entries of all trails in the order of time; with `--origin` the keys that a controller wrote last.
 * An unreadable trail is reported on stderr.
 */
export async function showTrails({ output, since, limit, origin, ...flags }: ShowTrailsFlags): Promise<void> {
  const begin = since === undefined ? 0 : Date.now() - since;
  if (origin !== undefined) {
    const { ask } = await openCluster(flags);
    const { writes } = await ask((client) => client.call("listWrites", {}, { id: origin }));
    const last = newestOf(
      writes.filter(({ at }) => Date.parse(at) >= begin),
      limit,
    );
    const drawn = (wide: boolean): string =>
      last.length === 0
        ? `no key was last written by ${origin}\n`
        : drawTable(writeColumns, last, { wide, now: Date.now() });
    printResult(last, output, drawn);
    return;
  }
  const shown: NamedEntry[] = [];
  for (const trail of await findTrails(flags)) {
    for (const entry of await entriesOf(trail, begin, limit)) shown.push({ ...entry, trail: trail.name });
  }
  const newest = newestOf(
    shown.toSorted((a, b) => a.at - b.at),
    limit,
  );
  const draw = (wide: boolean): string =>
    newest.length === 0 ? "no entry yet\n" : drawTable(columns, newest, { wide, now: Date.now() });
  printResult(newest, output, draw);
}

/** The last `limit` items of a list; none for 0. */
export function newestOf<Item>(items: readonly Item[], limit: number): readonly Item[] {
  return limit === 0 ? [] : items.slice(-limit);
}

async function entriesOf({ name, lines }: KnownTrail, begin: number, limit: number): Promise<readonly TrailEntry[]> {
  const entries: TrailEntry[] = [];
  try {
    for await (const line of lines()) {
      const entry = parseEntry(line.text);
      if (!entry || entry.at < begin) continue;
      entries.push(entry);
      if (entries.length > 2 * limit) entries.splice(0, entries.length - limit);
    }
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    process.stderr.write(`${name}: ${error.message}\n`);
  }
  return entries.slice(-limit);
}
