// “Conflicts are listed” (docs/replication.md): a listed conflict has the value that stands and every value that lost without being seen.
import { areInConflict, conflictId, lossId } from "#crdt/conflict.ts";
import { encodeStamp } from "#crdt/hlc.ts";
import type { LwwMap } from "#crdt/lww-map.ts";
import type { Dot, Register } from "#crdt/register.ts";

/** One side of a conflict: the value as JSON, redacted when secret; null is a deletion. */
export interface ConflictSide extends Dot {
  readonly text: string | null;
  readonly hlc: string;
}

/** Concurrent writes of one key with different values. */
export interface ConflictRecord {
  /** Identifies exactly this set of writes. */
  readonly id: string;
  readonly key: string;
  /** The write whose value is in force. */
  readonly winner: ConflictSide;
  /** The newest write that lost. */
  readonly loser: ConflictSide;
  /** Older writes that lost, the newest first; absent when there are none. */
  readonly others?: readonly ConflictSide[];
}

/** The key of a loss's acknowledgement. Its deletion acknowledges, and wins over every write (`remove-wins`, merge-kind.ts). */
export function conflictKey(id: string): string {
  return `conflict/${id}`;
}

/** The keys whose deletion closes this conflict on all controllers. */
export function closingKeys({ key, loser, others = [] }: ConflictRecord): readonly string[] {
  return [loser, ...others].map((lost) => conflictKey(lossId(key, lost)));
}

/** The open conflicts of a state, one for each key. */
export function conflictsIn(map: LwwMap, isSecret: (key: string) => boolean): readonly ConflictRecord[] {
  const sideOf = ({ key, o, s, text, ms, c }: Register): ConflictSide => ({
    o,
    s,
    text: isSecret(key) ? '"(secret)"' : text,
    hlc: encodeStamp({ ms, c }),
  });
  const found: ConflictRecord[] = [];
  for (const key of map.siblings.keys()) {
    const winner = map.get(key);
    if (!winner) continue;
    const [loser, ...others] = map.siblings
      .of(key)
      .filter((lost) => areInConflict(winner, lost) && !map.siblings.isSettled(lost))
      .map(sideOf)
      .toSorted(newestFirst);
    if (!loser) continue;
    const id = conflictId(key, [winner, loser, ...others]);
    found.push({ id, key, winner: sideOf(winner), loser, ...(others.length > 0 ? { others } : {}) });
  }
  return found.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function newestFirst(a: ConflictSide, b: ConflictSide): number {
  return a.hlc === b.hlc ? (a.o < b.o ? 1 : -1) : a.hlc < b.hlc ? 1 : -1;
}
