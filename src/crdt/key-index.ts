/** The number of new keys that are merged at once: each merge takes some milliseconds, and merges stay rare. */
function batchFor(size: number): number {
  return Math.min(Math.max(8192, size >> 2), 32_768);
}

/** Keys in order, for iteration by prefix. New keys are merged in batches, and before each iteration. */
export class KeyIndex {
  #sorted: string[] = [];
  #added: string[] = [];
  #removed = 0;

  add(key: string): void {
    this.#added.push(key);
    if (this.#added.length >= batchFor(this.#sorted.length)) this.#mergeAdded();
  }

  /** Counts a removed key; after many of them drops all keys that `isPresent` denies. */
  remove(isPresent: (key: string) => boolean): void {
    this.#removed++;
    if (this.#removed < 64 || this.#removed * 2 < this.#sorted.length) return;
    this.#mergeAdded();
    this.#sorted = this.#sorted.filter(isPresent);
    this.#removed = 0;
  }

  /** Keys with the prefix, in order; removed keys may be among them. */
  *withPrefix(prefix: string): Iterable<string> {
    this.#mergeAdded();
    const keys = this.#sorted;
    for (let index = firstFrom(keys, prefix); index < keys.length; index++) {
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
