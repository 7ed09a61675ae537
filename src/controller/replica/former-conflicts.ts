// “Neighbouring versions” (docs/replication.md): earlier versions, which knew no siblings, wrote a record of each pair in conflict.
import { hasSeen, lossId } from "#crdt/conflict.ts";
import type { LwwMap } from "#crdt/lww-map.ts";
import { conflictKey, type ConflictRecord, type ConflictSide } from "./conflict-record.ts";

/** Records of conflicts by earlier versions: registers, and those that such a version had found and not yet written. */
export class FormerConflicts {
  /** The unwritten ones, by the key that their register would have. */
  readonly #unwritten = new Map<string, ConflictRecord>();

  add(records: readonly ConflictRecord[]): void {
    for (const record of records) this.#unwritten.set(conflictKey(record.id), record);
  }

  forget(key: string): void {
    this.#unwritten.delete(key);
  }

  /** The records that no register holds. */
  unwritten(): readonly ConflictRecord[] {
    return [...this.#unwritten.values()];
  }

  /** Open ones by the key of their register, and the keys of settled ones. */
  sorted(
    map: LwwMap,
    isContested: (key: string) => boolean,
  ): { readonly open: ReadonlyMap<string, ConflictRecord>; readonly settled: readonly string[] } {
    const open = new Map<string, ConflictRecord>();
    const settled: string[] = [];
    const sort = (key: string, record: ConflictRecord): void => {
      if (isContested(record.key) && isOpen(map, record)) open.set(key, record);
      else settled.push(key);
    };
    for (const { key, text } of map.withPrefix(conflictKey(""))) {
      const record = text === null ? undefined : readRecord(text);
      if (record) sort(key, record);
    }
    for (const [key, record] of this.#unwritten) if (!map.get(key)) sort(key, record);
    return { open, settled };
  }
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
