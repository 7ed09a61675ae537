interface Held {
  readonly tell: () => void;
  readonly isForeseen: boolean;
}

/**
 * Steps are told in the order in which they stand, whatever the order in which a node speaks of them: its batch lane
 * begins many before the first of them has ended, and what never goes to the node is known at once. Only their starts and
 * ends wait; who says more is at work, and nobody is kept waiting for that.
 */
export class OrderedEvents {
  #order: readonly string[] = [];
  #places: ReadonlyMap<string, number> = new Map();
  /** The place of the first step that is not over. */
  #turn = 0;
  #isHalted = false;
  #isClosed = false;
  readonly #over = new Set<string>();
  readonly #held = new Map<string, Held[]>();

  /** From now on these steps are told, one after the other. */
  expect(keys: readonly string[]): void {
    this.release();
    this.#order = keys;
    this.#places = new Map(keys.map((key, place) => [key, place]));
    this.#over.clear();
    this.#turn = 0;
    this.#isHalted = false;
    this.#advance();
  }

  /** Until {@link open} no step's turn comes: the node has not been heard yet, and may never be. */
  close(): void {
    this.#isClosed = true;
  }

  open(): void {
    if (!this.#isClosed) return;
    this.#isClosed = false;
    this.#advance();
  }

  /** The step was begun: what had halted before is tried again. */
  begin(key: string): void {
    this.#over.delete(key);
    this.#isHalted = false;
  }

  /** Tells something of a step when all before it are over. `isForeseen`: the node was not asked; it is true at its turn only. */
  tell(key: string, tell: () => void, { isForeseen = false } = {}): void {
    if (!this.isEarly(key)) return tell();
    const held = this.#held.get(key);
    if (held) held.push({ tell, isForeseen });
    else this.#held.set(key, [{ tell, isForeseen }]);
  }

  /** Whether steps before this one are not over. */
  isEarly(key: string): boolean {
    return this.#isClosed || (this.#places.get(key) ?? 0) > this.#turn;
  }

  /** The step has ended. Nothing goes on behind one that `halts`: what was foreseen there will not happen. */
  end(key: string, halts = this.#isHalted): void {
    this.#over.add(key);
    this.#isHalted = halts;
    this.#advance();
  }

  /** It is this step's turn: those before it will not be told any more. */
  skipTo(key: string): void {
    const place = this.#places.get(key) ?? 0;
    for (; this.#turn < place; this.#turn += 1) this.#flush(this.#order[this.#turn] as string, !this.#isHalted);
    this.#advance();
  }

  /** Nothing waits any longer; what was foreseen of steps whose turn did not come did not happen. */
  release(): void {
    for (const key of this.#order.slice(this.#turn)) this.#flush(key, false);
    this.#order = [];
    this.#places = new Map();
  }

  #advance(): void {
    if (this.#isClosed) return;
    for (let key = this.#order[this.#turn]; key !== undefined; key = this.#order[this.#turn]) {
      this.#flush(key, true);
      if (!this.#over.has(key) || this.#isHalted) return;
      this.#turn += 1;
    }
  }

  #flush(key: string, isItsTurn: boolean): void {
    const held = this.#held.get(key) ?? [];
    this.#held.delete(key);
    for (const { tell, isForeseen } of held) if (isItsTurn || !isForeseen) tell();
  }
}
