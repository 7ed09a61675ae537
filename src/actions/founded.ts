import { rename } from "node:fs/promises";
import { join } from "node:path";
import { ifThere, isThere } from "#base/file.ts";
import type { Context } from "#pki/contexts.ts";
import { foundedMark, unfoundedMark } from "#pki/cluster.ts";
import type { ActionContext } from "#engine/orchestrate/action.ts";

/**
 * Whether this cluster has ever been, as far as this machine knows. A cluster is founded once: `create cluster` marks it as one
 * that is not founded yet, and the mark goes for good when a controller of it was seen ready. A context that an older kcore made has
 * no mark; there, a cluster with a controller counts as founded.
 */
export async function wasFounded({ folder, controllers }: Pick<Context, "folder" | "controllers">): Promise<boolean> {
  if (await isThere(join(folder, unfoundedMark))) return false;
  return controllers.length > 0 || (await isThere(join(folder, foundedMark)));
}

/** A controller is ready: the cluster exists from now on, even without its machines. A dry run notes nothing. */
export async function noteFounded(
  { folder }: Pick<Context, "folder">,
  { dryRun }: Pick<ActionContext, "dryRun">,
): Promise<void> {
  if (dryRun) return;
  // The mark has its new name already, or the context is older than the mark.
  await ifThere(rename(join(folder, unfoundedMark), join(folder, foundedMark)));
}
