/**
 * Turns of the event loop for work that would hold it too long in one piece: one caller a turn, in the order in which they came, and
 * between any two of them everything else is served.
 */
export type Turns = () => Promise<void>;

export function takeTurns(): Turns {
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
