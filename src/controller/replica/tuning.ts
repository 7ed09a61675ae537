// “Bounded” (docs/replication.md): the limits and intervals of replication.
import { pageLimits, type PageLimits } from "#crdt/delta.ts";

/** Bounds and intervals in ms. */
export interface Tuning {
  /**
   * A write is refused when its stamp would lie further ahead of the wall. It is more than is taken from peers: else a peer with such stamps
   * stops all others from writing.
   */
  readonly maxIssueAhead: number;
  /** A received stamp further ahead waits. */
  readonly maxReceiveAhead: number;
  /** A controller fences itself further from the median of its peers. */
  readonly fenceAt: number;
  /** A controller without peers believes a jump of its wall clock after so long; its agents wait for an answer a little longer. */
  readonly believeJumpAfter: number;
  readonly driftWarning: number;
  /** How long a link may be idle while its peer answers; a silent peer is pinged again sooner (rtt.ts). */
  readonly pingEvery: number;
  readonly pullEvery: number;
  readonly collectEvery: number;
  readonly conflictsEvery: number;
  /** A write at boot waits so long for the members to confirm its origin; then it takes a new one. */
  readonly confirmWithin: number;
  /** How long a write waits for own lost transactions that a peer has. */
  readonly recoverWithin: number;
  /** How often a controller calls at its own address, where a copy of it may answer. */
  readonly dialItselfEvery: number;
  readonly backOffCap: number;
  readonly window: number;
  readonly page: PageLimits;
  /** Registers that are merged in one turn of the event loop. */
  readonly slice: number;
  readonly tombstoneAlarm: number;
  readonly tombstoneAlarmAge: number;
  readonly outboxRegisters: number;
}

export const defaultTuning: Tuning = {
  maxIssueAhead: 15_000,
  maxReceiveAhead: 10_000,
  fenceAt: 5_000,
  believeJumpAfter: 3_000,
  driftWarning: 500,
  pingEvery: 2_000,
  pullEvery: 15_000,
  collectEvery: 30_000,
  conflictsEvery: 2_000,
  confirmWithin: 1_000,
  recoverWithin: 30_000,
  dialItselfEvery: 60_000,
  backOffCap: 3_000,
  window: 4,
  page: pageLimits,
  slice: 2_000,
  tombstoneAlarm: 50_000,
  tombstoneAlarmAge: 86_400_000,
  outboxRegisters: 4_096,
};
