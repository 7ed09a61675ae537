import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import type { Random } from "#support/random.ts";
import type { Scheduler } from "../scheduler.ts";

/** The moment at which the process dies: before or after its records are durable, or not at all. */
export type Fate = "before" | "after" | undefined;

interface Entry {
  readonly records: readonly JournalRecord[];
  onDurable?: () => void;
}

/** The disk below a controller's journal: appends become durable in order, each after a while. A death leaves some of them. */
export class RolloutDisk {
  readonly records: JournalRecord[] = [];
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  #waiting: Entry[] = [];
  #isWriting = false;
  #boot = 0;
  /** Called with each append right before it is durable. */
  onDurable: (records: readonly JournalRecord[]) => Fate = () => undefined;
  onDeath: () => void = () => undefined;

  constructor(scheduler: Scheduler, random: Random) {
    this.#scheduler = scheduler;
    this.#random = random;
  }

  append(records: readonly JournalRecord[]): PromiseLike<void> {
    const entry: Entry = { records };
    this.#waiting.push(entry);
    this.#write();
    const thenable = {
      // A thenable of our own: the continuation of an append runs within the event that made it durable.
      // eslint-disable-next-line unicorn/no-thenable
      then(onDurable: () => void): void {
        entry.onDurable = onDurable;
      },
    };
    return thenable as unknown as PromiseLike<void>;
  }

  #write(): void {
    if (this.#isWriting || this.#waiting.length === 0) return;
    this.#isWriting = true;
    const boot = this.#boot;
    this.#scheduler.after(this.#random.between(1, 40), () => {
      if (boot !== this.#boot) return;
      this.#isWriting = false;
      for (const { records, onDurable } of this.#waiting.splice(0)) {
        const fate = this.onDurable(records);
        if (fate !== "before") this.records.push(...records);
        if (fate !== undefined) return this.onDeath();
        onDurable?.();
        if (boot !== this.#boot) return;
      }
      this.#write();
    });
  }

  /** The process is gone, with all pending appends. */
  crash(): void {
    this.#boot++;
    this.#isWriting = false;
    this.#waiting = [];
  }
}
