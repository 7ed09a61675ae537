import type { ReplicaTimers } from "#controller/replica/replica-ports.ts";

interface Event {
  readonly at: number;
  readonly id: number;
  /** Undefined if the event was cancelled. */
  run: (() => void) | undefined;
}

/** Virtual time: events by (time, id) in a binary heap. */
export class Scheduler {
  readonly #heap: Event[] = [];
  #ids = 0;
  now = 0;
  executed = 0;

  /** Schedules an event; returns the function that cancels it. */
  after(ms: number, run: () => void): () => void {
    const event: Event = { at: this.now + Math.max(0, ms), id: this.#ids++, run };
    let index = this.#heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, this.#heap[parent] as Event)) break;
      this.#heap[index] = this.#heap[parent] as Event;
      index = parent;
    }
    this.#heap[index] = event;
    return () => {
      event.run = undefined;
    };
  }

  /** Resolves after so many virtual milliseconds. @throws the signal's reason */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const cancel = this.after(ms, () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      });
      const stop = (): void => {
        cancel();
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", stop, { once: true });
    });
  }

  /** The timers of one process. `inProcess` wraps their callbacks, so that none runs after the process has ended. */
  timers(inProcess: (run: () => void) => () => void): ReplicaTimers {
    return {
      after: (ms, run) => this.after(ms, inProcess(run)),
      soon: (run) => void this.after(0, inProcess(run)),
    };
  }

  /** Runs all events up to a time. Before each event, all promises that can settle do so; `afterEvent` is called after each event. */
  async runUntil(time: number, afterEvent: () => void = () => undefined): Promise<void> {
    await allPromises();
    for (let event = this.#next(time); event; event = this.#next(time)) {
      if (!event.run) continue;
      this.now = event.at;
      this.executed++;
      event.run();
      await allPromises();
      afterEvent();
    }
    this.now = time;
  }

  #next(time: number): Event | undefined {
    const first = this.#heap[0];
    if (!first || first.at > time) return undefined;
    this.#pop();
    return first;
  }

  #pop(): void {
    const last = this.#heap.pop() as Event;
    const size = this.#heap.length;
    if (size === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= size) break;
      if (child + 1 < size && isBefore(this.#heap[child + 1] as Event, this.#heap[child] as Event)) child++;
      if (!isBefore(this.#heap[child] as Event, last)) break;
      this.#heap[index] = this.#heap[child] as Event;
      index = child;
    }
    this.#heap[index] = last;
  }
}

/**
 * Resolves when no promise can continue, however long the chain: Node runs a tick that a promise requests only after all promises. So promises
 * settle in an order that the code alone decides, and a seed stays repeatable.
 */
export async function allPromises(): Promise<void> {
  await Promise.resolve();
  await new Promise<void>((resolve) => process.nextTick(resolve));
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.id < b.id);
}
