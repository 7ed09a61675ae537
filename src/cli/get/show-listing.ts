import type { Cluster } from "../cluster/open-cluster.ts";
import type { ResultFormat } from "../options.ts";
import { drawTable } from "../terminal/columns.ts";
import type { Listing } from "./listing.ts";
import { watchListing } from "./watch-listing.ts";
import { printResult } from "../terminal/format-result.ts";

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
