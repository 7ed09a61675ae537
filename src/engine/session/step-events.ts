import type { Emit, Outcome, RunEventBody } from "#engine/events/event.ts";

interface HeldEvent {
  readonly emit: () => void;
  readonly isForeseen: boolean;
}

/**
 * Emits the events of a node's steps in the order of the steps, without those that a resumed run's record already holds. A node's batch
 * begins many steps before the first of them has ended. The outcome of a step that is not sent is foreseen at once. Starts, ends and
 * milestones wait; notes and output skip the wait.
 */
export class StepEvents {
  readonly #emit: Emit;
  /** By step id: outcomes in the record that the node's journal has not repeated yet. */
  readonly #recorded: Map<string, readonly Outcome[]>;
  /** Ids of steps whose last attempt the record holds, together with its milestone. */
  readonly #replayed = new Set<string>();
  #order: readonly string[] = [];
  #places: ReadonlyMap<string, number> = new Map();
  /** Place of the first step that is not over. */
  #turn = 0;
  #isHalted = false;
  #isClosed: boolean;
  readonly #over = new Set<string>();
  readonly #held = new Map<string, HeldEvent[]>();
  /** Events that wait for a diff before them. */
  #waiting = 0;
  #emitted: Promise<void> = Promise.resolve();

  /** `isClosed`: no step has its turn until {@link open}, since the node has not answered, and perhaps never does. */
  constructor(emit: Emit, recorded: ReadonlyMap<string, readonly Outcome[]>, isClosed = false) {
    this.#emit = emit;
    this.#recorded = new Map(recorded);
    this.#isClosed = isClosed;
  }

  /** The node has answered, or has nothing to do: foreseen events are emitted from now on. */
  open(): void {
    if (!this.#isClosed) return;
    this.#isClosed = false;
    this.#advance();
  }

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

  /** Recorded outcomes of the step that the journal has not repeated yet. */
  recordedEnds(step: string): number {
    return this.#recorded.get(step)?.length ?? 0;
  }

  /** Another attempt of the step begins, perhaps after its failure halted the order. */
  begin(key: string, step: string, isHandler: boolean): void {
    this.#replayed.delete(step);
    // A step that handles a failure runs in place of the steps before it.
    if (isHandler) return this.skipTo(key);
    this.#over.delete(key);
    this.#isHalted = false;
  }

  /**
   * Takes the next outcome of the step from the record; true if it is this outcome. A journal repeats the recorded outcomes in order. Another
   * outcome shows a new journal, as of a node that was set up again, and everything in it is new.
   */
  takeRecorded(step: string, outcome: Outcome): boolean {
    const [next, ...later] = this.#recorded.get(step) ?? [];
    if (next === outcome && later.length > 0) this.#recorded.set(step, later);
    else this.#recorded.delete(step);
    if (next === outcome) this.#replayed.add(step);
    return next === outcome;
  }

  /** Emits an event at the step's turn, unless the record holds it. */
  report(key: string, step: string, event: RunEventBody): void {
    if (!this.#recorded.has(step) && !this.#replayed.has(step)) this.reportNew(key, event);
  }

  /** Emits an event of a working step, which thereby has its turn. */
  reportNow(key: string, step: string, event: RunEventBody): void {
    if (this.#isEarly(key)) this.skipTo(key);
    this.report(key, step, event);
  }

  /**
   * Emits an event that the record does not hold, when all earlier steps are over. `isForeseen`: the event is true only if the step has
   * its turn. `complete` makes the final event.
   */
  reportNew(
    key: string,
    event: RunEventBody,
    { isForeseen = false, complete }: { isForeseen?: boolean; complete?: () => Promise<RunEventBody> } = {},
  ): void {
    const emit = () => this.#send(event, complete);
    if (!this.#isEarly(key)) return emit();
    const held = this.#held.get(key);
    if (held) held.push({ emit, isForeseen });
    else this.#held.set(key, [{ emit, isForeseen }]);
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

  /** Resolves when every event was emitted. */
  get emitted(): Promise<void> {
    return this.#emitted;
  }

  /** Whether earlier steps are not over. */
  #isEarly(key: string): boolean {
    return this.#isClosed || (this.#places.get(key) ?? 0) > this.#turn;
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

  /** The library for diffs is loaded late, so the events after a diff wait for it. */
  #send(event: RunEventBody, complete?: () => Promise<RunEventBody>): void {
    if (!complete && this.#waiting === 0) return this.#emit(event);
    this.#waiting += 1;
    this.#emitted = this.#emitted.then(async () => {
      this.#emit(complete ? await complete() : event);
      this.#waiting -= 1;
    });
  }
}
