import { open } from "node:fs/promises";
import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { RunEvent } from "#engine/events/event.ts";
import { parseEvent } from "#engine/events/recording.ts";
import { ninthOfTen } from "#tui/run-stats.ts";
import { PaceReading, tellsPace, type Pace } from "#tui/time-left.ts";
import { listRunIds, readHeader, runFolder, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";

/** The most earlier runs of the same kind to read, and the most headers to look at for them. */
const RUNS = 20;
const HEADERS = 200;

/** Milliseconds for the view's first pictures before the disk is used. */
const PATIENCE = 300;

/** The number of windows of a long record to read, spread over it, and their bytes. */
const WINDOWS = 8;
const WINDOW = 131_072;

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
    let found = 0;
    const ids = await listRunIds(this.#folder.project);
    for (const id of ids.reverse().slice(0, HEADERS)) {
      if (this.#stop.signal.aborted || found >= RUNS) return;
      const folder = runFolder(this.#folder.project, id);
      const header = id === own.id ? undefined : await readHeader(folder).catch(() => undefined);
      if (!header || !isAlike(header, own)) continue;
      found += 1;
      await this.#readRecord(folder.events).catch(() => undefined);
      this.#conclude();
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  async #readRecord(file: string): Promise<void> {
    const record = await open(file, "r");
    try {
      const { size } = await record.stat();
      const starts =
        size <= WINDOWS * WINDOW
          ? Array.from({ length: Math.ceil(size / WINDOW) }, (_, index) => index * WINDOW)
          : Array.from({ length: WINDOWS }, (_, index) => Math.floor((index * (size - WINDOW)) / (WINDOWS - 1)));
      const buffer = Buffer.alloc(WINDOW);
      const reading = new PaceReading();
      let [end, torn] = [0, ""];
      for (let next = starts.shift(); next !== undefined; next = starts.shift()) {
        const start = Math.max(next, end);
        const { bytesRead } = await record.read(buffer, 0, WINDOW, start);
        const gap = start - end;
        const lines = ((gap === 0 ? torn : "") + buffer.toString("utf8", 0, bytesRead)).split("\n");
        torn = lines.pop() ?? "";
        // A torn first line is no event.
        const events = lines.flatMap((line) => (tellsPace.test(line) ? (parseEvent(line) ?? []) : []));
        this.#take(events);
        reading.take(events, { bytes: bytesRead, gap });
        end = start + bytesRead;
        // The first event of a large fleet, which names each node in each stage, may be longer.
        if (lines.length === 0 && bytesRead > 0) starts.unshift(end);
        // The view draws and hears keys in between.
        await breathe();
        if (this.#stop.signal.aborted) return;
      }
      const { pace } = reading;
      if (pace) this.paces.push(pace);
    } finally {
      await record.close();
    }
  }

  #take(events: readonly RunEvent[]): void {
    for (const event of events) {
      if (event.type !== "step.finished" || event.duration === undefined) continue;
      if (event.outcome !== "ok" && event.outcome !== "changed") continue;
      const key = `${event.module} ${event.title}`;
      const durations = this.#seen.get(key);
      if (durations) durations.push(event.duration);
      else this.#seen.set(key, [event.duration]);
    }
  }

  #conclude(): void {
    for (const [key, durations] of this.#seen) this.durations.set(key, ninthOfTen(durations) ?? 0);
  }
}

function isAlike(one: RunHeader, other: RunHeader): boolean {
  return isDeepStrictEqual(one.request.what, other.request.what) && one.request.dryRun === other.request.dryRun;
}
