// “Neighbouring versions” (docs/replication.md): earlier versions, which knew no siblings, wrote a record of each pair in conflict.
import { hasSeen, lossId } from "#crdt/conflict.ts";
import type { LwwMap } from "#crdt/lww-map.ts";
import { conflictKey, type ConflictRecord, type ConflictSide } from "./conflict-record.ts";

/** The records of earlier versions by the key of their register: the open ones, and the keys of the settled ones. */
export function formerConflicts(
  map: LwwMap,
  isContested: (key: string) => boolean,
): { readonly open: ReadonlyMap<string, ConflictRecord>; readonly settled: readonly string[] } {
  const open = new Map<string, ConflictRecord>();
  const settled: string[] = [];
  for (const { key, text } of map.withPrefix(conflictKey(""))) {
    const record = text === null ? undefined : readRecord(text);
    if (record && isContested(record.key) && isOpen(map, record)) open.set(key, record);
    else if (record) settled.push(key);
  }
  return { open, settled };
}

function readRecord(text: string): ConflictRecord | undefined {
  try {
    const { id, key, winner, loser } = JSON.parse(text) as ConflictRecord;
    if (typeof id !== "string" || typeof key !== "string" || !isSide(winner) || !isSide(loser)) return undefined;
    return { id, key, winner, loser };
  } catch {
    return undefined;
  }
}

function isSide(side: unknown): side is ConflictSide {
  const { o, s, text, hlc } = (side ?? {}) as Partial<Record<keyof ConflictSide, unknown>>;
  const isText = typeof text === "string" || text === null;
  return typeof o === "string" && Number.isSafeInteger(s) && isText && /^[0-9a-f]{16}$/.test(String(hlc));
}

/** Whether a record names an open conflict: no write that had seen its loser has come since. */
function isOpen(map: LwwMap, { key, loser }: ConflictRecord): boolean {
  // The loser may be a sibling, which may be acknowledged.
  const sibling = map.siblings.find(key, loser);
  if (sibling) return !map.siblings.isSettled(sibling);
  const standing = map.get(key);
  if (map.get(conflictKey(lossId(key, loser)))?.text === null || standing?.text === loser.text) return false;
  return ![...(standing ? [standing] : []), ...map.siblings.of(key)].some((known) => hasSeen(known, loser));
}
