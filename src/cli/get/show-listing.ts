import type { Cluster } from "../cluster/open-cluster.ts";
import type { ResultFormat } from "../options.ts";
import { drawTable, type Column } from "../terminal/columns.ts";
import { printResult, formatOne } from "../terminal/format-result.ts";
import type { ApiClient } from "#api/client.ts";
import { redrawing } from "../terminal/redraw.ts";
import { toStderr, type Say } from "../terminal/say.ts";
import { followChanges } from "../cluster/follow.ts";

/** Shows a listing once, or again and again while it changes. */
export async function showListing<Item extends object>(
  cluster: Cluster,
  listing: Listing<Item>,
  { output, watch = false }: { readonly output: ResultFormat; readonly watch?: boolean },
): Promise<void> {
  if (watch) return watchListing(cluster, listing, output);
  const items = await cluster.ask(listing.fetch);
  printResult(items, output, (wide) =>
    items.length === 0 ? `${listing.none}\n` : drawTable(listing.columns, items, { wide, now: Date.now() }),
  );
}

/** A kind of thing that the cluster lists: how it is asked for and shown. */
export interface Listing<Item> {
  /** The items that are shown, in their order. */
  readonly fetch: (client: ApiClient) => Promise<readonly Item[]>;
  /** What stays the same of an item while it changes. */
  readonly key: (item: Item) => string;
  readonly columns: readonly Column<Item>[];
  /** What is said instead of a table without rows. */
  readonly none: string;
  /** Beginnings of the registers that it is made of, for `--watch`. */
  readonly registers: readonly string[];
}

/**
 * Shows a listing and what changes of it, until interrupted: on a terminal the table is drawn anew, else each changed
 * item gets one more row, line of JSON or document of YAML.
 */
export async function watchListing<Item extends object>(
  cluster: Cluster,
  listing: Listing<Item>,
  output: ResultFormat,
): Promise<void> {
  const stop = new AbortController();
  // Whoever read our output has seen enough.
  process.stdout.once("error", () => stop.abort());
  const isScreen = process.stdout.isTTY && (output === "table" || output === "wide");
  const { show, say } = isScreen ? redrawn(listing, output) : { show: appending(listing, output), say: toStderr };
  const options = { registers: listing.registers, fetch: listing.fetch, signal: stop.signal, say };
  // Ages grow without any change.
  for await (const items of followChanges(cluster, { ...options, ...(isScreen && { everyMs: 5000 }) })) show(items);
}

type Show<Item> = (items: readonly Item[]) => void;

function redrawn<Item>(listing: Listing<Item>, output: ResultFormat): { readonly show: Show<Item>; readonly say: Say } {
  const redraw = redrawing();
  let table: readonly string[] = [];
  return {
    show: (items) => redraw((table = tableOf(listing, items, output))),
    say: (text) => redraw(table, text),
  };
}

function appending<Item extends object>(listing: Listing<Item>, output: ResultFormat): Show<Item> {
  let before: ReadonlyMap<string, Item> | undefined;
  return (items) => {
    const now = new Map(items.map((item) => [listing.key(item), item]));
    const isChanged = (item: Item): boolean => {
      const earlier = before?.get(listing.key(item));
      return earlier === undefined || signatureOf(earlier) !== signatureOf(item);
    };
    const gone = [...(before?.values() ?? [])].filter((item) => !now.has(listing.key(item)));
    const text =
      output === "json" || output === "yaml"
        ? [...items.filter(isChanged), ...gone.map((item) => ({ gone: true, ...item }))]
            .map((item) => formatOne(item, output))
            .join("")
        : rowsOf(listing, { items, isChanged, gone, isFirst: before === undefined, output });
    before = now;
    if (text !== "") process.stdout.write(text);
  };
}

function rowsOf<Item>(
  listing: Listing<Item>,
  {
    items,
    isChanged,
    gone,
    isFirst,
    output,
  }: {
    readonly items: readonly Item[];
    readonly isChanged: (item: Item) => boolean;
    readonly gone: readonly Item[];
    readonly isFirst: boolean;
    readonly output: ResultFormat;
  },
): string {
  if (isFirst) return lines(tableOf(listing, items, output));
  const [, ...rows] = drawn(listing, items, output);
  const [, ...goneRows] = drawn(listing, gone, output);
  return lines([
    ...rows.filter((_, index) => {
      const item = items[index];
      return item !== undefined && isChanged(item);
    }),
    ...goneRows.map((row) => `${row}  (gone)`),
  ]);
}

function tableOf<Item>(listing: Listing<Item>, items: readonly Item[], output: ResultFormat): readonly string[] {
  return items.length === 0 ? [listing.none] : drawn(listing, items, output);
}

function drawn<Item>(listing: Listing<Item>, items: readonly Item[], output: ResultFormat): readonly string[] {
  return drawTable(listing.columns, items, { wide: output === "wide", now: Date.now() })
    .trimEnd()
    .split("\n");
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join("");
}

/** An item without its signs of life: a heartbeat is no change worth a line. */
function signatureOf(item: object): string {
  return JSON.stringify(item, (key, value: unknown) => (/^last[A-Z]/.test(key) ? undefined : value));
}
