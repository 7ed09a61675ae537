/** Waiting times between failed rounds: doubling from `base` to `cap` milliseconds, each with full jitter. */
export interface Backoff {
  readonly next: () => number;
  /** After a success: the next failure begins with the shortest wait again. */
  readonly reset: () => void;
}

/**
 * How long an agent waits after a round that no controller answered; `interval` is that of its heartbeats, in milliseconds.
 * A node that was never in asks again soon, for somebody waits for it. One that was is one of many that lost the same
 * controllers: a thousand of them, beating every 15 s, come back with at most 200 connections a second however long the
 * controllers were away (F-27); beginning with a second instead of an interval made that 310.
 */
export function backoffOf(
  interval: number,
  random: () => number,
): { readonly arriving: Backoff; readonly returning: Backoff } {
  const cap = Math.min(30_000, 2 * interval);
  return {
    arriving: createBackoff({ base: Math.min(2_000, interval), cap, random }),
    returning: createBackoff({ base: Math.min(15_000, interval), cap, random }),
  };
}

/** Never less than a tenth of it: a refusal that comes at once must not become a busy loop. */
export function spread(milliseconds: number, random: () => number): number {
  return milliseconds * (0.1 + 0.9 * random());
}

/** Full jitter keeps a thousand agents from coming back in step after a controller's restart. */
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
    next: () => spread(Math.min(cap, base * 2 ** Math.min(failures++, 30)), random),
    reset: () => {
      failures = 0;
    },
  };
}
