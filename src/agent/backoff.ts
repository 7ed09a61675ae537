/** Waiting times between failed rounds: doubling from `base` to `cap` milliseconds, each with full jitter. */
export interface Backoff {
  readonly next: () => number;
  /** After a success: the next failure begins with the shortest wait again. */
  readonly reset: () => void;
}

/** Full jitter keeps a thousand agents from coming back in step after a controller's restart (replication.md, 3.11). */
export function createBackoff({
  base,
  cap,
  random,
}: {
  readonly base: number;
  readonly cap: number;
  readonly random: () => number;
}): Backoff {
  let failures = 0;
  return {
    next: () => {
      const limit = Math.min(cap, base * 2 ** Math.min(failures++, 30));
      // Never less than a tenth of it: a refusal that comes at once must not become a busy loop.
      return limit * (0.1 + 0.9 * random());
    },
    reset: () => {
      failures = 0;
    },
  };
}
