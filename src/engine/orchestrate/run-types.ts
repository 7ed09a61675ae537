import type { Emit, Question, RunEvent } from "#engine/events/event.ts";
import type { LookMemory, OpenSession } from "#engine/session/session.ts";
import type { TableStore } from "#engine/partition-backups/saved-tables.ts";
import type { SecretReference } from "#engine/params/secret-reference.ts";
import type { Trust } from "#engine/project/project.ts";
import type { SourceOptions } from "#engine/roster/sources.ts";
import type { NodeEntry, Roster, TargetFacts } from "#engine/roster/roster.ts";
import type { Connect, Endpoint } from "#engine/transport/host.ts";
import type { Fetch } from "#engine/step/remote.ts";
import type { ExitCode, SourcePosition } from "#errors/problem.ts";
import type { Action } from "./action.ts";
import type { ManagedThings } from "./managed.ts";
import type { ProjectHook } from "./project-hooks.ts";

/** A run as the operator asked for it; plain JSON, kept in the run's record, so that `runs resume` can repeat it. */
export interface RunRequest {
  readonly what:
    /** `title`: the run's title in views; the name unless given. */
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
  /** Absent: the run does all its work. */
  readonly part?: RunPart;
  /** The number or share of nodes in a batch of each stage; absent: as the stages say. */
  readonly batch?: number | string;
  readonly grants: readonly string[];
  readonly skipHealth: boolean;
  /** Refuses a project with files that differ from its commit. */
  readonly requireClean?: true;
  /** Refuses a project that differs from its commit, or whose commit has no signature that git trusts. */
  readonly requireSigned?: true;
  readonly waitForLock: boolean;
  /** Answers yes to every `confirm`. */
  readonly yes: boolean;
  readonly concurrency?: number;
  /** `nodes`: nodes send large contents to each other; absent: the bastion sends them. */
  readonly feed?: "nodes";
  /** The address of the queue whose workers have the nodes; `false`: none has. Absent: as kcore.yaml says. */
  readonly queue?: string | false;
  readonly context?: string;
  /** Targets use no facts gathered before this time, in milliseconds since the epoch. */
  readonly factsSince?: number;
  /** Targets with `fact:` leave out nodes whose facts are unknown; absent: such a node is an error. */
  readonly unknownFacts?: "skip";
  /** The command line to show and to repeat. */
  readonly command: string;
}

/** The work that a node got last, and the revision of the project at that time. */
export interface NodeRevision extends Pick<RunRequest, "what" | "params"> {
  /** The node's id: a new node with a former node's name has no revision yet. */
  readonly id: string;
  /** Absent: a pass of `kcore reconcile` found all of the work in order. */
  readonly run?: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Absent: the project was not under git. */
  readonly revision?: string;
  readonly dirty?: boolean;
  /** Whether the node has all of the work: false if the run failed there, or left steps out. */
  readonly isWhole: boolean;
}

/** The part of a run's work that the operator chose, by names of steps and stages: work must fit each of these. */
export interface RunPart {
  readonly only?: readonly string[];
  readonly from?: string;
  readonly tags?: readonly string[];
  /** Target expression. */
  readonly limit?: string;
}

/** A run's title in views: `deploy_node`, `state apply web`, `exec uname -a`, `ping`. */
export function titleOf(what: RunRequest["what"]): string {
  switch (what.kind) {
    case "orchestration":
      return what.title ?? what.name;
    case "state":
      return `state apply ${what.names.join(" ")}`;
    case "exec":
      return `exec ${what.argv.join(" ")}`;
    case "ping":
    case "facts":
    case "unlock":
      return what.kind;
  }
}

/** All access of a run to disk, network, time and operators: the run's process gives it to `executeRun`. */
export interface RunDependencies {
  readonly runId: string;
  readonly nonce: string;
  /** See `SessionOptions.attempt`; absent: the first one of the run's part. */
  readonly attempt?: number;
  /** When the run began, in milliseconds since the epoch; absent: as `earlier` has it, or now. */
  readonly began?: number;
  readonly who: string;
  /** Absolute path of the project. */
  readonly project: string;
  /** Absolute path of kcore's own package (shipped.ts). */
  readonly shipped: string;
  /** The folder of contexts and certificates (`~/.kcore`, or KCORE_HOME). */
  readonly home: string;
  readonly revision?: string;
  readonly dirty?: boolean;
  readonly emit: Emit;
  readonly connect: Connect;
  readonly openSession: OpenSession;
  /** Hands the nodes' sessions over to workers, once the run's plan is made; absent: this process has all sessions. @throws KcoreError */
  readonly distribute?: (work: DistributedWork) => Promise<OpenSession>;
  readonly tables: TableStore;
  /** Aborted when no new step may start. */
  readonly stop: AbortSignal;
  /** Aborted when the running steps are to be ended, too. */
  readonly abort: AbortSignal;
  /** Asks the operators who watch the run; rejects when the run is stopped or no operator answers. */
  readonly ask: (question: Omit<Question, "id">) => Promise<string>;
  /** Loads the action of that name; undefined if there is none. */
  readonly actions: (name: string) => Promise<Action | undefined>;
  /** The names of all actions, for suggestions. */
  readonly actionNames: readonly string[];
  /** The users whose files of the project are trusted (S-20); absent: all users. */
  readonly trust?: Trust;
  /** Reads the project's hooks for a node's work; absent: none. @throws KcoreError with every problem of kcore.yaml */
  readonly hooks?: () => readonly ProjectHook[];
  /** Fetches a content by its URL when a node asks for it; absent: the bastion fetches nothing. */
  readonly fetch?: Fetch;
  /** How to query programs and addresses in `roster/`. */
  readonly sources?: SourceOptions;
  /** Reads a secret that a file refers to, at this place. @throws KcoreError when it cannot be read. */
  readonly readSecret: (reference: SecretReference, at?: SourcePosition) => Promise<string>;
  /** The CA passphrase given at start (file or environment); absent: an operator is asked. */
  readonly passphrase?: string;
  /** Whether a passphrase opens the CA of the run's context; true if the context has no CA yet. */
  readonly opensCa?: (passphrase: string) => Promise<boolean>;
  /** The nodes' facts, for targets with `fact:`; absent: no fact is known. */
  readonly facts?: TargetFacts;
  /** The record of things that earlier runs manage on the nodes; absent: there is no record. */
  readonly managed?: ManagedThings;
  /** Keeps the revision that a node got; absent: there is no record. */
  readonly keepRevision?: (node: string, kept: NodeRevision) => void;
  /** Each node's looks that found its steps in order; absent: no look is sent. */
  readonly looks?: (node: NodeEntry) => LookMemory;
  /** Events of the run's record so far, when it is resumed. */
  readonly earlier: readonly RunEvent[];
  /** The number of files that the run's process may have open; absent: no limit. */
  readonly openFiles?: number;
  /** Unlocks the root disk of a node that waits for that at boot; absent: no node is unlocked. See `SessionOptions.unlock`. */
  readonly unlock?: (request: UnlockRequest) => Promise<boolean>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** A run as its workers need to know it. */
export interface DistributedWork {
  /** With the answers to its parameters' questions; a secret one is a `Secret`. */
  readonly request: RunRequest;
  readonly began: number;
  readonly roster: Roster;
  /** Names of the nodes of the run's stages. */
  readonly nodes: readonly string[];
}

/** A node that may wait to be unlocked at boot, with the means to unlock it. */
export interface UnlockRequest {
  readonly node: NodeEntry;
  /** The endpoint of the booted node. */
  readonly endpoint: Endpoint;
  readonly connect: Connect;
  /** The passphrase of the cluster CA's keys; asked for once a run. */
  readonly passphrase: () => Promise<string>;
  readonly context?: string;
  readonly signal: AbortSignal;
}

export interface RunResult {
  readonly exitCode: ExitCode;
}
