import type { Timers } from "#base/timers.ts";

/** Fewest milliseconds between two frames that only bring news: ten frames a second (ADR 0405). */
export const newsInterval = 100;
/** The interval before a frame with news, as a multiple of the last frame's cost: up to `longestWait`, drawing takes a tenth of the time. */
const costFactor = 10;
/** The longest interval before a frame with news, in milliseconds. */
const longestWait = 1000;
/** Fewest milliseconds before a frame that answers a key: a held arrow key moves smoothly. */
export const keyInterval = 33;

/** Calls `draw` once for all requests since the last frame, as soon as that frame is long enough ago. */
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

  /** Asks for a frame because of an event. */
  news(): void {
    this.#request(Math.max(newsInterval, Math.min(longestWait, this.#cost * costFactor)));
  }

  /** Asks for a frame because of a key or a change of the terminal. */
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
