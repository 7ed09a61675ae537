import { conflictId } from "#crdt/conflict.ts";
import { compareStamps, decodeStamp, encodeStamp, witness, zero, type Stamp } from "#crdt/hlc.ts";
import { LwwMap } from "#crdt/lww-map.ts";
import type { MergeKind } from "#crdt/merge-kind.ts";
import { encodePage, PageReader, type Page } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { covers, coversContext, dominates, raise, toWire } from "#crdt/version-vector.ts";
import type { ConflictRecord, ConflictSide } from "./conflict-record.ts";
import { concernsMembers } from "./registered-controllers.ts";
import type { JournalRecord } from "./replica-ports.ts";

type Apply = Extract<JournalRecord, { t: "apply" }>;
type Meta = Extract<JournalRecord, { t: "meta" }>;

/** What applying a record did. */
export interface Applied {
  readonly changed: readonly string[];
  readonly equivocations: readonly Register[];
}

const nothing: Applied = { changed: [], equivocations: [] };
const snapshotPage = 1000;

/**
 * All that a replica must not forget. It changes by `apply` alone, one journal record at a time, and only when the record is
 * durable; so recovery is the same code over the same records.
 */
export class ReplicaState {
  readonly map: LwwMap;
  /** Above every stamp that was issued here or seen. */
  clock: Stamp = zero;
  storeId = "";
  origin = "";
  ready = false;
  /** Per origin the highest tombstone forgotten here; who has not seen these gets a full exchange. */
  readonly floor = new Map<string, number>();
  floorStamp: Stamp = zero;
  /** Found, and not yet written as registers. */
  readonly conflicts = new Map<string, ConflictRecord>();
  readonly reader = new PageReader();
  readonly #mergeKindOf: (key: string) => MergeKind;
  readonly #isSecret: (key: string) => boolean;
  #parts: Register[] = [];

  constructor(mergeKindOf: (key: string) => MergeKind, isSecret: (key: string) => boolean) {
    this.map = new LwwMap(mergeKindOf);
    this.#mergeKindOf = mergeKindOf;
    this.#isSecret = isSecret;
  }

  /** `registers`: those of the record's page, if the caller has them decoded already. */
  apply(record: JournalRecord, registers?: readonly Register[]): Applied {
    switch (record.t) {
      case "part":
        for (const register of this.reader.read(record.page)) this.#parts.push(register);
        return nothing;
      case "apply": {
        const own = registers ?? this.reader.read(record.page);
        const all = registers || this.#parts.length === 0 ? own : this.#parts.concat(own);
        this.#parts = [];
        return this.#merge(record, all);
      }
      case "meta":
        this.#parts = [];
        this.#remember(record);
        return nothing;
    }
  }

  #merge(record: Apply, registers: readonly Register[]): Applied {
    if (!this.#isFounded(record, registers)) return nothing;
    const merged = this.mergeSlice(registers, record);
    const { changed } = this.finishSlices(record, registers);
    return changed.length > 0 ? { ...merged, changed: [...merged.changed, ...changed] } : merged;
  }

  /** A part of a record's registers; it counts when `finishSlices` was called. Nothing else may be applied in between. */
  mergeSlice(registers: readonly Register[], { repair }: Apply): Applied {
    const { changed, conflicts, equivocations } = this.map.merge(registers, [], repair === true);
    for (const register of registers) this.clock = witness(this.clock, register);
    for (const [winner, loser] of conflicts) this.#noteConflict(winner, loser);
    return { changed, equivocations };
  }

  /** `registers`: all of the record's. */
  finishSlices(record: Apply, registers: readonly Register[]): Applied {
    if (record.hlc !== undefined) this.clock = witness(this.clock, decodeStamp(record.hlc));
    this.map.merge([], record.upto);
    return record.full ? { changed: this.#dropAbsent(record, registers), equivocations: [] } : nothing;
  }

  /**
   * A push stands on earlier transactions. If one of those could not be journaled, neither may this be applied, now or after a
   * restart: the version vector would claim what is not here.
   */
  #isFounded({ from }: Apply, registers: readonly Register[]): boolean {
    if (from === undefined) return true;
    const { vector } = this.map;
    return (
      from.every(([origin, seq]) => covers(vector, origin, seq)) && registers.every(({ x }) => coversContext(vector, x))
    );
  }

  /**
   * After a full exchange: what the sender covers and did not send, it knows to be deleted. What is never deleted, or whose deletion is
   * never forgotten, stays whatever anybody sends: revocations and the other grow-only registers, and who is a member.
   */
  #dropAbsent({ full, upto }: Apply, registers: readonly Register[]): readonly string[] {
    const sent = new Set(registers.map(({ key }) => key));
    const covered = new Map(upto);
    const stays = ({ key, text }: Register): boolean =>
      concernsMembers([key]) || (text !== null && this.#mergeKindOf(key) === "first");
    const gone = [...this.map.all()].filter(
      (register) => !sent.has(register.key) && covers(covered, register.o, register.s) && !stays(register),
    );
    for (const register of gone) this.map.drop(register);
    raise(this.floor, full?.floor ?? []);
    this.#raiseFloorStamp(decodeStamp(full?.hlc ?? encodeStamp(zero)));
    return gone.map(({ key }) => key);
  }

  /** Forgets collected tombstones. Not journaled: one that comes back after a restart is as true as before, and so is the floor. */
  collect(tombstones: readonly Register[]): void {
    for (const tombstone of tombstones) {
      this.map.drop(tombstone);
      raise(this.floor, [[tombstone.o, tombstone.s]]);
      this.#raiseFloorStamp(tombstone);
    }
  }

  #raiseFloorStamp(stamp: Stamp): void {
    if (compareStamps(stamp, this.floorStamp) > 0) this.floorStamp = { ms: stamp.ms, c: stamp.c };
    this.clock = witness(this.clock, stamp);
  }

  #noteConflict(winner: Register, loser: Register): void {
    const id = conflictId(winner, loser);
    if (this.map.get(`conflict/${id}`)) return;
    const side = ({ o, s, text, ms, c }: Register): ConflictSide => ({
      o,
      s,
      text: this.#isSecret(winner.key) ? '"(secret)"' : text,
      hlc: encodeStamp({ ms, c }),
    });
    this.conflicts.set(id, { id, key: winner.key, winner: side(winner), loser: side(loser) });
  }

  #remember(meta: Meta): void {
    if (meta.storeId !== undefined) this.storeId = meta.storeId;
    if (meta.origin !== undefined) this.origin = meta.origin;
    if (meta.ready !== undefined) this.ready = meta.ready;
    if (meta.hlc !== undefined) this.clock = witness(this.clock, decodeStamp(meta.hlc));
    if (meta.vv !== undefined) this.map.merge([], meta.vv);
    raise(this.floor, meta.floor ?? []);
    if (meta.floorHlc !== undefined) this.#raiseFloorStamp(decodeStamp(meta.floorHlc));
    for (const record of meta.conflicts ?? []) this.conflicts.set(record.id, record);
  }

  /** The state as records: registers first, then what makes them count. Read while writes go on; registers never change. */
  snapshot(): Iterable<JournalRecord> {
    const registers = [...this.map.all()];
    const meta: Meta = {
      t: "meta",
      format: 1,
      storeId: this.storeId,
      origin: this.origin,
      ready: this.ready,
      hlc: encodeStamp(this.clock),
      floor: toWire(this.floor),
      floorHlc: encodeStamp(this.floorStamp),
      conflicts: [...this.conflicts.values()],
    };
    const upto = toWire(this.map.vector);
    return (function* (): Iterable<JournalRecord> {
      for (let at = 0; at < registers.length; at += snapshotPage)
        yield { t: "part", page: encodePage(registers.slice(at, at + snapshotPage)) };
      yield { t: "apply", page: emptyPage, upto };
      yield meta;
    })();
  }

  covers(upto: Iterable<readonly [string, number]>): boolean {
    return dominates(this.map.vector, new Map(upto));
  }
}

export const emptyPage: Page = { origins: [], contexts: [], registers: [] };
