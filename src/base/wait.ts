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
export function poll<Found>(look: Look<Found>, waiting: Waiting & { readonly limitMs?: never }): Promise<Found>;
export function poll<Found>(look: Look<Found>, waiting: Waiting): Promise<Found | undefined>;
export async function poll<Found>(
  look: Look<Found>,
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

type Look<Found> = () => Promise<Found | false | undefined> | Found | false | undefined;

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

/** The result of the work; undefined after so many milliseconds, and the work goes on. @throws an error of the work until then */
export async function within<Result>(ms: number, work: Promise<Result>): Promise<Result | undefined> {
  const over = new AbortController();
  try {
    return await Promise.race([work, wait(ms, over.signal).then(() => undefined)]);
  } finally {
    over.abort();
  }
}
