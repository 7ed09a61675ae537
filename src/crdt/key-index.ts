/** The number of new keys that causes a merge: each merge takes some milliseconds, so merges must stay rare. */
function batchFor(size: number): number {
  return Math.min(Math.max(8192, size >> 2), 32_768);
}

/** Keys in order, for iteration by prefix. New keys are merged in batches, and before each iteration. */
export class KeyIndex {
  readonly #isPresent: (key: string) => boolean;
  #sorted: string[] = [];
  #added: string[] = [];
  #removals = 0;

  /** `isPresent`: whether a key is still in the map that this index serves. */
  constructor(isPresent: (key: string) => boolean) {
    this.#isPresent = isPresent;
  }

  add(key: string): void {
    this.#added.push(key);
    if (this.#added.length >= batchFor(this.#sorted.length)) this.#mergeAdded();
  }

  /** Counts a key that left the map. After many of them the index drops all absent keys at once. */
  countRemoval(): void {
    this.#removals++;
    if (this.#removals < 64 || this.#removals * 2 < this.#sorted.length) return;
    this.#mergeAdded();
    this.#sorted = this.#sorted.filter(this.#isPresent);
    this.#removals = 0;
  }

  /** Keys with the prefix, in order, from the key `first` on; removed keys may be among them. */
  *withPrefix(prefix: string, first = prefix): Iterable<string> {
    this.#mergeAdded();
    const keys = this.#sorted;
    for (let index = firstFrom(keys, first); index < keys.length; index++) {
      const key = keys[index];
      if (key === undefined || !key.startsWith(prefix)) return;
      yield key;
    }
  }

  #mergeAdded(): void {
    if (this.#added.length === 0) return;
    const added = this.#added.toSorted();
    this.#added = [];
    const merged: string[] = [];
    // A key that was removed and added again may be in both lists, or twice in one.
    let last = "";
    const push = (key: string): void => {
      if (key !== last) merged.push((last = key));
    };
    let index = 0;
    for (const key of this.#sorted) {
      for (; index < added.length && (added[index] as string) <= key; index++) push(added[index] as string);
      push(key);
    }
    for (; index < added.length; index++) push(added[index] as string);
    this.#sorted = merged;
  }
}

function firstFrom(keys: readonly string[], prefix: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as string) < prefix) low = middle + 1;
    else high = middle;
  }
  return low;
}
