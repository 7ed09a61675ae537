import { Problems } from "#engine/yaml/problems.ts";
import { UnknownValue } from "./unknown.ts";

/** Does several things, each of them although others failed. Faults are reported together, before unknown values. */
export class Attempts {
  readonly problems = new Problems();
  #unknown: UnknownValue | undefined;

  /** Gives undefined when `work` failed or rests on an Unknown. Bugs are thrown on. */
  run<T>(work: () => T): T | undefined {
    try {
      return this.problems.attempt(work);
    } catch (error) {
      if (!(error instanceof UnknownValue)) throw error;
      this.#unknown ??= error;
      return undefined;
    }
  }

  /** Whether something rests on an Unknown, and nothing was wrong. */
  get isUnknown(): boolean {
    return this.#unknown !== undefined && this.problems.list.length === 0;
  }

  /** @throws KcoreError with every problem; else UnknownValue, the first one. */
  end(): void {
    this.problems.throwIfAny();
    if (this.#unknown !== undefined) throw this.#unknown;
  }
}
