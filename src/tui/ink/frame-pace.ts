/** Milliseconds between two frames that only bring news: ten a second (ADR 0405). */
export const newsInterval = 100;
/** Of the time at most one part in so many goes into news: on a slow or busy machine frames come less often. */
const restAfter = 10;
/** Milliseconds that news wait at most, however dear a frame is. */
const slowest = 1000;
/** Milliseconds between two frames of which one answers a key: a held arrow key moves smoothly. */
export const keyInterval = 33;

export interface Timers {
  readonly now: () => number;
  /** Calls back after so many milliseconds; gives what takes that back. */
  readonly after: (milliseconds: number, callback: () => void) => () => void;
}

/** Decides when to draw: at once if the last frame is long enough ago, else as soon as it is; never twice for the same. */
export class FramePace {
  readonly #draw: () => void;
  readonly #timers: Timers;
  #last = -Infinity;
  /** Milliseconds that the last frame took. */
  #cost = 0;
  #due: { readonly at: number; readonly cancel: () => void } | undefined;
  #closed = false;

  constructor(draw: () => void, timers: Timers) {
    this.#draw = draw;
    this.#timers = timers;
  }

  /** Something happened in the run. */
  news(): void {
    this.#request(Math.max(newsInterval, Math.min(slowest, this.#cost * restAfter)));
  }

  /** A key was pressed, or the terminal changed. */
  key(): void {
    this.#request(keyInterval);
  }

  close(): void {
    this.#closed = true;
    this.#due?.cancel();
    this.#due = undefined;
  }

  #request(interval: number): void {
    if (this.#closed) return;
    const at = Math.max(this.#last + interval, this.#timers.now());
    if (this.#due) {
      if (this.#due.at <= at) return;
      this.#due.cancel();
    }
    // Also a frame that is due now waits for the events of the same turn.
    const cancel = this.#timers.after(Math.max(0, at - this.#timers.now()), () => {
      this.#due = undefined;
      this.#last = this.#timers.now();
      this.#draw();
      this.#cost = this.#timers.now() - this.#last;
    });
    this.#due = { at, cancel };
  }
}

/** The real clock. */
export const realTimers: Timers = {
  now: () => performance.now(),
  after: (milliseconds, callback) => {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};
