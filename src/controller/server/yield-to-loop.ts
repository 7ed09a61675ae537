/**
 * Lets the event loop serve everything else before work goes on that would hold it too long in one piece. Callers go on one a turn, in the
 * order of their calls.
 */
export type YieldToLoop = () => Promise<void>;

export function queueYields(): YieldToLoop {
  const waiting: (() => void)[] = [];
  const next = (): void => {
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(next);
  };
  return () =>
    new Promise((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(next);
    });
}
