import { z } from "zod";
import type { HeartbeatReply } from "#api/schemas.ts";
import { describeError, type Log } from "#api/log.ts";
import { durableJson } from "#base/durable-file.ts";

const RevokedList = z.object({ version: z.string(), keys: z.array(z.string()) });
/** A version that no controller's list has, so the next controller sends its list. */
const unreadable = "unreadable";

export type RevokedKeys = Awaited<ReturnType<typeof openRevokedKeys>>;

/**
 * The revoked keys of operators and controllers, in a file (0600). The list only ever grows; a missing file is an empty list.
 */
export async function openRevokedKeys(file: string, log: Log) {
  const db = durableJson(file, RevokedList, { version: "", keys: [] });
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
    /** Whether the agent must refuse a key (SHA-256 of its SPKI); true for every key while the list cannot be read. */
    isRevoked: (spki: string): boolean => db.data.version === unreadable || spkis.has(spki),
    /** Adds a controller's list; resolves with whether the list was new, once it is on the disk. */
    async add(list: HeartbeatReply["revoked"]): Promise<boolean> {
      if (list === undefined || list.version === db.data.version) return false;
      // Keys that this list lacks stay: the controller may lag behind, and a revocation is final.
      for (const spki of list.keys) spkis.add(spki);
      db.data = { version: list.version, keys: [...spkis] };
      await db.write();
      return true;
    },
  };
}
