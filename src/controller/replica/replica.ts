// “Durable” (docs/replication.md): changes, refusals of writes, status, and the contract of the database.
import type { Dot } from "#crdt/register.ts";
import type { Alarm } from "./alarms.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { Tuning } from "./tuning.ts";
import type { Clock, JournalRecord, ReplicaLog, Net, Rng, ReplicaTimers } from "./replica-ports.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A write of one key in a transaction. */
export interface KeyChange {
  readonly key: string;
  /** null deletes. */
  readonly value: Json;
  /** The dot that the key's register must have; null: the key must be absent; undefined: any. */
  readonly ifMatch?: Dot | null;
}

/** A durable transaction: its dot, and its stamp (16 hex digits, sortable). */
export interface CommittedWrite extends Dot {
  readonly hlc: string;
}

export type WriteRefusal =
  "CONFLICT" | "FENCED" | "CLOCK_JUMP" | "CLOCK_SKEW" | "TWO_COPIES" | "NOT_READY" | "FULL" | "TOO_LARGE" | "STOPPED";

/** A refused write: nothing of it takes effect, now or later. `status` is its HTTP status (409, 413, 503, 507). */
export class WriteRefused extends Error {
  readonly code: WriteRefusal;
  readonly status: number;
  /** For CONFLICT and TOO_LARGE: the key that the refusal is about, if it is about one. */
  readonly key: string | undefined;

  constructor(
    code: WriteRefusal,
    message = refusalTexts[code],
    { key, cause }: { key?: string; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "WriteRefused";
    this.code = code;
    this.status = refusalStatus[code];
    this.key = key;
  }
}

const refusalTexts: Readonly<Record<WriteRefusal, string>> = {
  STOPPED: "this controller is stopping",
  NOT_READY: "this controller has not caught up with its cluster yet, or was removed from it",
  FENCED: "this controller's clock is too far from its peers'; it is read-only until that is set right",
  CLOCK_JUMP: "this controller's clock has jumped; nothing is stamped by it until a peer's clock agrees",
  CLOCK_SKEW: "this controller has stamped or seen what lies ahead of its clock; it is read-only until then",
  TWO_COPIES: "another process runs as this controller; one of the two must be stopped",
  CONFLICT: "changed meanwhile",
  FULL: "this controller's disk cannot take the write",
  TOO_LARGE: "too large",
};

const refusalStatus: Readonly<Record<WriteRefusal, number>> = {
  CONFLICT: 409,
  TOO_LARGE: 413,
  FENCED: 503,
  CLOCK_JUMP: 503,
  TWO_COPIES: 503,
  CLOCK_SKEW: 503,
  NOT_READY: 503,
  STOPPED: 503,
  FULL: 507,
};

export interface PeerStatus {
  readonly id: string;
  readonly state: "connected" | "connecting" | "disconnected" | "refused";
  /** By φ-accrual; for display and alerts only. */
  readonly health: "up" | "suspect" | "down";
  readonly phi: number;
  readonly rttMs: number | undefined;
  /** The peer's clock minus this controller's. */
  readonly offsetMs: number | undefined;
  /** Transactions that the peer has not confirmed. */
  readonly behind: number;
  /** Transactions of the peer that are missing here. */
  readonly ahead: number;
  readonly ready: boolean | undefined;
  readonly refusal?: { readonly code: string; readonly message: string };
}

/** The state of a replica, as `kcore get replication-status` and metrics show it. */
export interface ReplicaStatus {
  readonly id: string;
  readonly origin: string;
  /** Whether the controller has caught up since it joined or was restored. */
  readonly ready: boolean;
  /**
   * Whether the controller's state may be old: the store was restored or repaired and has not caught up since, or the controller has
   * just started and still asks the others.
   */
  readonly catchingUp: boolean;
  /** The code with which writes are refused now; undefined if they are accepted. */
  readonly readOnly: WriteRefusal | undefined;
  /** The time until writes are accepted again, ms, if known. */
  readonly readOnlyFor: number | undefined;
  readonly vv: Readonly<Record<string, number>>;
  /** One hash of all live registers: equal on controllers with equal vectors. */
  readonly digest: string;
  readonly peers: readonly PeerStatus[];
  /** Tombstones included. */
  readonly registers: number;
  readonly tombstones: number;
  /** Origins whose writes wait for this controller's clock, and how many ms their stamps lie ahead. */
  readonly deferred: Readonly<Record<string, number>>;
  /** Keys of registers that are kept and relayed but not shown. */
  readonly quarantined: readonly string[];
  readonly alarms: readonly Alarm[];
}

/** A soft value (soft-state.ts) that the controller `sender` shared. */
export interface SoftValue {
  readonly sender: string;
  readonly value: Json;
  readonly receivedMono: number;
}

/**
 * The database of a replica: its state, and the journal that makes changes of the state durable. The contract of `append`:
 * - it settles in the order of the calls, and fulfils only when the records are on the disk;
 * - the records of one call are in one segment, and after a crash all of them are found or none;
 * - after a rejection no record of this call is ever found again (after ENOSPC the journal is truncated, and later appends may succeed).
 *   After EIO, when that is unknown, it must end the process instead;
 * - after a crash `data` begins with the newest snapshot's records, then those of the journal since, in order.
 * The replica applies a durable record to `data` before the next turn of the event loop; behind a large merge (`isMerging`) right after it.
 * So a snapshot outside of a merge contains all appends that were fulfilled before the present turn. Once on the disk, it replaces them.
 */
export interface Database {
  readonly data: ClusterState;
  readonly append: (records: readonly JournalRecord[]) => Promise<void>;
}

export interface ReplicaOptions {
  readonly id: string;
  readonly cluster: string;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly timers: ReplicaTimers;
  readonly net: Net;
  readonly db: Database;
  /** Used at the first start only. `found`: ready at once; `join`: ready with the state of a controller where this one is registered. */
  readonly start: "found" | "join";
  /** Addresses to dial besides the registered controllers (`join` and `rejoin` of the configuration). */
  readonly join?: readonly string[];
  /** The address at which this process listens, for messages to operators. */
  readonly at?: string;
  readonly tuning?: Partial<Tuning>;
  readonly log?: ReplicaLog;
}
