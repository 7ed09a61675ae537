/** Ms for which our clients wait for an answer at least (src/api/ask.ts, the agent), and not much longer. */
const shortestPatience = 5_000;
/** The latest notice of a pause in an idle process; each request checks as well. */
const beatEvery = 2_000;
/** Requests that arrived during a pause are read in the first turns of the event loop. */
const settling = 250;

/**
 * Notices that this process stood still: stopped, frozen, or without a processor. Requests from before lie unread in
 * the sockets. Their clients have given up, and may have asked another controller. A late write would win over all
 * decisions since (F-31).
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
    /** Whether a request that began at this moment (monotonic, ms) may be left from before a pause. */
    mayBeStale(began: number): boolean {
      // Sockets are read before timers run.
      beatNow();
      return began < freshFrom;
    },
    stop: (): void => clearInterval(timer),
  };
}
