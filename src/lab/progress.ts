/** Takes one line for the user, without its newline. */
export type Log = (line: string) => void;

/** How often a long piece of work says that it is still at it, in milliseconds. */
const heartbeat = 10_000;

/** Does one piece of work and tells it: a line at its beginning, one each ten seconds, one at its end with its duration. */
export async function told<T>(
  log: Log,
  what: string,
  work: () => Promise<T>,
  result?: (value: T) => string,
): Promise<T> {
  const start = performance.now();
  const seconds = (): string => `${((performance.now() - start) / 1000).toFixed(1)} s`;
  log(`${what} …`);
  const timer = setInterval(() => log(`${what} … ${seconds()}`), heartbeat);
  try {
    const value = await work();
    log(`${what}: ${result ? `${result(value)}, ` : ""}${seconds()}`);
    return value;
  } finally {
    clearInterval(timer);
  }
}

/** Bytes as people read them: 205 MB. */
export function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1_000_000)} MB`;
}
