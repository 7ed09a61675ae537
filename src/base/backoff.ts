/** Pauses between failed tries, in milliseconds. */
export interface Backoff {
  readonly next: () => number;
  /** Called after a success: the next pause is the shortest again. */
  readonly reset: () => void;
}

/**
 * Pauses that double from `base` to `cap` milliseconds, with jitter: clients that lost the same server must not reconnect in step
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

/** A random part of a pause, from `least` of it to all. The default, a tenth, keeps an immediate refusal from becoming a busy loop. */
export function spread(milliseconds: number, random: () => number, least = 0.1): number {
  return milliseconds * (least + (1 - least) * random());
}
