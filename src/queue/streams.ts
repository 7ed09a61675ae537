import type { Redis } from "ioredis";
import { wait } from "#base/wait.ts";

/** Milliseconds that a read waits for entries. */
const BLOCK_MS = 5_000;
const RETRY_MS = 500;
const MOST_ENTRIES = 500;

/**
 * Reads a stream from its beginning until the signal, entry by entry in order, and removes handled entries. While Redis is away, it tries again.
 */
export async function readStream(
  redis: Redis,
  stream: string,
  handle: (fields: Readonly<Record<string, Buffer>>) => void | Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let last = "0-0";
  while (!signal.aborted) {
    try {
      const found = await redis.xreadBuffer("COUNT", MOST_ENTRIES, "BLOCK", BLOCK_MS, "STREAMS", stream, last);
      const entries = found?.[0]?.[1] ?? [];
      for (const [id, fields] of entries) {
        last = String(id);
        await handle(fieldsOf(fields));
      }
      if (entries.length > 0) await redis.xtrim(stream, "MINID", after(last));
    } catch (error) {
      if (signal.aborted) return;
      if (!isAway(error)) throw error;
      await wait(RETRY_MS, signal).catch(() => undefined);
    }
  }
}

/** The id that follows an entry's id. */
function after(id: string): string {
  const [time = "", number = "0"] = id.split("-");
  return `${time}-${Number(number) + 1}`;
}

function fieldsOf(pairs: readonly Buffer[]): Readonly<Record<string, Buffer>> {
  const fields = Object.create(null) as Record<string, Buffer>;
  for (let at = 0; at + 1 < pairs.length; at += 2) fields[String(pairs[at])] = pairs[at + 1] as Buffer;
  return fields;
}

/** Whether Redis cannot be reached, or is loading its data. */
function isAway(error: unknown): boolean {
  const { name, code, message } = error as NodeJS.ErrnoException;
  return (
    code !== undefined || name === "MaxRetriesPerRequestError" || /Connection is closed|LOADING|READONLY/.test(message)
  );
}
