import { createBackoff, type Backoff } from "#base/wait.ts";

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
