import type { Timers } from "#base/timers.ts";

/** Milliseconds between two frames that only bring news: ten a second (ADR 0405). */
export const newsInterval = 100;
/** Frames for news take at most one part in ten of the time: they come less often on a slow machine. */
const costFactor = 10;
/** Milliseconds that news wait at most. */
const slowest = 1000;
/** Milliseconds before a frame that answers a key: a held arrow key moves smoothly. */
export const keyInterval = 33;

/** Decides when to draw: as soon as the last frame is long enough ago, never twice for the same news. */
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

  /** Reports an event. */
  news(): void {
    this.#request(Math.max(newsInterval, Math.min(slowest, this.#cost * costFactor)));
  }

  /** Reports a key, or a change of the terminal. */
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
    // A frame that is due now still waits for the events of the same turn.
    const cancel = this.#timers.after(Math.max(0, at - this.#timers.now()), () => {
      this.#due = undefined;
      this.#last = this.#timers.now();
      this.#draw();
      this.#cost = this.#timers.now() - this.#last;
    });
    this.#due = { at, cancel };
  }
}
