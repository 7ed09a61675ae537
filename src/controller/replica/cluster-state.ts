// “Durable” (docs/replication.md): the state changes by journal records alone, so a start after a crash rebuilds it.
import { areInConflict, lossId } from "#crdt/conflict.ts";
import { decodeStamp, encodeStamp, witness, zero, type Stamp } from "#crdt/hlc.ts";
import { LwwMap } from "#crdt/lww-map.ts";
import { lastsUntil } from "#crdt/merge-kind.ts";
import { emptyPage, encodePage, PageReader } from "#crdt/page.ts";
import { isJson, type Register } from "#crdt/register.ts";
import { covers, coversContext, toWire, type WireVector } from "#crdt/version-vector.ts";
import { conflictKey, conflictsIn, type ConflictRecord } from "./conflict-record.ts";
import { DeletionFloor } from "./deletion-floor.ts";
import { concernsMembers } from "./registered-controllers.ts";
import type { JournalRecord, KeyRules } from "./replica-ports.ts";

type Apply = Extract<JournalRecord, { t: "apply" }>;
type Meta = Extract<JournalRecord, { t: "meta" }>;
/** The parts of the state beside registers, clock and floor. */
type StoreCondition = Readonly<Required<Pick<Meta, "storeId" | "origin" | "ready" | "behind" | "alone">>>;

/** A merge that is carried out in slices. */
interface Merge {
  readonly record: Apply;
  readonly registers: readonly Register[];
  /** How many of the registers are merged. */
  at: number;
}

const snapshotPage = 1000;

/**
 * The durable state of a replica: the data of its database. It changes by journal records alone, one at a time, once each is durable.
 * So recovery runs the same code over the same records. Only `collect` and `advanceClock` are not journaled.
 */
export class ClusterState {
  readonly map: LwwMap;
  /** The forgotten deletions: a peer that does not cover this floor gets a full exchange. */
  readonly floor = new DeletionFloor();
  readonly reader = new PageReader();
  readonly rules: Required<KeyRules>;
  #clock: Stamp = zero;
  #condition: StoreCondition = { storeId: "", origin: "", ready: false, behind: false, alone: false };
  #salvaged: Register[] = [];
  #parts: Register[] = [];
  #merge: Merge | undefined;

  /** `records`: the newest snapshot's, then the journal's. Journal records that the snapshot includes do no harm. */
  constructor(rules: KeyRules, records: Iterable<JournalRecord> = []) {
    this.rules = { isSecret: () => false, isContested: () => true, isKnown: (_, text) => isJson(text), ...rules };
    const { mergeKindOf, isContested } = this.rules;
    const isAcknowledged = (id: string): boolean => this.map.get(conflictKey(id))?.text === null;
    this.map = new LwwMap(mergeKindOf, { isContested, isAcknowledged });
    for (const record of records) this.apply(record);
  }

  /** The hybrid logical clock: not below any stamp that was issued or seen here. */
  get clock(): Stamp {
    return this.#clock;
  }

  /** Raises the clock to a stamp that was issued or seen. */
  advanceClock(stamp: Stamp): void {
    this.#clock = witness(this.#clock, stamp);
  }

  /** Random for each store; empty until the first start. */
  get storeId(): string {
    return this.#condition.storeId;
  }

  get origin(): string {
    return this.#condition.origin;
  }

  get ready(): boolean {
    return this.#condition.ready;
  }

  /** The store was restored to an earlier state, or repaired, and has not caught up with another controller since. */
  get isBehind(): boolean {
    return this.#condition.behind;
  }

  /** An operator said that no other member is left, and no member has let this controller in since. */
  get isAlone(): boolean {
    return this.#condition.alone;
  }

  /** Registers salvaged from behind a damage of the journal; merged when this controller has caught up. */
  get salvaged(): readonly Register[] {
    return this.#salvaged;
  }

  /** Whether peers may take this state as complete: a restored store may lack deletions. */
  get isWhole(): boolean {
    return this.ready && !this.isBehind;
  }

  /**
   * Applies a record. Returns the keys whose register has changed, and for each new or settled conflict the key of its
   * acknowledgement. `registers`: the decoded registers of an `apply` with its parts, if the caller has them.
   */
  apply(record: JournalRecord, registers?: readonly Register[]): readonly string[] {
    switch (record.t) {
      case "part":
        for (const register of this.reader.read(record.page)) this.#parts.push(register);
        return [];
      case "apply": {
        const own = registers ?? this.reader.read(record.page);
        const all = registers || this.#parts.length === 0 ? own : this.#parts.concat(own);
        this.#parts = [];
        if (!this.#isFounded(record, all)) return [];
        this.beginMerge(record, all);
        return this.mergeNext(Infinity);
      }
      case "meta":
        this.#parts = [];
        this.#remember(record);
        return [];
      case "salvaged":
        for (const register of this.reader.read(record.page)) this.#salvaged.push(register);
        return [];
    }
  }

  /** Whether a merge is incomplete: the version vector does not cover its registers yet, and no other record may be applied. */
  get isMerging(): boolean {
    return this.#merge !== undefined;
  }

  /** Begins the merge of a record, which `mergeNext` carries out. `registers`: the decoded ones of the record and its parts. */
  beginMerge(record: Apply, registers: readonly Register[]): void {
    this.#merge = { record, registers, at: 0 };
  }

  /** Merges the next `count` registers; returns keys as `apply` does. */
  mergeNext(count: number): readonly string[] {
    const merge = this.#merge as Merge;
    const { record, registers, at } = merge;
    merge.at += count;
    const changed = this.#mergeSlice(registers.slice(at, merge.at), record);
    if (merge.at < registers.length) return changed;
    this.#merge = undefined;
    return [...changed, ...this.#finishMerge(record, registers)];
  }

  #mergeSlice(registers: readonly Register[], { repair }: Apply): readonly string[] {
    const { changed, siblings } = this.map.merge(registers, [], repair === true);
    for (const register of registers) this.advanceClock(register);
    const acknowledged = changed.flatMap((key) => this.#acknowledge(key));
    const touched = [...siblings, ...acknowledged].map((lost) => conflictKey(lossId(lost.key, lost)));
    return touched.length > 0 ? [...changed, ...new Set(touched)] : changed;
  }

  #acknowledge(key: string): readonly Register[] {
    if (!key.startsWith(conflictKey("")) || this.map.get(key)?.text !== null) return [];
    const lost = this.map.acknowledge(key.slice(conflictKey("").length));
    return lost ? [lost] : [];
  }

  #finishMerge(record: Apply, registers: readonly Register[]): readonly string[] {
    if (record.hlc !== undefined) this.advanceClock(decodeStamp(record.hlc));
    this.map.merge([], record.upto);
    return record.full ? this.#dropAbsent(record, registers) : [];
  }

  /**
   * Whether everything that a pushed record depends on was applied. If an earlier transaction could not be journaled, the push must
   * not be applied, now or after a restart: the version vector would claim missing registers.
   */
  #isFounded({ from }: Apply, registers: readonly Register[]): boolean {
    if (from === undefined) return true;
    const { vector } = this.map;
    return (
      from.every(([origin, seq]) => covers(vector, origin, seq)) && registers.every(({ x }) => coversContext(vector, x))
    );
  }

  /** Whether a full exchange must not drop a register: a membership, or a grow-only value that has not ended. */
  #isLasting(register: Register): boolean {
    const { key, text } = register;
    const isGrowOnly = text !== null && this.rules.mergeKindOf(key) === "first";
    return concernsMembers([key]) || (isGrowOnly && lastsUntil(register) > this.clock.ms);
  }

  /**
   * After a full exchange: drops the registers that the sender covers and did not send, since the sender has deleted them. Memberships stay,
   * and grow-only registers, such as revocations, until they end.
   */
  #dropAbsent({ full, upto }: Apply, registers: readonly Register[]): readonly string[] {
    const sent = new Set(registers.map(({ key }) => key));
    const dots = new Set(registers.map(({ key, o, s }) => `${o}:${s} ${key}`));
    const covered = new Map(upto);
    const dropped = [...this.map.all()].filter(
      (register) => !sent.has(register.key) && covers(covered, register.o, register.s) && !this.#isLasting(register),
    );
    // Siblings that the sender covers and did not send are superseded or settled there. Siblings of a dropped register
    // are dropped with it.
    const lost = [...this.map.siblings.all()].filter(
      ({ key, o, s }) => covers(covered, o, s) && !dots.has(`${o}:${s} ${key}`),
    );
    for (const register of [...lost, ...dropped.flatMap(({ key }) => this.map.siblings.of(key)), ...dropped])
      this.map.drop(register);
    if (full) this.#raiseFloor(full.floor, decodeStamp(full.hlc));
    return dropped.map(({ key }) => key);
  }

  /**
   * Forgets tombstones, and siblings without a conflict, that every member has. This is not journaled: a restart brings back the
   * tombstones and the former floor, and both are still correct.
   */
  collect(registers: readonly Register[]): void {
    for (const register of registers) {
      const isSibling = this.map.siblings.has(register);
      // A concurrent write may have won since this sibling was selected: then the two are a conflict.
      const standing = this.map.get(register.key);
      if (isSibling && standing && areInConflict(standing, register) && !this.map.siblings.isSettled(register))
        continue;
      // A sibling that lost to a deletion must not outlive its tombstone: it would become the value again.
      if (!isSibling && this.map.siblings.of(register.key).length > 0) continue;
      this.map.drop(register);
      if (isSibling) continue;
      this.#raiseFloor([[register.o, register.s]], register);
    }
  }

  #raiseFloor(vector: WireVector, stamp: Stamp): void {
    this.floor.raise(vector, stamp);
    this.advanceClock(stamp);
  }

  conflicts(): readonly ConflictRecord[] {
    return conflictsIn(this.map, this.rules.isSecret);
  }

  #remember(meta: Meta): void {
    const { storeId, origin, ready, behind, alone } = { ...this.#condition, ...meta };
    this.#condition = { storeId, origin, ready, behind, alone };
    if (meta.behind === false) this.#salvaged = [];
    if (meta.hlc !== undefined) this.advanceClock(decodeStamp(meta.hlc));
    this.#raiseFloor(meta.floor ?? [], meta.floorHlc === undefined ? zero : decodeStamp(meta.floorHlc));
  }

  /**
   * The state as records: registers first, then the `apply` that makes them effective. The caller may read on during writes, since
   * registers are immutable. No merge may be under way.
   */
  snapshot(): Iterable<JournalRecord> {
    const registers = [...this.map.all(), ...this.map.siblings.all()];
    const meta = this.meta();
    const salvaged = this.#salvaged;
    const upto = toWire(this.map.vector);
    return (function* (): Iterable<JournalRecord> {
      for (let at = 0; at < registers.length; at += snapshotPage)
        yield { t: "part", page: encodePage(registers.slice(at, at + snapshotPage)) };
      yield { t: "apply", page: emptyPage, upto };
      yield meta;
      if (salvaged.length > 0) yield { t: "salvaged", page: encodePage(salvaged) };
    })();
  }

  /** The state beside the registers. */
  meta(): Meta {
    const { storeId, origin, ready, behind, alone } = this.#condition;
    return {
      t: "meta",
      format: 1,
      storeId,
      origin,
      ready,
      hlc: encodeStamp(this.#clock),
      floor: toWire(this.floor.vector),
      floorHlc: encodeStamp(this.floor.stamp),
      behind,
      ...(alone ? { alone } : {}),
    };
  }
}
