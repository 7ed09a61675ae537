import { areInConflict } from "./conflict.ts";
import { Digest } from "./digest.ts";
import { KeyIndex } from "./key-index.ts";
import { compareRegisters } from "./merge-kind.ts";
import type { MergeKind } from "./merge-kind.ts";
import { OriginLog } from "./origin-log.ts";
import { isSameDot } from "./register.ts";
import type { Register } from "./register.ts";
import { covers, raise } from "./version-vector.ts";
import type { VersionVector } from "./version-vector.ts";

/** What a merge did. */
export interface Merged {
  /** Keys whose register is another now. */
  readonly changed: readonly string[];
  /** Pairs of writes that did not know of each other: `[winner, loser]`. */
  readonly conflicts: readonly (readonly [Register, Register])[];
  /** Registers whose dot is known with other content: somebody wrote twice under one name. */
  readonly equivocations: readonly Register[];
}

/**
 * Keys to registers, and a version vector over the transactions that are in it: present, or dominated by what is present.
 * A state-based CRDT whose deltas are cut by version vector (Almeida, Shoker, Baquero, “Delta state replicated data types”,
 * 2018; the digest by origin as in van Renesse et al., Scuttlebutt, 2008): only the last write of a key is kept, so
 * there is no log to compact, and the delta since “nothing” is the whole state.
 */
export class LwwMap {
  readonly #kindOf: (key: string) => MergeKind;
  readonly #registers = new Map<string, Register>();
  readonly #tombstones = new Map<string, Register>();
  readonly #logs = new Map<string, OriginLog>();
  readonly #keys = new KeyIndex();
  readonly #vector = new Map<string, number>();
  readonly digest = new Digest();

  constructor(mergeKindOf: (key: string) => MergeKind) {
    this.#kindOf = mergeKindOf;
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
   * `registers`, or was known, or is dominated. What is covered already is left out, whether it is still here or not:
   * a late copy of what a collected tombstone deleted must not come back. `again` merges covered registers too (a repair).
   */
  merge(registers: Iterable<Register>, upto: Iterable<readonly [string, number]>, again = false): Merged {
    const changed: string[] = [];
    const conflicts: (readonly [Register, Register])[] = [];
    const equivocations: Register[] = [];
    for (const register of registers) {
      const current = this.#registers.get(register.key);
      if (current && isSameDot(current, register)) {
        if (isOtherContent(current, register)) equivocations.push(register);
      } else if (again || !covers(this.#vector, register.o, register.s)) {
        const kind = this.#kindOf(register.key);
        const wins = !current || compareRegisters(kind, register, current) > 0;
        if (current && kind !== "remove-wins" && areInConflict(current, register))
          conflicts.push(wins ? [register, current] : [current, register]);
        if (wins) {
          this.#put(register, current);
          changed.push(register.key);
        }
      }
    }
    raise(this.#vector, upto);
    return { changed, conflicts, equivocations };
  }

  /** Those whose dot is here with other content. */
  findEquivocations(registers: Iterable<Register>): readonly Register[] {
    return [...registers].filter((register) => {
      const current = this.#registers.get(register.key);
      return current !== undefined && isSameDot(current, register) && isOtherContent(current, register);
    });
  }

  /** Forgets a register: a tombstone that may go (tombstones.ts), or what a full exchange shows to be deleted. */
  drop(register: Register): void {
    if (this.#registers.get(register.key) !== register) return;
    this.#registers.delete(register.key);
    this.#tombstones.delete(register.key);
    this.digest.remove(register);
    this.#retire(register);
    this.#keys.remove((key) => this.#registers.has(key));
  }

  /** Registers of one origin with `from` < seq ≤ `to`, in order of seq. */
  *since(origin: string, from: number, to: number): Iterable<Register> {
    for (const register of this.#logs.get(origin)?.between(from, to) ?? [])
      if (this.#registers.get(register.key) === register) yield register;
  }

  #put(register: Register, former: Register | undefined): void {
    this.#registers.set(register.key, register);
    if (register.text === null) this.#tombstones.set(register.key, register);
    else this.#tombstones.delete(register.key);
    this.digest.add(register);
    let log = this.#logs.get(register.o);
    if (!log) this.#logs.set(register.o, (log = new OriginLog()));
    log.add(register);
    if (!former) {
      this.#keys.add(register.key);
      return;
    }
    this.digest.remove(former);
    this.#retire(former);
  }

  #retire({ o }: Register): void {
    this.#logs.get(o)?.retire((register) => this.#registers.get(register.key) === register);
  }
}

function isOtherContent(a: Register, b: Register): boolean {
  return a.text !== b.text || a.ms !== b.ms || a.c !== b.c;
}
