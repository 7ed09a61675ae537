import { statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { listRunIds, runFolder, type RunFolder } from "#engine/run/run-folder.ts";
import { recordRuns } from "#engine/run/run-trail.ts";
import type { CommonFlags } from "../options.ts";
import { whoAmI } from "../process/who.ts";
import { findProject } from "../project/find-project.ts";
import { summarizeRun } from "./run-summary.ts";

export interface PruneFlags extends CommonFlags, PruneLimits {
  readonly dryRun?: boolean;
  readonly resumable?: boolean;
}

interface PruneLimits {
  readonly keep?: number;
  /** The age limit in milliseconds. */
  readonly olderThan?: number;
  /** The most bytes of all kept records together. */
  readonly maxSize?: number;
}

/** The default limits (docs/runs.md, Where the record is). */
const defaults = { keep: 200, olderThan: 90 * 86_400_000, maxSize: 1 << 30 };

/** Ended runs beyond the limits. */
interface PrunableRuns {
  readonly removable: readonly RunFolder[];
  /** Runs beyond the limits that can still be resumed. */
  readonly resumable: readonly RunFolder[];
}

/** `kcore runs prune`: removes the records of ended runs that are beyond the limits. */
export async function pruneRuns({ project, dryRun = false, resumable = false, ...limits }: PruneFlags): Promise<void> {
  const root = findProject(project);
  const found = await findPrunable(root, limits);
  const removable = resumable ? [...found.removable, ...found.resumable] : found.removable;
  const remaining = resumable ? 0 : found.resumable.length;
  const more = remaining > 0 ? `${remaining} can still be resumed and stay; --resumable removes them too\n` : "";
  if (dryRun) {
    for (const { id } of removable) process.stdout.write(`would remove ${id}\n`);
    process.stdout.write(`${removable.length} would be removed\n${more}`);
    return;
  }
  await remove(root, removable);
  process.stdout.write(`${removable.length} removed\n${more}`);
}

/** Removes old records after a run, but none of a run that can be resumed. Never rejects. */
export async function pruneEnded(project: string): Promise<void> {
  try {
    await remove(project, (await findPrunable(project, {})).removable);
  } catch {
    // The disk may be full or read-only: the next run tries again.
  }
}

async function remove(project: string, removable: readonly RunFolder[]): Promise<void> {
  // The audit entry comes first: without one, a missing record would look as if another program had removed it.
  if (removable.length > 0)
    recordRuns(project, Date.now(), { type: "runs.pruned", who: whoAmI(), runs: removable.map(({ id }) => id) });
  for (const { path } of removable) await rm(path, { recursive: true, force: true });
}

/**
 * Ended runs beyond the limits, oldest first. A run beyond one of the default limits counts, but never the newest run. A run must be
 * beyond both `keep` and `olderThan` if they are given; to be beyond a given `maxSize` is enough.
 */
async function findPrunable(project: string, { keep, olderThan, maxSize }: PruneLimits): Promise<PrunableRuns> {
  const isDefault = keep === undefined && olderThan === undefined && maxSize === undefined;
  const isByCount = keep !== undefined || olderThan !== undefined;
  const now = Date.now();
  let bytes = 0;
  const isBeyond = (folder: RunFolder, index: number): boolean => {
    bytes += recordBytes(folder);
    const age = now - createdAt(folder);
    if (isDefault) return index > 0 && (index >= defaults.keep || age > defaults.olderThan || bytes > defaults.maxSize);
    const isOld = isByCount && index >= (keep ?? 0) && age > (olderThan ?? -Infinity);
    return isOld || bytes > (maxSize ?? Infinity);
  };
  const ids = await listRunIds(project);
  const folders = ids.reverse().map((id) => runFolder(project, id));
  const [removable, resumable]: [RunFolder[], RunFolder[]] = [[], []];
  for (const folder of folders.filter(isBeyond).reverse()) {
    const summary = await summarizeRun(folder).catch(() => undefined);
    if (summary?.isOver === false) continue;
    const isOver = !summary || ["done", "refused"].includes(summary.state) || summary.header.request.dryRun;
    (isOver ? removable : resumable).push(folder);
  }
  return { removable, resumable };
}

/** The size of a run's folder: twice the record's, as the logs of nodes repeat the record. */
function recordBytes({ events }: RunFolder): number {
  return 2 * (statSync(events, { throwIfNoEntry: false })?.size ?? 0);
}

/** The run's start by its id, as the header may be damaged. */
function createdAt({ id }: RunFolder): number {
  return Date.parse(id.replace(/^(....)(..)(..)-(..)(..)(..).*/, "$1-$2-$3T$4:$5:$6Z"));
}
