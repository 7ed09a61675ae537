import type { Emit, Outcome, RunEventBody } from "#engine/events/event.ts";
import { OrderedEvents } from "./ordered-events.ts";

/** Emits the events of a node's steps in the order of the steps, without those that a resumed run's record already holds. */
export class StepEvents {
  readonly order = new OrderedEvents();
  readonly #emit: Emit;
  /** By step id: outcomes in the record that the node's journal has not repeated yet. */
  readonly #recorded: Map<string, readonly Outcome[]>;
  /** Ids of steps whose last attempt the record holds, together with its milestone. */
  readonly #replayed = new Set<string>();
  /** Events that wait for a diff before them. */
  #waiting = 0;
  #emitted: Promise<void> = Promise.resolve();

  constructor(emit: Emit, recorded: ReadonlyMap<string, readonly Outcome[]>) {
    this.#emit = emit;
    this.#recorded = new Map(recorded);
  }

  /** Recorded outcomes of the step that the journal has not repeated yet. */
  recordedEnds(step: string): number {
    return this.#recorded.get(step)?.length ?? 0;
  }

  /** Another attempt of the step begins. */
  begin(key: string, step: string, isHandler: boolean): void {
    this.#replayed.delete(step);
    // A step that handles a failure runs in place of the steps before it.
    if (isHandler) this.order.skipTo(key);
    else this.order.begin(key);
  }

  /**
   * Whether this outcome is the next one in the record. A journal repeats the recorded outcomes in order. Another outcome shows a new journal,
   * as of a node that was set up again, and everything in it is new.
   */
  wasRecorded(step: string, outcome: Outcome): boolean {
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
    if (this.order.isEarly(key)) this.order.skipTo(key);
    this.report(key, step, event);
  }

  /** Emits an event that the record does not hold, at the step's turn. `complete` makes the final event. */
  reportNew(
    key: string,
    event: RunEventBody,
    { isForeseen = false, complete }: { isForeseen?: boolean; complete?: () => Promise<RunEventBody> } = {},
  ): void {
    this.order.whenDue(key, () => this.#send(event, complete), { isForeseen });
  }

  /** Resolves when every event was emitted. */
  async settled(): Promise<void> {
    await this.#emitted;
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
