import type { ApiClient } from "#api/client.ts";
import { followChanges } from "../cluster/follow.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { ResultFormat } from "../options.ts";
import type { Column } from "#tui/columns/column.ts";
import { drawTable, tableLines } from "../terminal/format-table.ts";
import { formatOne, printResult } from "../terminal/format-result.ts";
import { createRedraw } from "../terminal/redraw.ts";
import { toStderr, type Say } from "../terminal/say.ts";

/** A list of the cluster: how its items are read and shown. */
export interface Listing<Item> {
  /** Reads the items to show, in their order. */
  readonly fetch: (client: ApiClient) => Promise<readonly Item[]>;
  /** A key that stays the same while an item changes. */
  readonly key: (item: Item) => string;
  readonly columns: readonly Column<Item>[];
  /** Shown in place of a table without rows. */
  readonly none: string;
  /** Prefixes of the registers that the items are made of, for `--watch`. */
  readonly registers: readonly string[];
}

/**
 * Prints a listing once, with `watch` until interrupted. A terminal gets the table anew after each change; other outputs get a row, line of
 * JSON or document of YAML for each changed item.
 */
export async function showListing<Item extends object>(
  cluster: Cluster,
  listing: Listing<Item>,
  { output, watch = false }: { readonly output: ResultFormat; readonly watch?: boolean },
): Promise<void> {
  const { registers, fetch } = listing;
  if (!watch) {
    const items = await cluster.ask(fetch);
    return printResult(items, output, (wide) => tableOf(listing, items, wide));
  }
  const stop = new AbortController();
  // The reader of the pipe may close it (`kcore get nodes -w | head`).
  process.stdout.once("error", () => stop.abort());
  const isScreen = process.stdout.isTTY && (output === "table" || output === "wide");
  const { show, say } = isScreen ? onScreen(listing, output) : { show: inLines(listing, output), say: toStderr };
  // Ages on the screen grow without any change of the cluster.
  const options = { registers, fetch, signal: stop.signal, say, ...(isScreen && { everyMs: 5000 }) };
  for await (const items of followChanges(cluster, options)) show(items);
}

type Show<Item> = (items: readonly Item[]) => void;

function onScreen<Item>(
  listing: Listing<Item>,
  output: ResultFormat,
): { readonly show: Show<Item>; readonly say: Say } {
  const redraw = createRedraw();
  let table: readonly string[] = [];
  return {
    show: (items) => redraw((table = tableLines(tableOf(listing, items, output === "wide")))),
    say: (text) => redraw(table, text),
  };
}

function inLines<Item extends object>(listing: Listing<Item>, output: ResultFormat): Show<Item> {
  let before: ReadonlyMap<string, Item> | undefined;
  return (items) => {
    const earlier = before;
    before = new Map(items.map((item) => [listing.key(item), item]));
    const removed = [...(earlier?.values() ?? [])].filter((item) => !before?.has(listing.key(item)));
    const isChanged = (item: Item): boolean => {
      const known = earlier?.get(listing.key(item));
      return known === undefined || textWithoutHeartbeat(known) !== textWithoutHeartbeat(item);
    };
    if (output === "json" || output === "yaml") {
      const changed = [...items.filter(isChanged), ...removed.map((item) => ({ gone: true, ...item }))];
      process.stdout.write(changed.map((item) => formatOne(item, output)).join(""));
      return;
    }
    const [heading, ...rows] = tableLines(tableOf(listing, [...items, ...removed], output === "wide"));
    const changed = rows.flatMap((row, index) => {
      const item = items[index];
      return item === undefined ? `${row}  (gone)` : isChanged(item) ? row : [];
    });
    const lines = earlier === undefined ? [heading, ...changed] : changed;
    process.stdout.write(lines.map((line) => `${line}\n`).join(""));
  };
}

function tableOf<Item>({ columns, none }: Listing<Item>, items: readonly Item[], wide: boolean): string {
  return items.length === 0 ? `${none}\n` : drawTable(columns, items, { wide, now: Date.now() });
}

/** An item as JSON without fields such as `lastSeen`, since a heartbeat is no change to report. */
function textWithoutHeartbeat(item: object): string {
  return JSON.stringify(item, (key, value: unknown) => (/^last[A-Z]/.test(key) ? undefined : value));
}
