import { conflictId, hasSeen, lossId } from "./conflict.ts";
import { isSameDot } from "./register.ts";
import type { Dot, Register } from "./register.ts";

/** Bounds; controllers reach them after days apart. */
export interface SiblingLimits {
  readonly count: number;
  readonly bytes: number;
  /** Of one key. */
  readonly ofOne: number;
}

export const siblingLimits: SiblingLimits = { count: 10_000, bytes: 16 * 1024 * 1024, ofOne: 64 };

const none: readonly Register[] = [];

/**
 * Per key the writes that no later writer of the key had seen, without the standing one: the other siblings, in the words of Dynamo
 * (DeCandia et al., SOSP 2007) and of dotted version vectors (Almeida et al., 2012). The set of writes alone decides on them, not the
 * order of arrival; so replicas that agree list the same conflicts.
 */
export class Siblings {
  readonly #lost = new Map<string, readonly Register[]>();
  /** By the names that an acknowledgement may use, and the other way round. */
  readonly #byName = new Map<string, Register>();
  readonly #names = new Map<Register, readonly string[]>();
  /** Acknowledged siblings. They stay, since they still supersede the writes that they had seen, here and elsewhere. */
  readonly #settled = new Set<Register>();
  readonly #isAcknowledged: (id: string) => boolean;
  readonly #limits: SiblingLimits;
  #count = 0;
  #bytes = 0;
  /** The number of writes that could not be kept. */
  turnedAway = 0;

  constructor(isAcknowledged: (id: string) => boolean, limits: SiblingLimits = siblingLimits) {
    this.#isAcknowledged = isAcknowledged;
    this.#limits = limits;
  }

  get count(): number {
    return this.#count;
  }

  get isFull(): boolean {
    return this.#count >= this.#limits.count || this.#bytes >= this.#limits.bytes;
  }

  of(key: string): readonly Register[] {
    return this.#count === 0 ? none : (this.#lost.get(key) ?? none);
  }

  keys(): Iterable<string> {
    return this.#lost.keys();
  }

  *all(): Iterable<Register> {
    for (const lost of this.#lost.values()) yield* lost;
  }

  has(register: Register): boolean {
    return this.#names.has(register);
  }

  /** The sibling with this dot. */
  find(key: string, dot: Dot): Register | undefined {
    for (const each of this.of(key)) if (isSameDot(each, dot)) return each;
    return undefined;
  }

  /** Of two writes `standing` stands, and `other` does not. Gives the siblings that came and went. */
  weigh(standing: Register, other: Register): readonly Register[] {
    const { key } = standing;
    const known = this.of(key);
    // Controllers that were apart for days bring very many.
    if (known.length === 0 && this.isFull) {
      if (!hasSeen(standing, other)) this.turnedAway++;
      return none;
    }
    const candidates = known.includes(other) ? known : [...known, other];
    const living = candidates.filter(
      (each) =>
        !isSameDot(each, standing) &&
        !hasSeen(standing, each) &&
        !candidates.some((later) => later !== each && hasSeen(later, each)),
    );
    const kept = this.#withinLimits(known, living);
    this.#set(key, kept);
    for (const each of kept) {
      const names = namesOf(standing, each);
      this.#name(each, names);
      if (names.some(this.#isAcknowledged)) this.#settled.add(each);
    }
    return [...known.filter((each) => !kept.includes(each)), ...kept.filter((each) => !known.includes(each))];
  }

  /** Applies an acknowledgement. Gives the acknowledged write, the first time. */
  acknowledge(id: string): Register | undefined {
    const lost = this.#byName.get(id);
    if (!lost || this.#settled.has(lost)) return undefined;
    this.#settled.add(lost);
    return lost;
  }

  isSettled(lost: Register): boolean {
    return this.#settled.has(lost);
  }

  drop(lost: Register): void {
    const known = this.of(lost.key);
    if (known.includes(lost))
      this.#set(
        lost.key,
        known.filter((each) => each !== lost),
      );
  }

  /** The first siblings stay: a flood must not push out conflicts that an operator has not seen. */
  #withinLimits(known: readonly Register[], living: readonly Register[]): readonly Register[] {
    const kept = living.filter((each) => known.includes(each));
    for (const each of living) {
      if (kept.includes(each)) continue;
      // A sibling may take the place of one that it superseded.
      const isRoom = kept.length < known.length || (!this.isFull && kept.length < this.#limits.ofOne);
      if (!isRoom) this.turnedAway++;
      else kept.push(each);
    }
    return kept;
  }

  #set(key: string, lost: readonly Register[]): void {
    const former = this.of(key);
    this.#count += lost.length - former.length;
    this.#bytes += sizeOf(lost) - sizeOf(former);
    if (lost.length > 0) this.#lost.set(key, lost);
    else this.#lost.delete(key);
    for (const each of former) {
      if (lost.includes(each)) continue;
      this.#name(each, []);
      this.#settled.delete(each);
    }
  }

  #name(lost: Register, names: readonly string[]): void {
    for (const name of this.#names.get(lost) ?? []) this.#byName.delete(name);
    for (const name of names) this.#byName.set(name, lost);
    if (names.length > 0) this.#names.set(lost, names);
    else this.#names.delete(lost);
  }
}

/** The names of the loss itself, and of the pair, as earlier versions call it. */
function namesOf(standing: Register, lost: Register): readonly string[] {
  return [lossId(lost.key, lost), conflictId(lost.key, [standing, lost])];
}

function sizeOf(registers: readonly Register[]): number {
  return registers.reduce((sum, { key, text }) => sum + key.length + (text?.length ?? 0) + 64, 0);
}
