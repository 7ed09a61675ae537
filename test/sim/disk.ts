import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import type { Random } from "#support/random.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Swarm } from "./swarm.ts";

interface Waiting {
  readonly records: readonly JournalRecord[];
  onDurable?: () => void;
  onFailed?: (error: unknown) => void;
}

/**
 * A virtual disk below a journal: appends become durable in order, after a while, in groups. A crash loses the unsynced suffix, or keeps a
 * part of it. The torn last append is gone, since the real store truncates it.
 */
export class SimDisk {
  durable: JournalRecord[] = [];
  isFull = false;
  /** Called with each append that became durable, before the replica continues. */
  onDurable: (records: readonly JournalRecord[]) => void = () => undefined;
  onAppend: (records: readonly JournalRecord[]) => void = () => undefined;
  #waiting: Waiting[] = [];
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

  append(records: readonly JournalRecord[]): PromiseLike<void> {
    const entry: Waiting = { records };
    this.onAppend(records);
    this.#waiting.push(entry);
    this.#sync();
    const thenable = {
      // A thenable of our own: the continuation of an append runs within the event that made it durable.
      // eslint-disable-next-line unicorn/no-thenable
      then(onDurable: () => void, onFailed: (error: unknown) => void): void {
        entry.onDurable = onDurable;
        entry.onFailed = onFailed;
      },
    };
    return thenable as unknown as PromiseLike<void>;
  }

  #sync(): void {
    if (this.#isSyncing || this.#waiting.length === 0) return;
    this.#isSyncing = true;
    const group = this.#waiting.length;
    // Slow syncs come in spells.
    this.#isSlow = this.#swarm.slowSync && this.#random.chance(this.#isSlow ? 0.5 : 0.05);
    const isSlow = this.#isSlow;
    const generation = this.#generation;
    this.#scheduler.after(isSlow ? this.#random.between(50, 2500) : this.#random.between(0.1, 3), () => {
      if (generation !== this.#generation) return;
      this.#isSyncing = false;
      if (this.isFull) {
        // Later appends fail too, as in the real journal.
        for (const { onFailed } of this.#waiting.splice(0)) onFailed?.(new Error("ENOSPC"));
        return;
      }
      for (const entry of this.#waiting.splice(0, group)) {
        if (generation !== this.#generation) return;
        this.durable.push(...entry.records);
        this.onDurable(entry.records);
        entry.onDurable?.();
      }
      this.#sync();
    });
  }

  /** The machine dies: unsynced data is lost, or a part of it is found later. */
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
