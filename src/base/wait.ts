import { setTimeout as sleepFor } from "node:timers/promises";

export interface PollOptions {
  readonly everyMs: number | (() => number);
  /** Milliseconds after which no call begins; by default calls repeat until the signal. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** The clock in milliseconds, and the sleep: tests pass their own. */
  readonly now?: () => number;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

/**
 * Calls `attempt` repeatedly, at least once, until it returns neither false nor undefined; returns undefined once the time is up.
 * @throws the signal's reason; an error of `attempt`
 */
export function poll<Found>(
  attempt: Attempt<Found>,
  waiting: PollOptions & { readonly limitMs?: never },
): Promise<Found>;
export function poll<Found>(attempt: Attempt<Found>, waiting: PollOptions): Promise<Found | undefined>;
export async function poll<Found>(
  attempt: Attempt<Found>,
  { everyMs, limitMs = Number.POSITIVE_INFINITY, signal, now = () => performance.now(), sleep = wait }: PollOptions,
): Promise<Found | undefined> {
  const end = now() + limitMs;
  for (;;) {
    signal?.throwIfAborted();
    const found = await attempt();
    if (found !== undefined && found !== false) return found;
    const pause = typeof everyMs === "number" ? everyMs : everyMs();
    if (now() + pause > end) return undefined;
    await sleep(pause, signal);
  }
}

type Attempt<Found> = () => Promise<Found | false | undefined> | Found | false | undefined;

/** Repeats the work while it fails and `mayHelp` accepts the error. @throws the last error, once the time is up or `mayHelp` refuses it; the signal's reason */
export async function retry<Result>(
  work: () => Promise<Result>,
  { mayHelp, ...waiting }: PollOptions & { readonly mayHelp: (error: unknown) => boolean },
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

/** @throws the signal's reason */
export async function wait(ms: number, signal?: AbortSignal): Promise<void> {
  await sleepFor(ms, undefined, signal && { signal }).catch(() => signal?.throwIfAborted());
}

/** The result of the work; undefined after `ms` milliseconds, while the work goes on. @throws an error of the work until then */
export async function within<Result>(ms: number, work: Promise<Result>): Promise<Result | undefined> {
  const over = new AbortController();
  try {
    return await Promise.race([work, wait(ms, over.signal).then(() => undefined)]);
  } finally {
    over.abort();
  }
}

/** The milliseconds of one step of a countdown. */
const countdownStep = 250;

/**
 * Calls `over` after `ms` milliseconds, for a limit on an answer. While this process stands still or its event loop is blocked, at most one
 * step is counted. An answer that has arrived meanwhile is read before `over`. Returns the function that cancels the countdown.
 */
export function countdown(ms: number, over: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let last: NodeJS.Immediate | undefined;
  const countFrom = (left: number): void => {
    const step = Math.min(left, countdownStep);
    // An immediate runs after the event loop has read all arrived bytes.
    if (step <= 0) last = setImmediate(over);
    else timer = setTimeout(() => countFrom(left - step), step);
  };
  countFrom(ms);
  return () => {
    clearTimeout(timer);
    clearImmediate(last);
  };
}
