/** Nobody waits longer for an answer than our clients do, and they wait at least so long (src/api/ask.ts, the agent). */
const shortestPatience = 5_000;
/** What comes meanwhile makes it look as well, so this is how late an idle process would notice. */
const beatEvery = 2_000;
/** What had arrived is read in the first turns of the event loop. */
const settling = 250;

/**
 * Notices that this process stood still: stopped, frozen, or without a processor. What was asked before lies unread in the
 * sockets. Whoever asked has given up, and asked another controller maybe; carried out now, it would be the last writer
 * and win over all that was decided since (F-31).
 */
export interface EventLoopLag {
  /** Whether what began at this moment (monotonic, ms) may be what a pause left behind. */
  readonly mayBeStale: (began: number) => boolean;
  readonly stop: () => void;
}

export function watchLag(monotonic: () => number): EventLoopLag {
  let beat = monotonic();
  let freshFrom = 0;
  const look = (): void => {
    const now = monotonic();
    if (now - beat > shortestPatience) freshFrom = now + settling;
    beat = now;
  };
  const timer = setInterval(look, beatEvery).unref();
  return {
    mayBeStale(began) {
      // Sockets are read before timers run.
      look();
      return began < freshFrom;
    },
    stop: () => clearInterval(timer),
  };
}
