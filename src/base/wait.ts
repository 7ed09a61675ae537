import { setTimeout as sleepFor } from "node:timers/promises";

export interface Waiting {
  /** Milliseconds between two looks. */
  readonly everyMs: number | (() => number);
  /** No look begins after so many milliseconds; without it looks go on until the signal. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** For tests, in the place of the real ones. */
  readonly now?: () => number;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

/**
 * Looks again and again, at least once, until a look finds something (neither false nor undefined); undefined once the time is up.
 * @throws the signal's reason; the error of a look
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

/** Does the work again as long as its error says that another try may help. @throws the last error, once the time is up or no try helps */
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

/** Lets time pass. @throws the signal's reason */
export async function wait(ms: number, signal?: AbortSignal): Promise<void> {
  await sleepFor(ms, undefined, signal && { signal }).catch(() => signal?.throwIfAborted());
}

/** Pauses between failed tries. */
export interface Backoff {
  readonly next: () => number;
  /** After a success: the next pause is the shortest again. */
  readonly reset: () => void;
}

/** Doubles from `base` to `cap` milliseconds, with jitter, so that many that lost the same server do not come back in step. */
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

/** Never less than a tenth: a refusal that comes at once must not become a busy loop. */
export function spread(milliseconds: number, random: () => number): number {
  return milliseconds * (0.1 + 0.9 * random());
}
