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
  /** Keys of the records that earlier versions (which knew no siblings) wrote of this conflict; absent when there are none. */
  readonly former?: readonly string[];
}

/** The key of a loss's acknowledgement. Its deletion acknowledges, and wins over every write (`remove-wins`, merge-kind.ts). */
export function conflictKey(id: string): string {
  return `conflict/${id}`;
}

/** The keys whose deletion closes this conflict on all controllers, also on those of earlier versions. */
export function closingKeys({ key, winner, loser, others = [], former = [] }: ConflictRecord): readonly string[] {
  const names = [loser, ...others].flatMap((lost) => [
    conflictKey(lossId(key, lost)),
    // The id that earlier versions use.
    conflictKey(conflictId(key, [winner, lost])),
  ]);
  return [...new Set([...names, ...former])];
}

interface Gathered {
  readonly winner: ConflictSide;
  readonly lost: Map<string, ConflictSide>;
  readonly former: string[];
}

/** The open conflicts of a state, one for each key. `former`: open records of earlier versions, by the key of their register. */
export function conflictsIn(
  map: LwwMap,
  former: ReadonlyMap<string, ConflictRecord>,
  isSecret: (key: string) => boolean,
): readonly ConflictRecord[] {
  const found = new Map<string, Gathered>();
  const sideOf = ({ key, o, s, text, ms, c }: Register): ConflictSide => ({
    o,
    s,
    text: isSecret(key) ? '"(secret)"' : text,
    hlc: encodeStamp({ ms, c }),
  });
  const note = (key: string, winner: ConflictSide, lost: ConflictSide): Gathered => {
    const gathered = found.get(key) ?? { winner, lost: new Map<string, ConflictSide>(), former: [] };
    gathered.lost.set(`${lost.o}:${lost.s}`, lost);
    found.set(key, gathered);
    return gathered;
  };
  for (const key of map.siblings.keys()) {
    const standing = map.get(key);
    for (const lost of map.siblings.of(key))
      if (standing && areInConflict(standing, lost) && !map.siblings.isSettled(lost))
        note(key, sideOf(standing), sideOf(lost));
  }
  for (const [register, { key, winner, loser }] of former) {
    const standing = map.get(key);
    const gathered = map.siblings.find(key, loser)
      ? found.get(key)
      : note(key, standing ? sideOf(standing) : winner, loser);
    gathered?.former.push(register);
  }
  return Array.from(found, ([key, gathered]) => recordOf(key, gathered)).toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function recordOf(key: string, { winner, lost, former }: Gathered): ConflictRecord {
  const [loser, ...others] = [...lost.values()].toSorted(newestFirst) as [ConflictSide, ...ConflictSide[]];
  return {
    id: conflictId(key, [winner, loser, ...others]),
    key,
    winner,
    loser,
    ...(others.length > 0 ? { others } : {}),
    ...(former.length > 0 ? { former } : {}),
  };
}

function newestFirst(a: ConflictSide, b: ConflictSide): number {
  return a.hlc === b.hlc ? (a.o < b.o ? 1 : -1) : a.hlc < b.hlc ? 1 : -1;
}
