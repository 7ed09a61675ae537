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

/** The effect of a merge. */
export interface Merged {
  /** Keys whose register is another now. */
  readonly changed: readonly string[];
  /** Siblings that came or went. */
  readonly siblings: readonly Register[];
}

/** The rules of conflicts. */
export interface ConflictRules {
  /** Whether two writes of the key that did not know of each other are one. */
  readonly isContested: (key: string) => boolean;
  /** Whether the loss with this id was acknowledged (conflict.ts). */
  readonly isAcknowledged: (id: string) => boolean;
}

const anyConflict: ConflictRules = { isContested: () => true, isAcknowledged: () => false };

/**
 * Keys to registers, and a version vector over the transactions in the map: present, or dominated by a present one. A state-based CRDT
 * whose deltas are cut by version vector (Almeida, Shoker, Baquero, “Delta state replicated data types”, 2018; the digest by origin as
 * in van Renesse et al., Scuttlebutt, 2008). Only the last write of a key is kept, and the writes unknown to it (siblings.ts): there is
 * no log to compact, and the delta since “nothing” is the whole state.
 */
export class LwwMap {
  readonly #kindOf: (key: string) => MergeKind;
  readonly #registers = new Map<string, Register>();
  readonly #tombstones = new Map<string, Register>();
  readonly #logs = new Map<string, OriginLog>();
  readonly #keys = new KeyIndex();
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

  get size(): number {
    return this.#registers.size;
  }

  /** The register of a key, a tombstone too. */
  get(key: string): Register | undefined {
    return this.#registers.get(key);
  }

  /** The registers that stand. */
  all(): Iterable<Register> {
    return this.#registers.values();
  }

  tombstones(): ReadonlyMap<string, Register> {
    return this.#tombstones;
  }

  /** Registers whose key has the prefix, in the order of keys; tombstones too. */
  *withPrefix(prefix: string): Iterable<Register> {
    for (const key of this.#keys.withPrefix(prefix)) {
      const register = this.#registers.get(key);
      if (register) yield register;
    }
  }

  /**
   * Merges whole transactions, and raises the version vector to `upto`: the promise that all up to there is among
   * `registers`, or was known, or is dominated. Covered registers are left out, whether they are still here or not:
   * a late copy of a register that a collected tombstone deleted must not come back. `again` merges covered registers too, and puts
   * them in the place of others of the same dot (a repair).
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
        // First, so that a superseded register that lives on as a sibling keeps its place in the log.
        if (current) siblings.push(...(wins ? this.#weigh(register, current) : this.#weigh(current, register)));
        if (wins) {
          this.#put(register, current);
          changed.push(register.key);
        } else if (this.siblings.has(register)) this.#log(register);
      }
    }
    raise(this.#vector, upto);
    return { changed, siblings };
  }

  /** Replaces a register by another of the same dot. Gives the key if the standing register changed. */
  #replace(present: Register, register: Register): readonly string[] {
    if (this.#registers.get(register.key) !== present) return [];
    this.#put(register, present);
    return [register.key];
  }

  #sameDot(register: Register, current = this.#registers.get(register.key)): Register | undefined {
    return current && isSameDot(current, register) ? current : this.siblings.find(register.key, register);
  }

  /** Keeps the loser beside the winner if the winner's writer did not know of it. Gives the siblings that came and went. */
  #weigh(standing: Register, lost: Register): readonly Register[] {
    const { key } = standing;
    if ((this.siblings.of(key).length === 0 && hasSeen(standing, lost)) || !this.#isContested(key)) return [];
    const moved = this.siblings.weigh(standing, lost);
    for (const register of moved) if (!this.siblings.has(register)) this.#retire(register);
    return moved;
  }

  /** The registers whose dot is here with other content: two processes wrote under one origin. */
  findEquivocations(registers: Iterable<Register>): readonly Register[] {
    return [...registers].filter((register) => {
      const same = this.#sameDot(register);
      return same !== undefined && isOtherContent(same, register);
    });
  }

  /** Forgets a register: a tombstone or sibling that may go (tombstones.ts), or one that a full exchange shows to be deleted. */
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
    this.#keys.remove((key) => this.#registers.has(key));
  }

  /** An operator acknowledged a loss. Gives the lost register, the first time. */
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
