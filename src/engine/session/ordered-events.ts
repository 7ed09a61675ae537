interface HeldEvent {
  readonly emit: () => void;
  readonly isForeseen: boolean;
}

/**
 * Emits events in the order of the steps. A node's batch begins many steps before the first of them has ended. The outcome of a step that is
 * not sent is foreseen at once. Only starts and ends wait; notes and output skip the wait.
 */
export class OrderedEvents {
  #order: readonly string[] = [];
  #places: ReadonlyMap<string, number> = new Map();
  /** Place of the first step that is not over. */
  #turn = 0;
  #isHalted = false;
  #isClosed = false;
  readonly #over = new Set<string>();
  readonly #held = new Map<string, HeldEvent[]>();

  /** Begins with the first of these steps; earlier steps get no turn any more. */
  expect(keys: readonly string[]): void {
    this.release();
    this.#order = keys;
    this.#places = new Map(keys.map((key, place) => [key, place]));
    this.#over.clear();
    this.#turn = 0;
    this.#isHalted = false;
    this.#advance();
  }

  /** No step has its turn until {@link open}: the node has not answered, and may never do. */
  close(): void {
    this.#isClosed = true;
  }

  open(): void {
    if (!this.#isClosed) return;
    this.#isClosed = false;
    this.#advance();
  }

  /** A step was started, perhaps again after its failure halted the order. */
  begin(key: string): void {
    this.#over.delete(key);
    this.#isHalted = false;
  }

  /** Calls `emit` when all earlier steps are over. `isForeseen`: the event is true only if the step has its turn. */
  whenDue(key: string, emit: () => void, { isForeseen = false } = {}): void {
    if (!this.isEarly(key)) return emit();
    const held = this.#held.get(key);
    if (held) held.push({ emit, isForeseen });
    else this.#held.set(key, [{ emit, isForeseen }]);
  }

  /** Whether earlier steps are not over. */
  isEarly(key: string): boolean {
    return this.#isClosed || (this.#places.get(key) ?? 0) > this.#turn;
  }

  /** The step has ended. `halts`: no later step follows, so foreseen events after it do not happen. */
  end(key: string, halts = this.#isHalted): void {
    this.#over.add(key);
    this.#isHalted = halts;
    this.#advance();
  }

  /** Gives this step its turn; earlier steps get none any more. */
  skipTo(key: string): void {
    const place = this.#places.get(key) ?? 0;
    for (; this.#turn < place; this.#turn += 1) this.#flush(this.#order[this.#turn] as string, !this.#isHalted);
    this.#advance();
  }

  /** Emits all held events, except foreseen ones, whose steps had no turn. */
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
    for (const { emit, isForeseen } of held) if (isItsTurn || !isForeseen) emit();
  }
}
