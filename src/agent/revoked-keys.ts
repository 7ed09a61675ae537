import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Standing } from "#api/schemas.ts";
import { describeError, type Log } from "#api/log.ts";
import { replaceFile } from "#base/file.ts";

/** The keys that the controllers told to be revoked: operators', controllers'. They only ever grow. */
export interface RevokedKeys {
  /** What was told last, for the next heartbeat. */
  readonly version: () => string;
  /** Whether a key may not be answered. While the list cannot be read, none may. */
  readonly isRevoked: (spki: string) => boolean;
  /** Takes in what a controller told; resolves with whether it was news, when it is on the disk. */
  readonly take: (told: Standing["revoked"]) => Promise<boolean>;
}

const Kept = z.object({ version: z.string(), keys: z.array(z.string()) });
/** No controller's version, so all of them are told. */
const unreadable = "unreadable";

/** Opens the list that is kept in a file of its own, 0600; a missing one is empty. */
export async function openRevokedKeys(file: string, log: Log): Promise<RevokedKeys> {
  let version = "";
  const spkis = new Set<string>();
  try {
    const kept = Kept.parse(JSON.parse(await readFile(file, "utf8")));
    ({ version } = kept);
    for (const spki of kept.keys) spkis.add(spki);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
      version = unreadable;
      log.error("the revoked keys cannot be read; nobody outside is answered until a controller tells them", {
        file,
        ...describeError(error),
      });
    }
  }
  return {
    version: () => version,
    isRevoked: (spki) => version === unreadable || spkis.has(spki),
    async take(told) {
      if (told === undefined || told.version === version) return false;
      for (const spki of told.keys) spkis.add(spki);
      version = told.version;
      // What an unreadable or a lagging controller's list lacks stays: a key is never welcome again.
      await replaceFile(file, `${JSON.stringify({ version, keys: [...spkis] })}\n`);
      return true;
    },
  };
}
