import { z } from "zod";
import type { HeartbeatReply } from "#api/schemas.ts";
import { describeError, type Log } from "#api/log.ts";
import { durableJson } from "#base/durable-file.ts";

const Kept = z.object({ version: z.string(), keys: z.array(z.string()) });
/** A version that no controller's list has, so the next controller sends its list. */
const unreadable = "unreadable";

export type RevokedKeys = Awaited<ReturnType<typeof openRevokedKeys>>;

/**
 * The keys of operators and controllers that the controllers revoked, in a file (0600); a missing file is an empty list, and the list only ever
 * grows.
 */
export async function openRevokedKeys(file: string, log: Log) {
  const db = durableJson(file, Kept, { version: "", keys: [] });
  await db.read().catch((error: unknown) => {
    db.data.version = unreadable;
    log.error("the revoked keys cannot be read; remote requests get no answer until a controller sends them", {
      file,
      ...describeError(error),
    });
  });
  const spkis = new Set(db.data.keys);
  return {
    /** The version of the controllers' list, for the next heartbeat. */
    version: (): string => db.data.version,
    /** Whether the agent must not answer a key: every key while the list cannot be read. */
    isRevoked: (spki: string): boolean => db.data.version === unreadable || spkis.has(spki),
    /** Adds a controller's list; resolves with whether the list was new, when it is on the disk. */
    async take(listed: HeartbeatReply["revoked"]): Promise<boolean> {
      if (listed === undefined || listed.version === db.data.version) return false;
      // Keys that an unreadable or a lagging controller's list lacks stay: a revoked key is never welcome again.
      for (const spki of listed.keys) spkis.add(spki);
      db.data = { version: listed.version, keys: [...spkis] };
      await db.write();
      return true;
    },
  };
}
