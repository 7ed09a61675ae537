/** The shortest time for which clients wait for an answer (src/api/ask.ts, the agent), ms. */
const shortestPatience = 5_000;
/** The interval of checks in an idle process, ms; each request checks as well. */
const beatEvery = 2_000;
/** The time after a pause in which the event loop still reads requests that arrived during the pause, ms. */
const settling = 250;

/**
 * Detects pauses of this process: it was stopped, frozen, or got no processor. Requests from before the end of a pause wait
 * unread in the sockets, but their clients have given up, and may have asked another controller. A late write would win over
 * all decisions since (F-31).
 */
export type EventLoopLag = ReturnType<typeof watchLag>;

export function watchLag(monotonic: () => number) {
  let beat = monotonic();
  let freshFrom = 0;
  const beatNow = (): void => {
    const now = monotonic();
    if (now - beat > shortestPatience) freshFrom = now + settling;
    beat = now;
  };
  const timer = setInterval(beatNow, beatEvery).unref();
  return {
    /** Whether a request that began at this (monotonic, ms) time may have been sent before the end of a pause. */
    mayBeStale(began: number): boolean {
      // After a pause sockets may be read before the timer runs.
      beatNow();
      return began < freshFrom;
    },
    stop: (): void => clearInterval(timer),
  };
}
