import type { Dot } from "#crdt/register.ts";

/** One side of a conflict: the value as JSON, redacted when secret; null is a deletion. */
export interface ConflictSide extends Dot {
  readonly text: string | null;
  readonly hlc: string;
}

/** Two writes of a key, neither of which had seen the other, with different values. Stands under `conflict/ID` until acked. */
export interface ConflictRecord {
  readonly id: string;
  readonly key: string;
  readonly winner: ConflictSide;
  readonly loser: ConflictSide;
}
