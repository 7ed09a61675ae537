import { formatDuration } from "#base/units.ts";

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
  const seconds = (): string => formatDuration(performance.now() - start);
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
