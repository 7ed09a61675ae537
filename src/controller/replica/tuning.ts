// “Bounded” (docs/replication.md): the limits and intervals of replication.
import { pageLimits, type PageLimits } from "#crdt/delta.ts";

/** The limits and intervals of replication; times are in ms. */
export interface Tuning {
  /**
   * A write is refused when its stamp would lie further ahead of the wall clock. More than `maxReceiveAhead`: otherwise the stamps of one
   * peer could stop all others from writing.
   */
  readonly maxIssueAhead: number;
  /** A write of a peer waits when its stamp lies further ahead of the wall clock. */
  readonly maxReceiveAhead: number;
  /** A controller refuses writes when its clock is further from the median of its peers' clocks. */
  readonly fenceAt: number;
  /** A controller without peers trusts a jump of its wall clock after this time; less than its agents wait for an answer. */
  readonly trustJumpAfter: number;
  /** The difference to a peer's clock that raises an alarm. */
  readonly driftWarning: number;
  /** The interval of pings on an idle link; a silent peer is pinged sooner (rtt.ts). */
  readonly pingEvery: number;
  /** The interval of pulls from each peer. */
  readonly pullEvery: number;
  /** The interval at which a controller looks for tombstones that it can forget. */
  readonly collectEvery: number;
  /** The interval at which the alarm CONFLICTS_CAPPED is set or cleared. */
  readonly conflictsEvery: number;
  /** The time for which the first write waits for the members to confirm its origin; then the controller takes a new one. */
  readonly confirmWithin: number;
  /**
   * The time for which a write waits for this controller's lost transactions that a peer has. Also the longest time for which a
   * starting controller asks the other members for missed changes.
   */
  readonly recoverWithin: number;
  /** The interval at which a controller dials its own address, where a duplicate may answer. */
  readonly dialItselfEvery: number;
  /** The longest pause before a controller dials a peer again. */
  readonly backOffCap: number;
  /** The maximum number of pages of one pull that are under way. */
  readonly window: number;
  readonly page: PageLimits;
  /** The maximum number of registers that are merged in one turn of the event loop; a push is merged whole. */
  readonly slice: number;
  /** The number of tombstones that raises an alarm. */
  readonly tombstoneAlarm: number;
  /** The age of a tombstone that raises an alarm. */
  readonly tombstoneAlarmAge: number;
  /** The number of registers of own transactions that are kept for pushes. */
  readonly outboxRegisters: number;
}

export const defaultTuning: Tuning = {
  maxIssueAhead: 15_000,
  maxReceiveAhead: 10_000,
  fenceAt: 5_000,
  trustJumpAfter: 3_000,
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
