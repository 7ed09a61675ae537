// “Durable” (docs/replication.md): clock, timers, disk and links of a replica: a simulator can put faults into each.
import type { Page } from "#crdt/page.ts";
import type { WireVector } from "#crdt/version-vector.ts";
import type { ConflictRecord } from "./conflict-record.ts";
import type { PeerMessage } from "./messages.ts";

/**
 * The outside world of the replication core. The core has no clock, randomness, timer, disk or socket of its own: one
 * seed of the simulator (test/sim) decides every event.
 */

export interface Clock {
  /** Whole milliseconds since 1970 as the machine believes; may jump. */
  readonly wall: () => number;
  /** Milliseconds since some moment; never goes back. */
  readonly mono: () => number;
}

export type Log = (
  level: "info" | "warn" | "error",
  message: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/** Uniform in [0, 1). */
export type Rng = () => number;

export interface Timers {
  /** Calls `run` once after `ms`; the result cancels it. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** Calls `run` once, behind the present events (setImmediate). */
  readonly soon: (run: () => void) => void;
}

/** One entry of the journal; plain JSON, opaque to the store. */
export type JournalRecord =
  /** Registers of the `apply` that follows; kept out of the state until it comes. */
  | { readonly t: "part"; readonly page: Page }
  /** One local transaction or one merge. All of it takes effect, or nothing. */
  | {
      readonly t: "apply";
      readonly page: Page;
      /** The version vector's new entries. */
      readonly upto: WireVector;
      /** The transactions that it depends on: without them the record has no effect. */
      readonly from?: WireVector;
      /** A stamp that the sender had seen, perhaps of a superseded register. */
      readonly hlc?: string;
      /** A full exchange: registers that `upto` covers and that are absent are deleted (ADR 0501). */
      readonly full?: { readonly floor: WireVector; readonly hlc: string };
      /** A repair of a divergence: registers are merged although covered. */
      readonly repair?: true;
    }
  /** The state beside the registers; absent fields keep their value. */
  | {
      readonly t: "meta";
      readonly format?: 1;
      readonly storeId?: string;
      readonly origin?: string;
      readonly ready?: boolean;
      readonly hlc?: string;
      readonly vv?: WireVector;
      readonly floor?: WireVector;
      readonly floorHlc?: string;
      /** Conflicts that an earlier version found, and had not yet written as registers. */
      readonly conflicts?: readonly ConflictRecord[];
      /** The store was put back to an earlier state, or repaired, and has not caught up with another controller since. */
      readonly behind?: boolean;
      /** An operator said that no other member is left; false once a member lets this controller in. */
      readonly alone?: boolean;
    }
  /**
   * Registers from the journal behind a damage. They are kept aside until this controller has caught up with another one, and are merged
   * then: the lost registers, which decide, may come from there.
   */
  | { readonly t: "salvaged"; readonly page: Page };

export type DialTarget = { readonly id: string } | { readonly address: string };

/** One authenticated stream to a peer, messages in order or not at all. The transport made sure of `peer` (mTLS). */
export interface PeerLink {
  readonly peer: string;
  /** Whether this side dialled. */
  readonly initiator: boolean;
  /** The peer's network address, for people. */
  readonly remote?: string;
  readonly send: (message: PeerMessage) => void;
  readonly close: (reason: string) => void;
}

/** The transport's side of a link. */
export interface LinkEvents {
  /** A message as parsed from JSON; the core checks its shape. `bytes`: its size on the wire. */
  readonly received: (message: unknown, bytes: number) => void;
  readonly closed: () => void;
}

export interface Net {
  /** Tries to connect within `timeoutMs`; ends in `replica.connected(link)` or `replica.dialFailed(target)`, once. */
  readonly dial: (target: DialTarget, timeoutMs: number) => void;
}
