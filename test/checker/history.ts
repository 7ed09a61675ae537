/** What a client was told of a write. `unknown`: it may have been carried out, or not, or be yet. */
export type Outcome = "ok" | "refused" | "unknown";

/** One write by one client at one controller. Times are of this process's monotonic clock, ms. */
export interface Write {
  readonly episode: number;
  /** Index of the controller that was asked. */
  readonly at: number;
  /** `object/KIND/NAME`, `label/NODE/NAME` or `decision/NODE`. */
  readonly key: string;
  /** No two writes of an object or a label have the same; null removes. Of a decision “approved” or “rejected”. */
  readonly value: string | null;
  /** What the client had read of this key at this controller just before; absent: it did not look. */
  readonly read?: string | null;
  readonly began: number;
  readonly ended: number;
  readonly outcome: Outcome;
}

/** Nothing passed between controllers of different sides. */
export interface Cut {
  readonly from: number;
  readonly to: number;
  readonly sides: readonly (readonly number[])[];
}

/** A controller went on with an old copy of its folder; from then until it agreed with the others, nobody knows what it had seen. */
export interface SetBack {
  readonly at: number;
  readonly from: number;
  readonly to: number;
}

export interface ListedConflict {
  readonly key: string;
  readonly winner: string | null;
  readonly loser: string | null;
}

/** What one controller showed after all agreed. */
export interface View {
  readonly at: number;
  /** What is absent is not there, or removed. */
  readonly values: ReadonlyMap<string, string>;
  readonly conflicts: readonly ListedConflict[];
}

/** All that is known of a cluster's life, when an episode has ended. */
export interface History {
  readonly episode: number;
  readonly writes: readonly Write[];
  readonly cuts: readonly Cut[];
  /** When all controllers were found to hold the same. */
  readonly agreed: readonly number[];
  readonly setBacks: readonly SetBack[];
  readonly views: readonly View[];
  /** How long it took from the end of the fault until all agreed, ms; undefined: they did not. */
  readonly healedMs: number | undefined;
  /** Controllers that refused a write and said, before and after, that they were healthy. */
  readonly falselyHealthy: readonly string[];
  /** Keys whose loss was told to the operator, after damage to the only copy. */
  readonly toldLost?: ReadonlySet<string>;
}
