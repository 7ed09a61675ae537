import { setTimeout as sleepFor } from "node:timers/promises";

/** The pauses and limits of `poll` and `retry`. */
export interface Waiting {
  /** Milliseconds between two calls. */
  readonly everyMs: number | (() => number);
  /** No call begins after so many milliseconds; by default calls repeat until the signal. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Clock and sleep of a test. */
  readonly now?: () => number;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

/**
 * Calls `look` repeatedly, at least once, until it returns neither false nor undefined; returns undefined once the time is up.
 * @throws the signal's reason; an error of `look`
 */
export async function poll<Found>(
  look: () => Promise<Found | false | undefined> | Found | false | undefined,
  { everyMs, limitMs = Number.POSITIVE_INFINITY, signal, now = () => performance.now(), sleep = wait }: Waiting,
): Promise<Found | undefined> {
  const end = now() + limitMs;
  for (;;) {
    signal?.throwIfAborted();
    const found = await look();
    if (found !== undefined && found !== false) return found;
    const pause = typeof everyMs === "number" ? everyMs : everyMs();
    if (now() + pause > end) return undefined;
    await sleep(pause, signal);
  }
}

/** Repeats the work while `mayHelp` accepts its error. @throws the last error, once the time is up or `mayHelp` refuses it */
export async function retry<Result>(
  work: () => Promise<Result>,
  { mayHelp, ...waiting }: Waiting & { readonly mayHelp: (error: unknown) => boolean },
): Promise<Result> {
  let failure: unknown;
  const done = await poll(async () => {
    try {
      return { result: await work() };
    } catch (error) {
      if (!mayHelp(error)) throw error;
      failure = error;
      return undefined;
    }
  }, waiting);
  if (!done) throw failure;
  return done.result;
}

/** Sleeps. @throws the signal's reason */
export async function wait(ms: number, signal?: AbortSignal): Promise<void> {
  await sleepFor(ms, undefined, signal && { signal }).catch(() => signal?.throwIfAborted());
}

/** Pauses between failed tries. */
export interface Backoff {
  readonly next: () => number;
  /** After a success: the next pause is the shortest again. */
  readonly reset: () => void;
}

/** Doubles from `base` to `cap` milliseconds, with jitter, so that clients which lost the same server do not reconnect in step. */
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

/** Jitter: a tenth to all of the pause. Never less than a tenth: an immediate refusal must not become a busy loop. */
export function spread(milliseconds: number, random: () => number): number {
  return milliseconds * (0.1 + 0.9 * random());
}
