import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import type { Random } from "#support/random.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Swarm } from "./swarm.ts";

/** Records on their way to a disk. */
export interface Append extends PromiseWithResolvers<void> {
  readonly records: readonly JournalRecord[];
}

/**
 * A virtual disk below a journal: appends become durable in order, after a while, in groups. A crash loses the unsynced suffix, or keeps a
 * part of it. The torn last append is gone, since the real store truncates it. Each append of a group has an event of its own, so the replica
 * has applied it before the next one is durable.
 */
export class SimDisk {
  durable: JournalRecord[] = [];
  isFull = false;
  /** Called with each append that became durable, before the replica continues. */
  onDurable: (records: readonly JournalRecord[]) => void = () => undefined;
  onAppend: (records: readonly JournalRecord[]) => void = () => undefined;
  #waiting: Append[] = [];
  #isSyncing = false;
  #isSlow = false;
  #generation = 0;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #swarm: Swarm;

  constructor(scheduler: Scheduler, random: Random, swarm: Swarm) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#swarm = swarm;
  }

  append(records: readonly JournalRecord[]): Promise<void> {
    const append = { records, ...Promise.withResolvers<void>() };
    this.onAppend(records);
    this.#waiting.push(append);
    this.#sync();
    return append.promise;
  }

  #sync(): void {
    if (this.#isSyncing || this.#waiting.length === 0) return;
    this.#isSyncing = true;
    const group = this.#waiting.length;
    // Slow syncs come in series.
    this.#isSlow = this.#swarm.slowSync && this.#random.chance(this.#isSlow ? 0.5 : 0.05);
    this.#after(this.#isSlow ? this.#random.between(50, 2500) : this.#random.between(0.1, 3), () => {
      if (!this.isFull) return this.#complete(group);
      this.#isSyncing = false;
      // Later appends fail too, as in the real journal.
      for (const { reject } of this.#waiting.splice(0)) reject(new Error("ENOSPC"));
    });
  }

  /** The next `count` appends become durable, one after the other. */
  #complete(count: number): void {
    const append = count > 0 ? this.#waiting.shift() : undefined;
    if (!append) {
      this.#isSyncing = false;
      return this.#sync();
    }
    this.durable.push(...append.records);
    this.onDurable(append.records);
    append.resolve();
    this.#after(0, () => this.#complete(count - 1));
  }

  /** Schedules an event of the disk, which a crash cancels. */
  #after(ms: number, run: () => void): void {
    const generation = this.#generation;
    this.#scheduler.after(ms, () => {
      if (generation === this.#generation) run();
    });
  }

  /** The machine dies: unsynced appends are lost, or the first of them are durable after all. */
  crash(): void {
    this.#generation++;
    this.#isSyncing = false;
    const kept = this.#random.chance(0.5) ? 0 : this.#random.below(this.#waiting.length + 1);
    for (const { records } of this.#waiting.splice(0).slice(0, kept)) {
      this.durable.push(...records);
      this.onDurable(records);
    }
  }

  /** Replaces the records so far by a snapshot; pending appends follow it. */
  replace(snapshot: Iterable<JournalRecord>): void {
    this.durable = [...snapshot];
  }
}
