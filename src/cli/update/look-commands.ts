import type { UpdateSummary } from "#api/update-schemas.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import type { Listing } from "../get/listing.ts";
import { showListing } from "../get/show-listing.ts";
import type { ClusterFlags, ResultFormat } from "../options.ts";
import { formatResult } from "../terminal/format-result.ts";
import { getUpdate } from "./ask-updates.ts";
import { drawUpdate, updateColumns } from "./draw-update.ts";
import { followOne } from "./follow-command.ts";
import { nameOf, type NameFlags } from "./named-updates.ts";

export type LookFlags = ClusterFlags &
  NameFlags & { readonly watch?: boolean; readonly output: ResultFormat; readonly passphraseFile?: string };

const updateListing: Listing<UpdateSummary> = {
  // The newest first.
  fetch: async (client) =>
    (await client.call("listUpdates", {})).updates.toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1)),
  key: ({ name }) => name,
  columns: updateColumns,
  none: "no updates yet: kcore update cluster apply -f FILE",
  registers: ["update/"],
};

/** `kcore update cluster list`. */
export async function listUpdates({ output, watch = false, ...flags }: LookFlags): Promise<void> {
  await showListing(await openCluster(flags), updateListing, { output, watch });
}

/** `kcore update cluster get`. @throws KcoreError UPDATE_UNKNOWN */
export async function showUpdate(
  given: string | undefined,
  { filename, output, watch = false, ...flags }: LookFlags,
): Promise<void> {
  const name = await nameOf(given, filename ? { filename } : {});
  if (watch) return followOne(name, { output, ...flags });
  // What was signed says the same once more, for machines.
  const { signed: _, ...view } = await getUpdate(await openCluster(flags), name);
  process.stdout.write(formatResult(view, output, (wide) => drawUpdate(view, { wide, now: Date.now() })));
}
