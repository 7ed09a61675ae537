/** A seeded random generator, sfc32 (Doty-Humphrey, PractRand): small and fast. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.imul(seed, 0x9e3779b9) | 0;
    this.#c = 0x243f6a88;
    for (let round = 0; round < 12; round++) this.next();
  }

  /** Uniform in [0, 1). */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return (sum >>> 0) / 0x100000000;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }

  /** A stream that does not depend on later numbers of this one. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 0x100000000));
  }
}

/** The numbers of a seed, as a function. */
export function seededRandom(seed: number): () => number {
  const random = new Random(seed);
  return () => random.next();
}
