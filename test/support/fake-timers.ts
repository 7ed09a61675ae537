import type { Timers } from "#base/timers.ts";

/** A clock that stands still until it is moved. */
export class FakeTimers implements Timers {
  #now = 0;
  #waiting: { readonly at: number; readonly callback: () => void }[] = [];

  readonly now = (): number => this.#now;

  readonly after = (milliseconds: number, callback: () => void): (() => void) => {
    const timer = { at: this.#now + milliseconds, callback };
    this.#waiting.push(timer);
    return () => (this.#waiting = this.#waiting.filter((other) => other !== timer));
  };

  /** The number of timers that are set. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Moves the clock without calling timers, as work does that blocks the event loop. */
  spend(milliseconds: number): void {
    this.#now += milliseconds;
  }

  /** Moves the clock, and calls due timers at their times. */
  pass(milliseconds: number): void {
    const end = this.#now + milliseconds;
    for (;;) {
      const [next] = this.#waiting.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (!next) break;
      this.#waiting = this.#waiting.filter((other) => other !== next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
    }
    this.#now = end;
  }
}
