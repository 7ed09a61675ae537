import { statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { listRunIds, runFolder, type RunFolder } from "#engine/run/run-folder.ts";
import { recordRuns } from "#engine/run/run-trail.ts";
import type { CommonFlags } from "../options.ts";
import { whoAmI } from "../process/who.ts";
import { findProject } from "../project/find-project.ts";
import { summarizeRun } from "./run-summary.ts";

export interface PruneFlags extends CommonFlags, Limits {
  readonly dryRun?: boolean;
  readonly resumable?: boolean;
}

interface Limits {
  readonly keep?: number;
  /** Milliseconds: the age limit. */
  readonly olderThan?: number;
  /** The most bytes of all kept records together. */
  readonly maxSize?: number;
}

/** The default limits (docs/runs.md, Where the record is). */
const defaults = { keep: 200, olderThan: 90 * 86_400_000, maxSize: 1 << 30 };

interface Going {
  readonly going: readonly RunFolder[];
  /** Runs beyond the limits that can still be resumed. */
  readonly resumable: readonly RunFolder[];
}

/** `kcore runs prune`: removes the records of ended runs that are beyond the limits. */
export async function pruneRuns({ project, dryRun = false, resumable = false, ...limits }: PruneFlags): Promise<void> {
  const root = findProject(project);
  const found = await beyond(root, limits);
  const going = resumable ? [...found.going, ...found.resumable] : found.going;
  const left = resumable ? 0 : found.resumable.length;
  const more = left > 0 ? `${left} can still be resumed and stay; --resumable removes them too\n` : "";
  if (dryRun) {
    for (const { id } of going) process.stdout.write(`would remove ${id}\n`);
    process.stdout.write(`${going.length} would be removed\n${more}`);
    return;
  }
  await remove(root, going);
  process.stdout.write(`${going.length} removed\n${more}`);
}

/** Removes old records after a run, except those of runs that can be resumed. A failure to do so does not fail the run. */
export async function pruneEnded(project: string): Promise<void> {
  try {
    await remove(project, (await beyond(project, {})).going);
  } catch {
    // The disk may be full or read-only: the next run tries again.
  }
}

async function remove(project: string, going: readonly RunFolder[]): Promise<void> {
  // The audit entry comes first: without one, a missing record would look as if another program had removed it.
  if (going.length > 0)
    recordRuns(project, Date.now(), { type: "runs.pruned", who: whoAmI(), runs: going.map(({ id }) => id) });
  for (const { path } of going) await rm(path, { recursive: true, force: true });
}

/**
 * Runs beyond the limits. Any of the default limits suffices, but the newest run stays. Given `keep` and `olderThan`
 * must both be exceeded; `maxSize` suffices by itself.
 */
async function beyond(project: string, { keep, olderThan, maxSize }: Limits): Promise<Going> {
  const isDefault = keep === undefined && olderThan === undefined && maxSize === undefined;
  const isByCount = keep !== undefined || olderThan !== undefined;
  const now = Date.now();
  let bytes = 0;
  const isBeyond = (folder: RunFolder, index: number): boolean => {
    bytes += sizeOf(folder);
    const age = now - createdAt(folder);
    if (isDefault) return index > 0 && (index >= defaults.keep || age > defaults.olderThan || bytes > defaults.maxSize);
    const isOld = isByCount && index >= (keep ?? 0) && age > (olderThan ?? -Infinity);
    return isOld || bytes > (maxSize ?? Infinity);
  };
  const ids = await listRunIds(project);
  const folders = ids.reverse().map((id) => runFolder(project, id));
  const [going, resumable]: [RunFolder[], RunFolder[]] = [[], []];
  for (const folder of folders.filter(isBeyond).reverse()) {
    const summary = await summarizeRun(folder).catch(() => undefined);
    if (summary?.isOver === false) continue;
    const isOver = !summary || ["done", "refused"].includes(summary.state) || summary.header.request.dryRun;
    (isOver ? going : resumable).push(folder);
  }
  return { going, resumable };
}

/** Twice the record, because the nodes' logs repeat it. */
function sizeOf({ events }: RunFolder): number {
  return 2 * (statSync(events, { throwIfNoEntry: false })?.size ?? 0);
}

/** Taken from the run's id, because the run's header may be damaged. */
function createdAt({ id }: RunFolder): number {
  return Date.parse(id.replace(/^(....)(..)(..)-(..)(..)(..).*/, "$1-$2-$3T$4:$5:$6Z"));
}
