import { Problems } from "#engine/yaml/problems.ts";

/** The things that a still unknown value waits for. */
export interface Needs {
  readonly facts: boolean;
  /** Names under which the results of steps are registered. */
  readonly steps: readonly string[];
  /** Ids of stages. */
  readonly stages: readonly string[];
}

export type Members = Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;

/** The placeholder in a scope for a value that only the run brings. */
export class Unknown {
  /** The source of the value, as shown to the user: the id of a step, `stage issue`, `facts`. */
  readonly after: string;
  readonly needs: Needs;
  /** The names of the value's members as nested maps, if already known; a member that is no map is an unknown value. */
  readonly members: Members | undefined;

  constructor(after: string, needs: Partial<Needs> = {}, members?: Members) {
    this.after = after;
    this.members = members;
    this.needs = { facts: false, steps: [], stages: [], ...needs };
  }
}

/** Thrown by an evaluation that depends on an {@link Unknown}: not an operator's mistake; the caller waits for the value. */
export class UnknownValue extends Error {
  readonly unknown: Unknown;

  constructor(unknown: Unknown) {
    // Thrown for thousands of steps and never shown: collecting stacks would cost more than the evaluation.
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(`not known before ${unknown.after}`);
    Error.stackTraceLimit = limit;
    this.name = "UnknownValue";
    this.unknown = unknown;
  }
}

/** The result of `work`; undefined if it depends on an Unknown or has a fault. `problems` gets the fault, else another check reports it. Bugs are rethrown. */
export function attemptKnown<T>(work: () => T, problems = new Problems()): T | undefined {
  try {
    return problems.attempt(work);
  } catch (error) {
    if (error instanceof UnknownValue) return undefined;
    throw error;
  }
}

/** Runs several pieces of work, each even if others failed; `end` throws all faults together, or else an UnknownValue. */
export class Attempts {
  readonly problems = new Problems();
  #unknown: UnknownValue | undefined;

  /** The result of `work`; undefined if it failed or depends on an Unknown. Bugs are rethrown. */
  run<T>(work: () => T): T | undefined {
    try {
      return this.problems.attempt(work);
    } catch (error) {
      if (!(error instanceof UnknownValue)) throw error;
      this.#unknown ??= error;
      return undefined;
    }
  }

  /** Whether some work depends on an Unknown, and none had a fault. */
  get isUnknown(): boolean {
    return this.#unknown !== undefined && this.problems.list.length === 0;
  }

  /** @throws KcoreError with every problem; else UnknownValue, the first one. */
  end(): void {
    this.problems.throwIfAny();
    if (this.#unknown !== undefined) throw this.#unknown;
  }
}
