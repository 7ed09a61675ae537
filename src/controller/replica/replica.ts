// “Durable” (docs/replication.md): changes, refusals of writes, status, and the contract of the database.
import type { Dot } from "#crdt/register.ts";
import type { Alarm } from "./alarms.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { Tuning } from "./tuning.ts";
import type { Clock, JournalRecord, Log, Net, Rng, Timers } from "./replica-ports.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export interface Change {
  readonly key: string;
  /** null deletes. */
  readonly value: Json;
  /** The dot this change was made from; null: the key must be absent. Left out: any. */
  readonly ifMatch?: Dot | null;
}

/** A durable transaction: its dot, and its stamp (16 hex digits, sortable). */
export interface Written extends Dot {
  readonly hlc: string;
}

export type WriteRefusal =
  "CONFLICT" | "FENCED" | "CLOCK_JUMP" | "CLOCK_SKEW" | "TWO_COPIES" | "NOT_READY" | "FULL" | "TOO_LARGE" | "STOPPED";

/** A refused write, of which nothing will appear. `status` is the HTTP status for it (409, 503, 507, 413). */
export class WriteRefused extends Error {
  readonly code: WriteRefusal;
  readonly status: number;
  /** For CONFLICT: the key with another dot. */
  readonly key: string | undefined;

  constructor(code: WriteRefusal, message: string, { key, cause }: { key?: string; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "WriteRefused";
    this.code = code;
    this.status = statusOf[code];
    this.key = key;
  }
}

const statusOf: Readonly<Record<WriteRefusal, number>> = {
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
  /** By φ-accrual; for people and alerts only. */
  readonly health: "up" | "suspect" | "down";
  readonly phi: number;
  readonly rttMs: number | undefined;
  /** The peer's clock minus ours. */
  readonly offsetMs: number | undefined;
  /** Transactions that the peer has not confirmed. */
  readonly behind: number;
  /** Transactions of the peer that are missing here. */
  readonly ahead: number;
  readonly ready: boolean | undefined;
  readonly refusal?: { readonly code: string; readonly message: string };
}

export interface ReplicationStatus {
  readonly id: string;
  readonly origin: string;
  /** The controller has caught up since it joined, or was put back: it serves. */
  readonly ready: boolean;
  /**
   * The controller's state may be old: the store was put back or repaired, and has not caught up with another controller since; or the
   * controller has just started, and the answer of a peer is on its way.
   */
  readonly catchingUp: boolean;
  /** The reason why writes are refused at the moment. */
  readonly readOnly: WriteRefusal | undefined;
  /** The time until writes are taken again, if that is known, ms. */
  readonly readOnlyFor: number | undefined;
  readonly vv: Readonly<Record<string, number>>;
  /** One hash of all live registers: equal wherever the vectors are. */
  readonly digest: string;
  readonly peers: readonly PeerStatus[];
  readonly registers: number;
  readonly tombstones: number;
  /** Origins whose stream waits for our clock, with how far ahead they are (ms). */
  readonly deferred: Readonly<Record<string, number>>;
  /** Registers kept and relayed but not shown. */
  readonly quarantined: readonly string[];
  readonly alarms: readonly Alarm[];
}

/** A value that the controller `sender` declares true for a while. */
export interface SoftValue {
  readonly sender: string;
  readonly value: Json;
  readonly receivedMono: number;
}

/**
 * The database of a replica: its state, and the journal that makes changes of the state durable. The contract of `append`:
 * - it settles in the order of the calls, and fulfils only when the records are on the disk;
 * - the records of one call stand together: in one segment, and after a crash all of them are found or none;
 * - after a rejection no record of this call is ever found again (ENOSPC: truncated; it may heal). A disk that cannot tell (EIO) must
 *   end the process instead;
 * - after a crash `data` begins with the newest snapshot's records, then those of the journal since, in order.
 * The replica applies a record to `data` in the very callback of `then`: a snapshot stands for all appends that were fulfilled before this
 * turn of the event loop, and replaces them once it is on the disk.
 */
export interface Database {
  readonly data: ClusterState;
  readonly append: (records: readonly JournalRecord[]) => PromiseLike<void>;
}

export interface ReplicaOptions {
  readonly id: string;
  readonly cluster: string;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly timers: Timers;
  readonly net: Net;
  readonly db: Database;
  /** At the first start only: `found` a cluster, or `join` one (not ready until synced from a controller that knows us). */
  readonly start: "found" | "join";
  /** Addresses to dial besides the registered controllers (--join-controller). */
  readonly join?: readonly string[];
  /** Where this process listens, for people. */
  readonly at?: string;
  readonly tuning?: Partial<Tuning>;
  readonly log?: Log;
}
