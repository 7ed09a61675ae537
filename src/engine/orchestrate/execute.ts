import type { Emit, RunEvent } from "#engine/events/event.ts";
import type { OpenSession } from "#engine/session/session.ts";
import type { TableStore } from "#engine/tables/table-store.ts";
import type { SecretReference } from "#engine/params/secret-reference.ts";
import type { Trust } from "#engine/project/project.ts";
import type { SourceOptions } from "#engine/roster/sources.ts";
import type { NodeEntry, TargetFacts } from "#engine/roster/roster.ts";
import type { Connect, Endpoint } from "#engine/transport/host.ts";
import type { Fetch } from "#engine/step/remote.ts";
import type { ExitCode, SourcePosition } from "#errors/problem.ts";
import type { Action } from "./action.ts";
import type { ManagedThings } from "./managed.ts";

/** What a run is asked to do; plain JSON, kept in the run's record, so that `runs resume` can do it again. */
export interface RunRequest {
  readonly what:
    /** `title`: what the run is called; the name unless given. */
    | { readonly kind: "orchestration"; readonly name: string; readonly title?: string }
    | { readonly kind: "state"; readonly names: readonly string[] }
    /** Argument vector run through `sh -c` when `shell`, else as it is. */
    | { readonly kind: "exec"; readonly argv: readonly string[]; readonly shell: boolean }
    | { readonly kind: "ping" }
    | { readonly kind: "facts" }
    /** Shows which run holds each node. Unless `isLook`, ends that run there; with `run`, only the run of that id. */
    | { readonly kind: "unlock"; readonly run?: string; readonly isLook: boolean };
  /** Target expression of the one target parameter (orchestrations) or of the ad hoc command. */
  readonly on?: string;
  /** `--set` values as typed by the user and `--params` values as JSON. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly dryRun: boolean;
  readonly grants: readonly string[];
  readonly skipHealth: boolean;
  readonly waitForLock: boolean;
  /** Answers yes to every `confirm`. */
  readonly yes: boolean;
  readonly concurrency?: number;
  /** Who sends large contents to the nodes; absent: the bastion. */
  readonly feed?: "nodes";
  readonly context?: string;
  /** Of targets that ask for facts: those that were gathered before, in milliseconds since the epoch, are not believed. */
  readonly factsSince?: number;
  /** Nodes whose facts are not known are left out of such targets; absent: that is an error. */
  readonly unknownFacts?: "skip";
  /** The command line to show and to repeat. */
  readonly command: string;
}

/** What the run's process gives to the executor. Everything that touches the world comes in here. */
export interface RunDependencies {
  readonly runId: string;
  readonly nonce: string;
  readonly who: string;
  /** Absolute paths. */
  readonly project: string;
  readonly shipped: string;
  readonly home: string;
  readonly revision?: string;
  readonly dirty?: boolean;
  readonly emit: Emit;
  readonly connect: Connect;
  readonly openSession: OpenSession;
  readonly tables: TableStore;
  /** Aborted with reason "stop" | "abort": stop starts no new step, abort ends the running ones too. */
  readonly stop: AbortSignal;
  readonly abort: AbortSignal;
  /** Asks whoever watches; rejects when stopped. */
  readonly ask: (question: {
    kind: "confirm" | "password" | "passphrase" | "grant";
    text: string;
    node?: string;
    secret: boolean;
  }) => Promise<string>;
  /** The action of that name; undefined: there is none. Loads it when first asked. */
  readonly actions: (name: string) => Promise<Action | undefined>;
  /** All there are, for suggestions. */
  readonly actionNames: readonly string[];
  /** Whose files of the project are believed (S-20); absent: everybody's. */
  readonly trust?: Trust;
  /** How the bastion fetches contents by their URLs, when a node asks for one; absent: it does not. */
  readonly fetch?: Fetch;
  /** How programs and addresses in `roster/` are asked. */
  readonly sources?: SourceOptions;
  /** Reads a secret that a file refers to, at this place. @throws KcoreError when it cannot be read. */
  readonly readSecret: (reference: SecretReference, at?: SourcePosition) => Promise<string>;
  /** The CA passphrase given at start (file or environment), if any; else it is asked once. */
  readonly passphrase?: string;
  /** Whether a passphrase opens the CA of the run's context; true if the context has no CA yet. */
  readonly opensCa?: (passphrase: string) => Promise<boolean>;
  /** What is known of the nodes' facts, for targets that ask for them; absent: nothing. */
  readonly facts?: TargetFacts;
  /** The things that earlier runs keep in order on the nodes; absent: they are not remembered. */
  readonly managed?: ManagedThings;
  /** Events of the run's record so far, when it is resumed. */
  readonly earlier: readonly RunEvent[];
  /** How many files the run's process may have open; absent: enough. */
  readonly openFiles?: number;
  /** Opens the root of a node that waits for it at boot; absent: nobody can. See `SessionOptions.unlock`. */
  readonly unlock?: (asked: Unlocking) => Promise<boolean>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** A node that may wait to be unlocked, and what a run has for that. */
export interface Unlocking {
  readonly node: NodeEntry;
  /** How it is reached once it runs. */
  readonly endpoint: Endpoint;
  readonly connect: Connect;
  /** Of the cluster CA's keys; asked once a run. */
  readonly passphrase: () => Promise<string>;
  readonly context?: string;
  readonly signal: AbortSignal;
}

export interface RunResult {
  readonly exitCode: ExitCode;
}
