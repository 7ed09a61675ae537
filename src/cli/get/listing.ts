import type { ApiClient } from "#api/client.ts";
import type { Column } from "../terminal/columns.ts";

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
