import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import type { Random } from "#support/random.ts";
import type { Append } from "../disk.ts";
import type { Scheduler } from "../scheduler.ts";

/** The moment at which the process dies: before or after its records are durable, or not at all. */
export type Fate = "before" | "after" | undefined;

/** The disk below a controller's journal: appends become durable in order, each after a while. A death leaves some of them. */
export class RolloutDisk {
  readonly records: JournalRecord[] = [];
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  #waiting: Append[] = [];
  #isWriting = false;
  #boot = 0;
  /** Called with each append right before it is durable. */
  onDurable: (records: readonly JournalRecord[]) => Fate = () => undefined;
  onDeath: () => void = () => undefined;

  constructor(scheduler: Scheduler, random: Random) {
    this.#scheduler = scheduler;
    this.#random = random;
  }

  append(records: readonly JournalRecord[]): Promise<void> {
    const append = { records, ...Promise.withResolvers<void>() };
    this.#waiting.push(append);
    this.#write();
    return append.promise;
  }

  #write(): void {
    if (this.#isWriting || this.#waiting.length === 0) return;
    this.#isWriting = true;
    const group = this.#waiting.length;
    this.#after(this.#random.between(1, 40), () => this.#complete(group));
  }

  /** The next `count` appends become durable, each in an event of its own: the process has applied one before the next is durable. */
  #complete(count: number): void {
    const append = count > 0 ? this.#waiting.shift() : undefined;
    if (!append) {
      this.#isWriting = false;
      return this.#write();
    }
    const fate = this.onDurable(append.records);
    if (fate !== "before") this.records.push(...append.records);
    if (fate !== undefined) return this.onDeath();
    append.resolve();
    this.#after(0, () => this.#complete(count - 1));
  }

  /** Schedules an event of the disk, which the death of its process cancels. */
  #after(ms: number, run: () => void): void {
    const boot = this.#boot;
    this.#scheduler.after(ms, () => {
      if (boot === this.#boot) run();
    });
  }

  /** The process is gone, with all pending appends. */
  crash(): void {
    this.#boot++;
    this.#isWriting = false;
    this.#waiting = [];
  }
}
