/**
 * The effects of the first, second and third Ctrl-C (docs/runner.md, Stopping): no new step starts; running steps are ended; the view
 * leaves.
 */
export type InterruptStep = "stop" | "abort" | "leave";

/** Counts how often an operator pressed Ctrl-C in one view. */
export class InterruptSteps {
  #count = 0;

  get begun(): boolean {
    return this.#count > 0;
  }

  next(): InterruptStep {
    this.#count += 1;
    return this.#count === 1 ? "stop" : this.#count === 2 ? "abort" : "leave";
  }

  /** The operator chose to abort at once: the next Ctrl-C leaves. */
  skipToAbort(): void {
    this.#count = Math.max(this.#count, 2);
  }
}
