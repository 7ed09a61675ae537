import { Problems } from "#engine/yaml/problems.ts";

/** The things that a still unknown value waits for. */
export interface Needs {
  readonly facts: boolean;
  /** Names under which steps register. */
  readonly steps: readonly string[];
  /** Ids of stages. */
  readonly stages: readonly string[];
}

export type Members = Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;

/** Stands in a scope for a value that only the run will bring. */
export class Unknown {
  /** The source of the value, as shown to the user: the id of a step, `stage issue`, `facts`. */
  readonly after: string;
  readonly needs: Needs;
  /** The names that it will have, where they are known: maps of maps; a path ends at anything else. */
  readonly members: Members | undefined;

  constructor(after: string, needs: Partial<Needs> = {}, members?: Members) {
    this.after = after;
    this.members = members;
    this.needs = { facts: false, steps: [], stages: [], ...needs };
  }
}

/** Thrown by an evaluation that rests on an {@link Unknown}: no error of the user's, the value has to be waited for. */
export class UnknownValue extends Error {
  readonly unknown: Unknown;

  constructor(unknown: Unknown) {
    // Thrown for thousands of steps in a row and never shown: collecting its stack would cost more than all the rest.
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(`not known before ${unknown.after}`);
    Error.stackTraceLimit = limit;
    this.name = "UnknownValue";
    this.unknown = unknown;
  }
}

/** The result of `work`; undefined where it rests on an Unknown or has a fault, which is added to `problems`. Bugs are thrown on. */
export function attemptKnown<T>(work: () => T, problems = new Problems()): T | undefined {
  try {
    return problems.attempt(work);
  } catch (error) {
    if (error instanceof UnknownValue) return undefined;
    throw error;
  }
}

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
