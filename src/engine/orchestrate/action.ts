import type { z } from "zod";
import type { Problem } from "#errors/problem.ts";
import type { NodeOutcome, Question } from "#engine/events/event.ts";
import type { Trust } from "#engine/project/project.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { Host } from "#engine/transport/host.ts";

/** What an action gives to later stages: `stages.ID.…` in expressions (for `each: TARGET`, that of the same node). */
export type Outputs = Readonly<Record<string, unknown>>;

/** What an action is given; everything it may touch. */
export interface ActionContext {
  readonly runId: string;
  /** Random for each run: `run.challenge` in expressions, for proofs of possession. */
  readonly challenge: string;
  readonly dryRun: boolean;
  /** Absolute path of the project. */
  readonly project: string;
  /** Whose files of the project are believed (S-20); absent: everybody's. */
  readonly trust?: Trust;
  /** Where contexts and certificates lie (`~/.kcore`, or KCORE_HOME). */
  readonly home: string;
  /** The context chosen with `--context`; absent: the current one. */
  readonly context?: string;
  /** The node of an action with `each: TARGET`. */
  readonly node?: NodeEntry;
  /** Every node of the roster. */
  readonly nodes: ReadonlyMap<string, NodeEntry>;
  /** Names of the nodes that this run deploys or changes. */
  readonly targets: readonly string[];
  /** How those nodes ended that are at their end in this run, and what went wrong with them. */
  readonly ended: ReadonlyMap<string, NodeEnd>;
  readonly signal: AbortSignal;
  /** Shows one line of progress. */
  readonly note: (text: string) => void;
  /** Records what a command printed, whole lines at a time. */
  readonly output: (stream: "out" | "err", text: string) => void;
  /** Asks whoever watches; resolves with the first answer. Rejects when the run is stopped. */
  readonly ask: (question: Omit<Question, "id">) => Promise<string>;
  /** The passphrase of the cluster CA's keys: asked once a run, kept in memory only. */
  readonly passphrase: () => Promise<string>;
  /** The passphrase that came with the command, for trying it before anything is changed. */
  readonly givenPassphrase?: string;
  /** The open connection to a node of this run, for a forwarded channel; undefined when there is none. */
  readonly host: (node: string) => Host | undefined;
  /** A warning that is recorded in the run. */
  readonly warn: (text: string) => void;
}

/** How a node's part in a run ended. */
export interface NodeEnd {
  readonly outcome: NodeOutcome;
  readonly problem?: Problem;
  /** The stage in which it failed. */
  readonly stage?: string;
}

export interface ActionResult {
  readonly changed: boolean;
  readonly outputs: Outputs;
}

/** A thing done on the bastion between stages; one file each under `src/actions/`. */
export interface Action<Schema extends z.ZodType = z.ZodType> {
  /** As written in orchestrations: `pki.issueNode`. */
  readonly name: string;
  readonly summary: string;
  /** A `z.strictObject`; every field described. Fields that a shell reads are `shellText` or `shellWords`. */
  readonly args: Schema;
  /** All names that the action may give; `kcore check` reports a path to any other name. */
  readonly outputs?: readonly string[];
  /** Arguments that name a file, program or host for the bastion: no node may decide them (S2). `command.0` is a list's first item. */
  readonly bastionNames?: readonly string[];
  /** What later stages find when it is left out (`--skip-health`); without it they cannot rest on it. */
  readonly leftOut?: Outputs;
  /** A stop ends the action at once: an unfinished one does no harm. */
  readonly endsAtStop?: true;
  /** Does it. Must be repeatable: a resumed run calls it again. @throws KcoreError */
  run(args: z.output<Schema>, context: ActionContext): Promise<ActionResult>;
  /** What `run` would give, without changing anything; `unknown` where that cannot be told. */
  plan(args: z.output<Schema>, context: ActionContext): Promise<ActionResult | "unknown">;
}

/** Declares an action. */
export function defineAction<Schema extends z.ZodType>(action: Action<Schema>): Action<Schema> {
  return action;
}
