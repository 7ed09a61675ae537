import type { Problem } from "#errors/problem.ts";
import type { Emit, NodeOutcome, Outcome } from "#engine/events/event.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { Leaving } from "#engine/states/leaves.ts";
import type { Registered, UnresolvedStep } from "#engine/states/planned-step.ts";
import type { Connect, Endpoint, Host } from "#engine/transport/host.ts";
import type { TableStore } from "#engine/tables/table-store.ts";
import type { BlobFeed } from "./blob-feed.ts";

/** Some drafts of one stage; adjacent stages over the same node go to the node together. */
export interface StageWork {
  readonly stage: string;
  readonly drafts: readonly UnresolvedStep[];
}

export interface WorkResult {
  readonly outcome: NodeOutcome;
  /** By register name; in dry runs `undefined` where the step was not applied. */
  readonly registered: ReadonlyMap<string, Registered | undefined>;
  readonly problem?: Problem;
  /** Ids of the stages whose steps all ran (or were in order). */
  readonly finishedStages: ReadonlySet<string>;
  /** By id, what each step leaves on the node when it leaves its state; `undefined` where that is not known. */
  readonly leaves?: ReadonlyMap<string, readonly Leaving[] | undefined>;
}

/** What a run knows and passes to each of its node sessions. */
export interface SessionOptions {
  readonly node: NodeEntry;
  readonly endpoint: Endpoint;
  readonly connect: Connect;
  readonly runId: string;
  /** Frames of this run are marked with it; 32 hex digits, kept in the run's record so that a resumed run can read on. */
  readonly nonce: string;
  /** Who runs it, for the lock's message: `user@host`. */
  readonly who: string;
  readonly dryRun: boolean;
  /** `DISK:FINGERPRINT` of what may be wiped. */
  readonly grants: readonly string[];
  /** Keeps what lies on the disks that grants name, before the node hears of a grant. */
  readonly tables: TableStore;
  readonly emit: Emit;
  /** Asks for the node's sudo password when sudo demands one and the roster has none; undefined: give up. */
  readonly sudoPassword: (again?: boolean) => Promise<string | undefined>;
  /** How steps of this node, by id, ended in the run's record so far (a resumed run): told again, they are not news. */
  readonly recorded: ReadonlyMap<string, readonly Outcome[]>;
  /**
   * Opens the root of a machine that waits for it at boot; true when it did. Asked when the machine is gone and does not answer.
   * @throws KcoreError HOST_UNREACHABLE while it does not wait there, UNLOCK_FAILED when there is no use in waiting
   */
  readonly unlock?: (signal: AbortSignal) => Promise<boolean>;
  /** This run was started before: what the node's journal of it says is finished is not done again. */
  readonly resumed: boolean;
  /** Wait for a lock that another run holds instead of refusing. */
  readonly waitForLock: boolean;
  /** Milliseconds. */
  readonly connectTimeout: number;
  /** Milliseconds for which the node may take nothing of a large content; absent: two minutes. */
  readonly transferStall?: number;
  /** Brings large contents from other nodes; absent: the bastion sends all. */
  readonly feed?: BlobFeed;
  /** Milliseconds, about, before each attempt to come back after a drop; absent: half a minute in all. */
  readonly retryDelays?: readonly number[];
  /** Limits how many sessions connect at once; resolves with the release function. */
  readonly connectSlot: () => Promise<() => void>;
}

/**
 * One node in one run: connects when first needed, holds the node's lock from its first to its last work, re-attaches
 * after drops, waits through reboots. Never rejects for what happens on the node: that is in the results and events.
 */
export interface NodeSession {
  /**
   * Performs the stages' steps in order; the first failure stops. Call again for later stages, never concurrently, and not
   * after `isLast`: then the node's run ends by itself as soon as all of it is in order, without waiting for `finish`.
   */
  perform(work: readonly StageWork[], options?: { readonly isLast?: boolean }): Promise<WorkResult>;
  /** The open connection, for forwarded channels of actions. */
  host(): Host | undefined;
  /** No new step starts. */
  stop(): void;
  /** Ends the running step: TERM to its group, KILL after 5 s; no new step starts. */
  abort(): void;
  /** Gives connection and lock back until the next work, which opens a new one; never while performing. */
  rest(): Promise<void>;
  /** Ends the runner, frees the lock, closes the connection, emits `node.finished`. */
  finish(outcome: NodeOutcome, problem?: Problem): Promise<void>;
  /** Round trips of the program so far (segments sent and answered, blobs that had to follow). */
  readonly exchanges: number;
}

export type OpenSession = (options: SessionOptions) => NodeSession;
