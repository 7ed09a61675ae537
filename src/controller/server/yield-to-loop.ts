/**
 * Yields to the event loop in the middle of long work. Of several callers one resumes at each turn, in the order of their calls.
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
