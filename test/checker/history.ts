/** The outcome of a write for its client. `unknown`: it may be done, may never be, or may still be. */
export type Outcome = "ok" | "refused" | "unknown";

/** One write by one client at one controller. Times are of this process's monotonic clock, ms. */
export interface Write {
  readonly episode: number;
  /** Index of the controller that was asked. */
  readonly at: number;
  /** `object/KIND/NAME`, `label/NODE/NAME` or `decision/NODE`. */
  readonly key: string;
  /** Unique for an object or a label; null removes it. Of a decision “approved” or “rejected”. */
  readonly value: string | null;
  /** The value that the client had just read of this key at this controller; absent: it did not read. */
  readonly read?: string | null;
  readonly began: number;
  readonly ended: number;
  readonly outcome: Outcome;
}

/** A time without packets between controllers of different sides. */
export interface Cut {
  readonly from: number;
  readonly to: number;
  readonly sides: readonly (readonly number[])[];
}

/** A controller that ran on an old copy of its folder; the writes that it had seen are unknown until it agreed with its peers. */
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

/** The state of one controller after all agreed. */
export interface View {
  readonly at: number;
  /** An absent key was never written, or was removed. */
  readonly values: ReadonlyMap<string, string>;
  readonly conflicts: readonly ListedConflict[];
}

/** The record of a cluster's life at the end of an episode. */
export interface History {
  readonly episode: number;
  readonly writes: readonly Write[];
  readonly cuts: readonly Cut[];
  /** The times at which all controllers held the same. */
  readonly agreed: readonly number[];
  readonly setBacks: readonly SetBack[];
  readonly views: readonly View[];
  /** Milliseconds from the end of the fault to agreement; undefined if they did not agree. */
  readonly healedMs: number | undefined;
  /** Controllers that refused a write and reported, before and after, that they were healthy. */
  readonly falselyHealthy: readonly string[];
}
