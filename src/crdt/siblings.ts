import { hasSeen, lossId } from "./conflict.ts";
import { isSameDot } from "./register.ts";
import type { Dot, Register } from "./register.ts";

/** Limits of the kept siblings; controllers that were cut off from each other for days can reach them. */
export interface SiblingLimits {
  readonly count: number;
  readonly bytes: number;
  /** The most siblings of one key. */
  readonly ofKey: number;
}

export const siblingLimits: SiblingLimits = { count: 10_000, bytes: 16 * 1024 * 1024, ofKey: 64 };

const none: readonly Register[] = [];

/**
 * The losing siblings of each key: writes other than the winner that no later writer of the key had seen. The word is Dynamo's
 * (DeCandia et al., SOSP 2007) and that of dotted version vectors (Almeida et al., 2012). The set of writes alone decides,
 * not their order of arrival, so replicas with the same writes list the same conflicts.
 */
export class Siblings {
  readonly #lost = new Map<string, readonly Register[]>();
  /** Siblings by the ids of their losses (`lossId`). */
  readonly #byId = new Map<string, Register>();
  readonly #ids = new Map<Register, string>();
  /** Acknowledged siblings. They are kept, since they still supersede the writes that their writers had seen. */
  readonly #settled = new Set<Register>();
  readonly #isAcknowledged: (id: string) => boolean;
  readonly #limits: SiblingLimits;
  #count = 0;
  #bytes = 0;
  /** The number of losing writes that the limits excluded. */
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
    return this.#ids.has(register);
  }

  find(key: string, dot: Dot): Register | undefined {
    for (const each of this.of(key)) if (isSameDot(each, dot)) return each;
    return undefined;
  }

  /** Updates the key's siblings after a merge in which `standing` won over `other`. Returns the added and removed siblings. */
  updateAfterMerge(standing: Register, other: Register): readonly Register[] {
    const { key } = standing;
    const known = this.of(key);
    // Without further work once the limits are reached: controllers that were cut off for days bring very many writes.
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
      const id = this.#ids.get(each) ?? lossId(key, each);
      this.#ids.set(each, id);
      this.#byId.set(id, each);
      if (this.#isAcknowledged(id)) this.#settled.add(each);
    }
    return [...known.filter((each) => !kept.includes(each)), ...kept.filter((each) => !known.includes(each))];
  }

  /** Applies an acknowledgement. Returns the acknowledged write; undefined if it is unknown or acknowledged already. */
  acknowledge(id: string): Register | undefined {
    const lost = this.#byId.get(id);
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

  /** The oldest siblings are kept: a flood must not push out conflicts that an operator has not seen. */
  #withinLimits(known: readonly Register[], living: readonly Register[]): readonly Register[] {
    const kept = living.filter((each) => known.includes(each));
    for (const each of living) {
      if (kept.includes(each)) continue;
      // A sibling may take the place of one that it superseded.
      const hasRoom = kept.length < known.length || (!this.isFull && kept.length < this.#limits.ofKey);
      if (!hasRoom) this.turnedAway++;
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
      this.#byId.delete(this.#ids.get(each) ?? "");
      this.#ids.delete(each);
      this.#settled.delete(each);
    }
  }
}

function sizeOf(registers: readonly Register[]): number {
  return registers.reduce((sum, { key, text }) => sum + key.length + (text?.length ?? 0) + 64, 0);
}
