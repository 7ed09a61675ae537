import type { ApiClient } from "#api/client.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { ResultFormat } from "../options.ts";
import { drawTable, type Column } from "../terminal/columns.ts";
import { formatResult } from "../terminal/format-result.ts";
import { watchListing } from "./watch-listing.ts";

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

/** Shows a listing once, or again and again while it changes. */
export async function showListing<Item extends object>(
  cluster: Cluster,
  listing: Listing<Item>,
  { output, watch = false }: { readonly output: ResultFormat; readonly watch?: boolean },
): Promise<void> {
  if (watch) return watchListing(cluster, listing, output);
  const items = await cluster.ask(listing.fetch);
  process.stdout.write(
    formatResult(items, output, (wide) =>
      items.length === 0 ? `${listing.none}\n` : drawTable(listing.columns, items, { wide, now: Date.now() }),
    ),
  );
}
