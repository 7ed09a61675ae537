import type { Timers } from "#base/timers.ts";

/** A clock that stands still until it is moved. */
export class FakeTimers implements Timers {
  #now = 0;
  #waiting: { readonly at: number; readonly callback: () => void }[] = [];

  readonly now = (): number => this.#now;

  readonly after = (milliseconds: number, callback: () => void): (() => void) => {
    const one = { at: this.#now + milliseconds, callback };
    this.#waiting.push(one);
    return () => (this.#waiting = this.#waiting.filter((other) => other !== one));
  };

  /** The number of timers that are set. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Moves the clock by the duration of the present work; no timer is called meanwhile. */
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
