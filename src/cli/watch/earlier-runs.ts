import { statSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { wait } from "#base/wait.ts";
import { RunStats } from "#tui/run-stats.ts";
import { PaceReading, paceEvents, type RunPace } from "#tui/time-left.ts";
import { scanRecord } from "../records/known-run.ts";
import { listRunIds, readHeader, runFolder, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";

/** The most earlier runs of the same kind to read. */
const maxRuns = 20;
/** The most headers in which to look for such runs. */
const maxHeaders = 200;

/** Milliseconds before the disk is used, so that the view can draw its first frames. */
const delayMs = 300;

/** The most bytes of records to read; the newest record is read in any case. */
const maxBytes = 64 << 20;

/** Earlier runs of the same kind, as far as they have been read. */
export interface EarlierRuns {
  /** The durations of steps in milliseconds (90th percentile), by `${module} ${title}`. */
  readonly durations: ReadonlyMap<string, number>;
  /** The paces of runs that did all their work, the newest first. */
  readonly paces: readonly RunPace[];
  /** Resolves when no further run will be read. Never rejects. */
  readonly done: Promise<void>;
}

/** Reads earlier runs of the same kind until the signal; unreadable ones are left out. `delay`: milliseconds before the first read. */
export function readEarlierRuns(own: RunFolder, signal: AbortSignal, delay = delayMs): EarlierRuns {
  const durations = new Map<string, number>();
  const paces: RunPace[] = [];
  const stats = new RunStats();
  const readRecord = async (folder: RunFolder): Promise<void> => {
    const reading = new PaceReading();
    for await (const event of scanRecord(folder, paceEvents)) {
      if (signal.aborted) return;
      reading.add(event);
      if (event.type === "step.finished" && event.duration !== undefined) stats.add(event);
    }
    if (reading.pace) paces.push(reading.pace);
  };
  const readAll = async (): Promise<void> => {
    await wait(delay, signal);
    const header = await readHeader(own);
    let [found, bytes] = [0, 0];
    for (const id of (await listRunIds(own.project)).reverse().slice(0, maxHeaders)) {
      if (signal.aborted || found >= maxRuns) return;
      const folder = runFolder(own.project, id);
      const other = id === own.id ? undefined : await readHeader(folder).catch(() => undefined);
      if (!other || !isAlike(other, header)) continue;
      bytes += statSync(folder.events, { throwIfNoEntry: false })?.size ?? 0;
      if (found > 0 && bytes > maxBytes) return;
      found += 1;
      await readRecord(folder).catch(() => undefined);
      for (const { module, title, usual } of stats.steps())
        if (usual !== undefined) durations.set(`${module} ${title}`, usual);
    }
  };
  return { durations, paces, done: readAll().catch(() => undefined) };
}

function isAlike(one: RunHeader, other: RunHeader): boolean {
  const kindOf = ({ what, dryRun, part }: RunHeader["request"]): unknown => [what, dryRun, part];
  return isDeepStrictEqual(kindOf(one.request), kindOf(other.request));
}
