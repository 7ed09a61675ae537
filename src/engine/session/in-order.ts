/**
 * Steps are told in the order in which they stand, whatever the order in which a node speaks of them: its batch lane
 * begins many before the first of them has ended, and what never goes to the node is known at once. Only their starts and
 * ends wait; who says more is at work, and nobody is kept waiting for that.
 */
export class InOrder {
  #order: readonly string[] = [];
  #places: ReadonlyMap<string, number> = new Map();
  /** The place of the first step that is not over. */
  #turn = 0;
  readonly #over = new Set<string>();
  readonly #held = new Map<string, (() => void)[]>();

  /** From now on these steps are told, one after the other. */
  expect(keys: readonly string[]): void {
    this.release();
    this.#order = keys;
    this.#places = new Map(keys.map((key, place) => [key, place]));
    this.#over.clear();
    this.#turn = 0;
    this.#advance();
  }

  /** Tells something of a step when all before it are over. */
  tell(key: string, tell: () => void): void {
    if ((this.#places.get(key) ?? 0) <= this.#turn) return tell();
    const held = this.#held.get(key);
    if (held) held.push(tell);
    else this.#held.set(key, [tell]);
  }

  /** Whether steps before this one are not over. */
  isEarly(key: string): boolean {
    return (this.#places.get(key) ?? 0) > this.#turn;
  }

  /** The step has ended, and was told so. */
  end(key: string): void {
    this.#over.add(key);
    this.#advance();
  }

  /** Nothing waits any longer. */
  release(): void {
    for (const key of this.#order.slice(this.#turn)) this.#flush(key);
    this.#order = [];
    this.#places = new Map();
  }

  #advance(): void {
    for (let key = this.#order[this.#turn]; key !== undefined; key = this.#order[this.#turn]) {
      this.#flush(key);
      if (!this.#over.has(key)) return;
      this.#turn += 1;
    }
  }

  #flush(key: string): void {
    const held = this.#held.get(key) ?? [];
    this.#held.delete(key);
    for (const tell of held) tell();
  }
}
