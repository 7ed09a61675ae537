// “Durable” (docs/replication.md): clock, timers, disk and links are ports, so the simulator (test/sim) can put faults into each.
import type { MergeKind } from "#crdt/merge-kind.ts";
import type { Page } from "#crdt/page.ts";
import type { WireVector } from "#crdt/version-vector.ts";
import type { PeerMessage } from "./messages.ts";

export interface Clock {
  /** Milliseconds since 1970 by the machine's clock; may jump. */
  readonly wall: () => number;
  /** Milliseconds since some moment; never goes back. */
  readonly mono: () => number;
}

export type ReplicaLog = (
  level: "info" | "warn" | "error",
  message: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/** Uniform in [0, 1). */
export type Rng = () => number;

export interface ReplicaTimers {
  /** Calls `run` once after `ms`; the result cancels it. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** Calls `run` once, after the present turn of the event loop (setImmediate). */
  readonly soon: (run: () => void) => void;
}

export interface KeyRules {
  readonly mergeKindOf: (key: string) => MergeKind;
  /** Whether a conflict record must not hold this key's values; without it, no key is secret. */
  readonly isSecret?: (key: string) => boolean;
  /** Whether two concurrent writes of the key are a conflict; without it, all are. */
  readonly isContested?: (key: string) => boolean;
  /** Whether this version can read the value: unreadable values are kept and relayed, not shown. Without it, all JSON is readable. */
  readonly isKnown?: (key: string, text: string) => boolean;
}

/** One record of the journal, as plain JSON. */
export type JournalRecord =
  /** Registers of the `apply` that follows; without effect until then. */
  | { readonly t: "part"; readonly page: Page }
  /** One local transaction or one merge, all or nothing. */
  | {
      readonly t: "apply";
      readonly page: Page;
      /** The version vector's new entries. */
      readonly upto: WireVector;
      /** The transactions that this record depends on: without them it has no effect. */
      readonly from?: WireVector;
      /** The sender's clock: not below any stamp that the sender had seen, perhaps of a superseded register. */
      readonly hlc?: string;
      /** Marks a full exchange: registers that `upto` covers and that are absent here are deleted (ADR 0501). */
      readonly full?: { readonly floor: WireVector; readonly hlc: string };
      /** Marks the repair of a divergence: registers are merged although they are covered. */
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
      readonly floor?: WireVector;
      readonly floorHlc?: string;
      /** The store was restored to an earlier state, or repaired, and has not caught up with another controller since. */
      readonly behind?: boolean;
      /** An operator said that no other member is left; false once a member lets this controller in. */
      readonly alone?: boolean;
    }
  /**
   * Registers from the journal behind a damage. They are merged only when this controller has caught up with another one, which may
   * have the lost registers.
   */
  | { readonly t: "salvaged"; readonly page: Page };

export type DialTarget = { readonly id: string } | { readonly address: string };

/** One authenticated stream to a peer, with messages in order. The transport has verified `peer` (mTLS). */
export interface PeerLink {
  readonly peer: string;
  /** Whether this side dialled. */
  readonly initiator: boolean;
  /** The peer's network address, for messages to operators. */
  readonly remote?: string;
  readonly send: (message: PeerMessage) => void;
  readonly close: (reason: string) => void;
}

/** The callbacks by which the transport reports a link's events. */
export interface LinkEvents {
  /** A message as parsed from JSON; the core checks its shape. */
  readonly received: (message: unknown) => void;
  readonly closed: () => void;
}

export interface Net {
  /** Tries to connect within `timeoutMs`; ends in `replica.connected(link)` or `replica.dialFailed(target)`, once. */
  readonly dial: (target: DialTarget, timeoutMs: number) => void;
}
