import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { RunEvent } from "#engine/events/event.ts";
import { ninthOfTen } from "#tui/run-stats.ts";
import { PaceReading, tellsPace, type Pace } from "#tui/time-left.ts";
import { scanRecord } from "../runs/known-run.ts";
import { listRunIds, readHeader, runFolder, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";

/** The most earlier runs of the same kind to read, and the most headers to look at for them. */
const RUNS = 20;
const HEADERS = 200;

/** Milliseconds for the view's first pictures before the disk is used. */
const PATIENCE = 300;

/** Most bytes of records to read; the newest one is read in any case. */
const MOST = 64 << 20;

/**
 * The durations of earlier runs of the same orchestration, for each step and in total; read bit by bit while the view
 * is on.
 */
export class EarlierRuns {
  /** Milliseconds (the ninth of ten) by `${module} ${title}`; filled while `read` goes on. */
  readonly durations = new Map<string, number>();
  /** The paces of runs that did all their work, the newest first; filled likewise. */
  readonly paces: Pace[] = [];
  readonly #folder: RunFolder;
  readonly #seen = new Map<string, number[]>();
  readonly #stop = new AbortController();
  readonly #patience: number;

  /** `patience`: milliseconds before the first look. */
  constructor(folder: RunFolder, patience = PATIENCE) {
    this.#folder = folder;
    this.#patience = patience;
  }

  /** Reads until the end or `stop`; unreadable runs are left out. Never rejects. */
  async read(): Promise<void> {
    await sleep(this.#patience, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    if (this.#stop.signal.aborted) return;
    const own = await readHeader(this.#folder).catch(() => undefined);
    if (!own) return;
    let [found, bytes] = [0, 0];
    const ids = await listRunIds(this.#folder.project);
    for (const id of ids.reverse().slice(0, HEADERS)) {
      if (this.#stop.signal.aborted || found >= RUNS) return;
      const folder = runFolder(this.#folder.project, id);
      const header = id === own.id ? undefined : await readHeader(folder).catch(() => undefined);
      if (!header || !isAlike(header, own)) continue;
      bytes += statSync(folder.events, { throwIfNoEntry: false })?.size ?? 0;
      if (found > 0 && bytes > MOST) return;
      found += 1;
      await this.#readRecord(folder).catch(() => undefined);
      this.#conclude();
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  async #readRecord(folder: RunFolder): Promise<void> {
    const reading = new PaceReading();
    for await (const event of scanRecord(folder, tellsPace)) {
      if (this.#stop.signal.aborted) return;
      reading.add(event);
      if (event.type === "step.finished") this.#takeDuration(event);
    }
    if (reading.pace) this.paces.push(reading.pace);
  }

  #takeDuration({ outcome, duration, module, title }: Extract<RunEvent, { type: "step.finished" }>): void {
    if (duration === undefined || (outcome !== "ok" && outcome !== "changed")) return;
    const key = `${module} ${title}`;
    const durations = this.#seen.get(key);
    if (durations) durations.push(duration);
    else this.#seen.set(key, [duration]);
  }

  #conclude(): void {
    for (const [key, durations] of this.#seen) this.durations.set(key, ninthOfTen(durations) ?? 0);
  }
}

function isAlike(one: RunHeader, other: RunHeader): boolean {
  return isDeepStrictEqual(one.request.what, other.request.what) && one.request.dryRun === other.request.dryRun;
}
