import { rm } from "node:fs/promises";
import { isAlive } from "#engine/run/process-mark.ts";
import { listRunIds, readHeader, runFolder, type RunFolder } from "#engine/run/run-folder.ts";
import type { CommonFlags } from "../options.ts";
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
  let removed = 0;
  for (const id of ids.slice(0, Math.max(0, ids.length - kept))) {
    const folder = runFolder(root, id);
    if (!(await isEnded(folder, before))) continue;
    if (dryRun) process.stdout.write(`would remove ${id}\n`);
    else await rm(folder.path, { recursive: true, force: true });
    removed += 1;
  }
  process.stdout.write(dryRun ? `${removed} would be removed\n` : `${removed} removed\n`);
}

async function isEnded(folder: RunFolder, before: number): Promise<boolean> {
  // Without its header it is no run that anybody could use; its id tells when it began.
  const header = await readHeader(folder).catch(() => undefined);
  const created =
    header?.created ?? Date.parse(folder.id.replace(/^(....)(..)(..)-(..)(..)(..).*/, "$1-$2-$3T$4:$5:$6Z"));
  return created < before && !isAlive(header?.process);
}
