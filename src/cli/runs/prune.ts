import { rm } from "node:fs/promises";
import { isAlive } from "#engine/run/process-mark.ts";
import { listRunIds, readHeader, runFolder, type RunFolder } from "#engine/run/run-folder.ts";
import { recordRuns } from "#engine/run/run-trail.ts";
import type { CommonFlags } from "../options.ts";
import { whoAmI } from "../process/who.ts";
import { findProject } from "../project/find-project.ts";

export interface PruneFlags extends CommonFlags {
  readonly keep?: number;
  /** Milliseconds. */
  readonly olderThan?: number;
  readonly dryRun?: boolean;
}

/** How many records stay when nothing else is said. */
const KEEP = 50;

/** `kcore runs prune`: removes what is neither among the newest `--keep` nor younger than `--older-than`. */
export async function pruneRuns({ project, keep, olderThan, dryRun = false }: PruneFlags): Promise<void> {
  const root = findProject(project);
  const ids = await listRunIds(root);
  const kept = keep ?? (olderThan === undefined ? KEEP : 0);
  const before = olderThan === undefined ? Infinity : Date.now() - olderThan;
  const going: RunFolder[] = [];
  for (const id of ids.slice(0, Math.max(0, ids.length - kept))) {
    const folder = runFolder(root, id);
    if (await isEnded(folder, before)) going.push(folder);
  }
  if (dryRun) {
    for (const { id } of going) process.stdout.write(`would remove ${id}\n`);
    process.stdout.write(`${going.length} would be removed\n`);
    return;
  }
  // First: a record that is gone and of which this was not said was taken away.
  if (going.length > 0)
    recordRuns(root, Date.now(), { type: "runs.pruned", who: whoAmI(), runs: going.map(({ id }) => id) });
  for (const { path } of going) await rm(path, { recursive: true, force: true });
  process.stdout.write(`${going.length} removed\n`);
}

async function isEnded(folder: RunFolder, before: number): Promise<boolean> {
  // Without its header it is no run that anybody could use; its id tells when it began.
  const header = await readHeader(folder).catch(() => undefined);
  const created =
    header?.created ?? Date.parse(folder.id.replace(/^(....)(..)(..)-(..)(..)(..).*/, "$1-$2-$3T$4:$5:$6Z"));
  return created < before && !isAlive(header?.process);
}
