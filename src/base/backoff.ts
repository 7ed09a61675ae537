/** Pauses between failed tries. */
export interface Backoff {
  readonly next: () => number;
  /** After a success: the next pause is the shortest again. */
  readonly reset: () => void;
}

/**
 * Doubles from `base` to `cap` milliseconds, with jitter, so that clients which lost the same server do not reconnect in step
 * (Brooker, “Exponential backoff and jitter”, 2015).
 */
export function createBackoff({
  base,
  cap,
  random,
  least,
}: {
  readonly base: number | (() => number);
  readonly cap: number;
  readonly random: () => number;
  /** As for `spread`. */
  readonly least?: number;
}): Backoff {
  let failures = 0;
  const first = (): number => (typeof base === "number" ? base : base());
  return {
    next: () => spread(Math.min(cap, first() * 2 ** Math.min(failures++, 30)), random, least),
    reset: () => {
      failures = 0;
    },
  };
}

/** Jitter: from the part `least` of the pause to all of it. A tenth at least keeps an immediate refusal from becoming a busy loop. */
export function spread(milliseconds: number, random: () => number, least = 0.1): number {
  return milliseconds * (least + (1 - least) * random());
}
