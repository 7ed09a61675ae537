/** Told apart from the caller's own reasons to abort. */
export class DeadlinePassed extends Error {
  constructor(milliseconds: number) {
    super(`nothing within ${milliseconds / 1000} s`);
    this.name = "DeadlinePassed";
  }
}

/**
 * Does work whose signal fires after `milliseconds`, for a `DeadlinePassed`, or with the caller's own signal and for its reason. The
 * work obeys its signal itself.
 */
export async function withDeadline<T>(
  milliseconds: number,
  caller: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new DeadlinePassed(milliseconds)), milliseconds);
  const passOn = () => controller.abort(caller?.reason);
  if (caller?.aborted) passOn();
  caller?.addEventListener("abort", passOn, { once: true });
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    caller?.removeEventListener("abort", passOn);
  }
}

/** The promise's outcome, unless the signal fires first: then its reason is thrown. A late result is disposed of. */
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
    // Either it lost the race, and must not leave a socket open; or it is the one that failed, and nothing is left.
    promise.then(
      (late) => dispose?.(late),
      () => undefined,
    );
    throw error;
  } finally {
    if (abort) signal.removeEventListener("abort", abort);
  }
}
