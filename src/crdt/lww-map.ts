import { hasSeen } from "./conflict.ts";
import { Digest } from "./digest.ts";
import { KeyIndex } from "./key-index.ts";
import { compareRegisters } from "./merge-kind.ts";
import type { MergeKind } from "./merge-kind.ts";
import { OriginLog } from "./origin-log.ts";
import { isSameDot } from "./register.ts";
import type { Register } from "./register.ts";
import { Siblings } from "./siblings.ts";
import { covers, raise } from "./version-vector.ts";
import type { VersionVector } from "./version-vector.ts";

export interface Merged {
  /** Keys that have another winning register now. */
  readonly changed: readonly string[];
  /** Siblings that were added or removed. */
  readonly siblings: readonly Register[];
}

/** Decides which concurrent writes are conflicts. */
export interface ConflictRules {
  /** Whether concurrent writes of the key are a conflict. */
  readonly isContested: (key: string) => boolean;
  /** Whether an operator acknowledged the loss with this id (`lossId`). */
  readonly isAcknowledged: (id: string) => boolean;
}

const anyConflict: ConflictRules = { isContested: () => true, isAcknowledged: () => false };

/**
 * Keys to registers, and a version vector over the transactions in the map: present, or dominated by a present one. A state-based CRDT
 * whose deltas are cut by version vector (Almeida, Shoker, Baquero, “Delta state replicated data types”, 2018; the vector by origin as
 * in van Renesse et al., Scuttlebutt, 2008). The map keeps only the last write of a key, and the writes concurrent with it (siblings.ts).
 * So there is no log to compact, and the delta since an empty vector is the whole state.
 */
export class LwwMap {
  readonly #kindOf: (key: string) => MergeKind;
  readonly #registers = new Map<string, Register>();
  readonly #tombstones = new Map<string, Register>();
  readonly #logs = new Map<string, OriginLog>();
  readonly #keys = new KeyIndex((key) => this.#registers.has(key));
  readonly #vector = new Map<string, number>();
  readonly digest = new Digest();
  readonly siblings: Siblings;
  readonly #isContested: (key: string) => boolean;

  constructor(mergeKindOf: (key: string) => MergeKind, { isContested, isAcknowledged }: ConflictRules = anyConflict) {
    this.#kindOf = mergeKindOf;
    this.#isContested = (key) => mergeKindOf(key) !== "remove-wins" && isContested(key);
    this.siblings = new Siblings(isAcknowledged);
  }

  get vector(): VersionVector {
    return this.#vector;
  }

  /** The number of keys, deleted ones included. */
  get size(): number {
    return this.#registers.size;
  }

  /** The winning register of a key; it may be a tombstone. */
  get(key: string): Register | undefined {
    return this.#registers.get(key);
  }

  /** The winning registers with tombstones, without siblings. */
  all(): Iterable<Register> {
    return this.#registers.values();
  }

  tombstones(): ReadonlyMap<string, Register> {
    return this.#tombstones;
  }

  /** Registers whose key has the prefix, in the order of keys; tombstones are among them. */
  *withPrefix(prefix: string): Iterable<Register> {
    for (const key of this.#keys.withPrefix(prefix)) {
      const register = this.#registers.get(key);
      if (register) yield register;
    }
  }

  /**
   * Merges whole transactions, and raises the version vector to `upto`: the caller promises that every transaction up to there is
   * among `registers`, or known, or dominated. Covered registers are ignored, present or not: a late copy of a register whose
   * tombstone was collected must not come back. `again` (a repair) merges covered registers too, and lets them replace others of
   * the same dot.
   */
  merge(registers: Iterable<Register>, upto: Iterable<readonly [string, number]>, again = false): Merged {
    const changed: string[] = [];
    const siblings: Register[] = [];
    for (const register of registers) {
      const current = this.#registers.get(register.key);
      const same = this.#sameDot(register, current);
      if (same) {
        if (again && isOtherContent(same, register)) changed.push(...this.#replace(same, register));
      } else if (again || !covers(this.#vector, register.o, register.s)) {
        const wins = !current || compareRegisters(this.#kindOf(register.key), register, current) > 0;
        // Before `#put`, so that a superseded register that becomes a sibling is not retired from its log.
        if (current) siblings.push(...(wins ? this.#keepLoser(register, current) : this.#keepLoser(current, register)));
        if (wins) {
          this.#put(register, current);
          changed.push(register.key);
        } else if (this.siblings.has(register)) this.#log(register);
      }
    }
    raise(this.#vector, upto);
    return { changed, siblings };
  }

  /** Replaces the winning register by another of the same dot, and returns its key; does nothing to a sibling. */
  #replace(present: Register, register: Register): readonly string[] {
    if (this.#registers.get(register.key) !== present) return [];
    this.#put(register, present);
    return [register.key];
  }

  #sameDot(register: Register, current = this.#registers.get(register.key)): Register | undefined {
    return current && isSameDot(current, register) ? current : this.siblings.find(register.key, register);
  }

  /** Keeps the loser as a sibling if the winner's writer had not seen that write. Returns the added and removed siblings. */
  #keepLoser(standing: Register, lost: Register): readonly Register[] {
    const { key } = standing;
    if ((this.siblings.of(key).length === 0 && hasSeen(standing, lost)) || !this.#isContested(key)) return [];
    const moved = this.siblings.updateAfterMerge(standing, lost);
    for (const register of moved) if (!this.siblings.has(register)) this.#retire(register);
    return moved;
  }

  /** The registers whose dot is in the map with other content: two processes wrote under one origin. */
  findEquivocations(registers: Iterable<Register>): readonly Register[] {
    return [...registers].filter((register) => {
      const same = this.#sameDot(register);
      return same !== undefined && isOtherContent(same, register);
    });
  }

  /** Removes a register: a collectable tombstone or sibling (tombstones.ts), or a register that a full exchange proved deleted. */
  drop(register: Register): void {
    if (this.siblings.has(register)) {
      this.siblings.drop(register);
      this.#retire(register);
    }
    if (this.#registers.get(register.key) !== register) return;
    this.#registers.delete(register.key);
    this.#tombstones.delete(register.key);
    this.digest.remove(register);
    this.#retire(register);
    this.#keys.countRemoval();
  }

  /** Applies an operator's acknowledgement of a loss. Returns the lost register; undefined if it is unknown or acknowledged already. */
  acknowledge(id: string): Register | undefined {
    return this.siblings.acknowledge(id);
  }

  /** Registers of one origin with `from` < seq ≤ `to`, in order of seq; siblings are among them. */
  *since(origin: string, from: number, to: number): Iterable<Register> {
    for (const register of this.#logs.get(origin)?.between(from, to) ?? []) if (this.#holds(register)) yield register;
  }

  #holds(register: Register): boolean {
    return this.#registers.get(register.key) === register || this.siblings.has(register);
  }

  #put(register: Register, former: Register | undefined): void {
    this.#registers.set(register.key, register);
    if (register.text === null) this.#tombstones.set(register.key, register);
    else this.#tombstones.delete(register.key);
    this.digest.add(register);
    this.#log(register);
    if (!former) {
      this.#keys.add(register.key);
      return;
    }
    this.digest.remove(former);
    this.#retire(former);
  }

  #log(register: Register): void {
    let log = this.#logs.get(register.o);
    if (!log) this.#logs.set(register.o, (log = new OriginLog()));
    log.add(register);
  }

  #retire({ o }: Register): void {
    this.#logs.get(o)?.retire((register) => this.#holds(register));
  }
}

function isOtherContent(a: Register, b: Register): boolean {
  return a.text !== b.text || a.ms !== b.ms || a.c !== b.c;
}
