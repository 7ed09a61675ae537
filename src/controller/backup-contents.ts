import { createHash } from "node:crypto";
import { keyRules } from "./cluster/registers.ts";
import { ClusterState } from "./replica/cluster-state.ts";
import type { JournalRecord } from "./replica/replica-ports.ts";
import { realDisk } from "./store/durable-disk.ts";
import { readSnapshot } from "./store/snapshot-file.ts";

/** The registers of a backup without deleted ones: by key the value with its stamp, origin and number, as JSON. */
export type BackupContents = ReadonlyMap<string, string>;

/** Reads a backup after checking its checksum; `name` names it in errors. @throws KcoreError STORE_CORRUPT, STORE_TOO_NEW */
export async function readContents(bytes: Buffer, name: string): Promise<BackupContents> {
  const { entries } = await readSnapshot({ ...realDisk, read: () => Promise.resolve(bytes) }, name);
  const { map } = new ClusterState(keyRules, entries as Iterable<JournalRecord>);
  const live = [...map.withPrefix("")].filter(({ text }) => text !== null);
  return new Map(live.map(({ key, text, ms, c, o, s }) => [key, JSON.stringify([text, ms, c, o, s])]));
}

/** SHA-256 over the registers with these keys, in the keys' order; a missing register counts as such. */
export function digestOf(contents: BackupContents, keys: Iterable<string>): string {
  const rows = [...keys].toSorted().map((key) => JSON.stringify([key, contents.get(key) ?? null]));
  return createHash("sha256").update(rows.join("\n")).digest("hex");
}
