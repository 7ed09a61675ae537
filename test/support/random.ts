/** Numbers in [0, 1) of one seed (mulberry32); each user of chance takes a stream of its own. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let word = this.#state;
    word = Math.imul(word ^ (word >>> 15), word | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 0x100000000;
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  pick<Item>(list: readonly Item[]): Item {
    const item = list[this.below(list.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }

  isLucky(probability: number): boolean {
    return this.next() < probability;
  }

  /** A stream that does not depend on later numbers of this one. */
  fork(): Chance {
    return new Chance(Math.floor(this.next() * 0x100000000));
  }
}

/** The numbers of a seed, as a function. */
export function seededRandom(seed: number): () => number {
  const chance = new Chance(seed);
  return () => chance.next();
}
