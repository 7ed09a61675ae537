import { createHash } from "node:crypto";
import type { z } from "zod";
import type { Problem } from "#errors/problem.ts";
import type { NodeOutcome, Question } from "#engine/events/event.ts";
import type { Trust } from "#engine/project/project.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";

/** An action's results for later stages: `stages.ID.…` in expressions; after `each: TARGET`, the results for the same node. */
export type Outputs = Readonly<Record<string, unknown>>;

/** The inputs of an action, and all means by which it may change anything. */
export interface ActionContext {
  readonly runId: string;
  /** Random for each run: `run.challenge` in expressions, for proofs of possession. */
  readonly challenge: string;
  readonly dryRun: boolean;
  /** Absolute path of the project. */
  readonly project: string;
  /** The users whose files of the project are trusted (S-20); absent: all users. */
  readonly trust?: Trust;
  /** The folder of contexts and certificates (`~/.kcore`, or KCORE_HOME). */
  readonly home: string;
  /** The context chosen with `--context`; absent: the current one. */
  readonly context?: string;
  /** The node of an action with `each: TARGET`. */
  readonly node?: NodeEntry;
  /** Every node of the roster. */
  readonly nodes: ReadonlyMap<string, NodeEntry>;
  /** Names of the nodes of the run's stages. */
  readonly targets: readonly string[];
  /** The outcome and the problem of each node whose part in this run is over. */
  readonly ended: ReadonlyMap<string, NodeEnd>;
  readonly signal: AbortSignal;
  /** Shows one line of progress. */
  readonly note: (text: string) => void;
  /** Records a command's output, whole lines at a time. */
  readonly output: (stream: "out" | "err", text: string) => void;
  /** Asks the operators who watch the run; resolves with the first answer. Rejects when the run is stopped or no operator answers. */
  readonly ask: (question: Omit<Question, "id">) => Promise<string>;
  /** The passphrase of the cluster CA's keys: asked for once a run, kept in memory only. */
  readonly passphrase: () => Promise<string>;
  /** The passphrase that came with the command, so that an action can try it before any change. */
  readonly givenPassphrase?: string;
  /** Records a warning in the run. */
  readonly warn: (text: string) => void;
}

/** The end of a node's part in a run. */
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

/** Work on the bastion between stages; one file for each action under `src/actions/`. */
export interface Action<Schema extends z.ZodType = z.ZodType> {
  /** As written in orchestrations: `pki.issueNode`. */
  readonly name: string;
  readonly summary: string;
  /** A `z.strictObject`; every field described. Fields that a shell reads are `shellText` or `shellWords`. */
  readonly args: Schema;
  /** All names of the action's outputs; `kcore check` reports a path to any other name. */
  readonly outputs?: readonly string[];
  /** Arguments that name a file, program or host for the bastion: no node's answer may decide them. `command.0` is a list's first item. */
  readonly bastionNames?: readonly string[];
  /** The outputs of an action that `--skip-health` leaves out; absent: later stages cannot use them then. */
  readonly leftOut?: Outputs;
  /** A stop ends the action at once, since ending it in the middle does no harm. */
  readonly endsAtStop?: true;
  /** Carries the action out. Must be repeatable: a resumed run calls it again. @throws KcoreError */
  run(args: z.output<Schema>, context: ActionContext): Promise<ActionResult>;
  /** The result that `run` would have, without a change; `unknown` if it cannot be foreseen. */
  plan(args: z.output<Schema>, context: ActionContext): Promise<ActionResult | "unknown">;
}

export function defineAction<Schema extends z.ZodType>(action: Action<Schema>): Action<Schema> {
  return action;
}

/**
 * The text that nodes sign in a run to prove that they hold a key (S-14): unknown before the run. It is a hash of the run's
 * nonce, since the nonce itself frames nodes' lines and stays secret.
 */
export function challengeOf(nonce: string): string {
  return createHash("sha256").update(`kcore challenge ${nonce}`).digest("base64url");
}
