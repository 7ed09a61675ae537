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
