import { countdown } from "#base/wait.ts";

/** The abort reason of a deadline, a type of its own: a caller may abort for other reasons. */
export class DeadlinePassed extends Error {
  constructor(milliseconds: number) {
    super(`nothing within ${milliseconds / 1000} s`);
    this.name = "DeadlinePassed";
  }
}

/**
 * Runs `work` with a signal that aborts after `milliseconds` ({@link countdown}), with a `DeadlinePassed`, or when the caller's signal does, with its reason.
 * The work itself must obey the signal.
 */
export async function withDeadline<T>(
  milliseconds: number,
  caller: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const cancel = countdown(milliseconds, () => controller.abort(new DeadlinePassed(milliseconds)));
  const passOn = () => controller.abort(caller?.reason);
  if (caller?.aborted) passOn();
  caller?.addEventListener("abort", passOn, { once: true });
  try {
    return await work(controller.signal);
  } finally {
    cancel();
    caller?.removeEventListener("abort", passOn);
  }
}

/** The promise's outcome; if the signal aborts first, its reason is thrown, and `dispose` gets a late result. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal, dispose?: (late: T) => void): Promise<T> {
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } catch (error) {
    // A promise that lost the race must not leave a socket open; one that rejected left nothing.
    promise.then(
      (late) => dispose?.(late),
      () => undefined,
    );
    throw error;
  } finally {
    if (abort) signal.removeEventListener("abort", abort);
  }
}
