/** A clock in milliseconds, and its timers; a simulated one in tests. */
export interface Timers {
  readonly now: () => number;
  /** Calls back after so many milliseconds; the returned function cancels the call. */
  readonly after: (milliseconds: number, callback: () => void) => () => void;
}

export const realTimers: Timers = {
  now: () => performance.now(),
  after: (milliseconds, callback) => {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};
