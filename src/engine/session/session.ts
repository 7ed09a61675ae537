import type { Problem } from "#errors/problem.ts";
import type { Emit, NodeOutcome, Outcome } from "#engine/events/event.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { ManagedRemnant } from "#engine/states/remnants.ts";
import type { Registered, UnresolvedStep } from "#engine/states/planned-step.ts";
import type { Connect, Endpoint, Host } from "#engine/transport/host.ts";
import type { TableStore } from "#engine/partition-backups/saved-tables.ts";
import type { PeerBlobs } from "./peer-blobs.ts";

/** Steps of one stage; adjacent stages of a node are sent together. */
export interface StageWork {
  readonly stage: string;
  readonly drafts: readonly UnresolvedStep[];
}

export interface WorkResult {
  readonly outcome: NodeOutcome;
  /** By register name; in dry runs `undefined` where the step was not applied. */
  readonly registered: ReadonlyMap<string, Registered | undefined>;
  readonly problem?: Problem;
  /** Ids of the stages whose steps have all ended without a failure. */
  readonly finishedStages: ReadonlySet<string>;
  /** Ids of the stages of which a step failed; absent: not known. */
  readonly failedStages?: ReadonlySet<string>;
  /** By step id, the things that stay on the node when the step is removed from its state; `undefined` if they are not known. */
  readonly leaves?: ReadonlyMap<string, readonly ManagedRemnant[] | undefined>;
}

/** The hashes of the looks (engine/program/look.ts) whose steps were all in order on a node when its last run with them ended. */
export interface LookMemory {
  has(hash: string): boolean;
  all(): readonly string[];
  add(hashes: readonly string[]): void;
}

/** The inputs of a session with one node. */
export interface SessionOptions {
  readonly node: NodeEntry;
  readonly endpoint: Endpoint;
  readonly connect: Connect;
  readonly runId: string;
  /** Marks the frames of this run: 32 hex digits, kept in the run's record so that a resumed run can read on. */
  readonly nonce: string;
  /** The higher number wins, of two processes that work for this run at the node (docs/runner.md, Attempts). */
  readonly attempt: number;
  /** The run's operator as `user@host`, for the lock's message. */
  readonly who: string;
  readonly dryRun: boolean;
  /** The run's grants for the node: `DISK:FINGERPRINT` to wipe a disk, `DISK:restore` to restore its saved table. */
  readonly grants: readonly string[];
  /** Keeps the tables of granted disks before the node gets a grant. */
  readonly tables: TableStore;
  readonly emit: Emit;
  /** Gives the node's sudo password, from the roster or the operator; undefined: without one. */
  readonly sudoPassword: (again?: boolean) => Promise<string | undefined>;
  /** Outcomes of the node's steps, by id, in the record of a resumed run; they are not reported again. */
  readonly recorded: ReadonlyMap<string, readonly Outcome[]>;
  /**
   * Unlocks the root disk of a machine that waits for its key at boot; true if it was unlocked. Called when the node is unreachable after a
   * lost connection.
   * @throws KcoreError HOST_UNREACHABLE while the machine does not wait for a key, UNLOCK_FAILED when waiting cannot help
   */
  readonly unlock?: (signal: AbortSignal) => Promise<boolean>;
  /** The run was started before: steps that its journal on the node calls finished are not done again. */
  readonly resumed: boolean;
  /** Whether to wait for a lock that another run holds; otherwise the work fails. */
  readonly waitForLock: boolean;
  /** Milliseconds. */
  readonly connectTimeout: number;
  /** Milliseconds without progress after which sending a large content fails; default: two minutes. */
  readonly transferStall?: number;
  /** Brings large contents from other nodes; without it the bastion sends all of them. */
  readonly peerBlobs?: PeerBlobs;
  /** Milliseconds before each attempt to reconnect, varied at random; default: half a minute in all. */
  readonly retryDelays?: readonly number[];
  /** The looks that found the node in order; without it no look is sent. */
  readonly looks?: LookMemory;
  /** Limits how many sessions connect at once; resolves with the function that releases the slot. */
  readonly connectSlot: () => Promise<() => void>;
}

/**
 * One node in one run. A session connects when first needed, holds the node's lock from its first to its last work, reconnects after drops,
 * and waits through reboots. Failures on the node never reject a promise: they are in the results and events.
 */
export interface NodeSession {
  /**
   * Performs the stages' steps in order, up to the first failure. Later stages follow in further calls, never concurrently. `isLast`: no
   * further call follows, so the runner ends without waiting for `finish` if every step succeeds. `outputs`: the values of earlier stages from
   * which the steps were made, as JSON, for a session in another process.
   */
  perform(
    work: readonly StageWork[],
    options?: { readonly isLast?: boolean; readonly outputs?: () => unknown },
  ): Promise<WorkResult>;
  /** The open connection, for actions that forward channels. */
  host(): Host | undefined;
  /** No new step starts. */
  stop(): void;
  /** Ends the running step: TERM to its group, KILL after 5 s; no new step starts. */
  abort(): void;
  /** Gives connection and lock back until the next work; never while performing. */
  rest(): Promise<void>;
  /** Ends the runner, frees the lock, closes the connection, emits `node.finished`. */
  finish(outcome: NodeOutcome, problem?: Problem): Promise<void>;
  /** Round trips so far: looks, segments, and requests for blobs. */
  readonly exchanges: number;
}

export type OpenSession = (options: SessionOptions) => NodeSession;

/** The run's values for the shells on the node. Outside of a dry run, grants follow after their disks were saved. */
export function runVariables({ node, runId, attempt, nonce, who, dryRun, grants }: SessionOptions): RunVariables {
  const login = node.transport === "local" ? (process.getuid?.() === 0 ? "root" : "user") : node.user;
  return {
    nonce,
    runId,
    attempt,
    who,
    dryRun,
    grants: dryRun ? grants : [],
    stateDir: node.stateDir,
    node: node.name,
    login,
  };
}
