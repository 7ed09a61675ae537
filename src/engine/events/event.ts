import type { Problem, SourcePosition } from "#errors/problem.ts";

/** How a step ended. `would-change` and `unknown` occur in dry runs only. */
export type Outcome = "ok" | "changed" | "would-change" | "failed" | "skipped" | "unknown" | "interrupted";

/** One named value before and after; `have` is absent where nothing was found. */
export interface Change {
  readonly name: string;
  readonly have?: string;
  readonly want: string;
}

/** One stage of the orchestration as views list it. */
export interface StageOutline {
  readonly id: string;
  readonly title: string;
  /** Nodes of the stage, in order; empty for an action for the whole run. */
  readonly nodes: readonly string[];
  readonly action?: string;
  /** Number of steps known when the run begins, or of actions: one number for all nodes, or a list in the order of `nodes`. */
  readonly planned?: number | readonly number[];
  /** More steps may come: the stage waits for results of an earlier stage or of the node itself. */
  readonly open?: boolean;
}

/** The work that the operator left out of a run; `by`: the flags that did so. */
export interface LeftOut {
  readonly by: string;
  readonly stages: readonly string[];
  /** `STAGE: TITLE` of steps in the other stages. */
  readonly steps: readonly string[];
  readonly nodes: readonly string[];
}

/** A large content on its way to a node. */
export interface Sending {
  readonly name: string;
  /** Bytes. */
  readonly sent: number;
  readonly total: number;
  /** Bytes a second in the last seconds; absent: not measured yet. */
  readonly rate?: number;
  /** The node that it comes from; absent: the bastion. */
  readonly from?: string;
}

/** A large content that a node has; `duration` in milliseconds, `from` as of {@link Sending}. */
export interface Sent {
  readonly name: string;
  readonly bytes: number;
  readonly duration: number;
  readonly from?: string;
}

/** A save of a disk's tables, made before the disk may be wiped or an earlier table restored. */
export interface Save {
  readonly device: string;
  /** The save's id, for `kcore disk restore-table`. */
  readonly save: string;
  readonly before: "wipe" | "restore";
}

/** The names of a step in the events of its node. */
export interface StepNames {
  readonly stage: string;
  readonly step: string;
  readonly title: string;
  readonly module: string;
}

/** An action of a stage, for an item of its list or for all of it. */
export interface ActionNames {
  readonly stage: string;
  readonly action: string;
  readonly item?: string;
}

/** The end of an action, or of a step. */
export interface WorkEnd {
  readonly outcome: Outcome;
  /**
   * `skipped`: the condition that does not hold. `unknown`: the earlier step that decides. `changed`: the owed reaction, or the watched
   * step that changed. In a dry run also the condition of a verdict: `unless STEP brings it`.
   */
  readonly reason?: string;
  readonly problem?: Problem;
  /** Of a check that counts as in order (`ok`) because its severity is `warning`: why it does not hold. */
  readonly warning?: Problem;
  /** The place of the step, or of the action's stage, in its file. */
  readonly position?: SourcePosition;
  /** Milliseconds, measured on the bastion. */
  readonly duration?: number;
}

/** The known changes of a step. */
export interface Changed {
  /** The differences before apply; in dry runs the changes that it would make. */
  readonly changes?: readonly Change[];
  /** Unified diff of a file's text. */
  readonly diff?: string;
}

export interface StepEnd extends WorkEnd, Changed {
  /** The step has no probe, so each run counts it as changed. */
  readonly always?: boolean;
  /** The exit status of a failed command: 128 and more stand for a signal, as in a shell. */
  readonly exitStatus?: number;
}

export type NodeOutcome = "done" | "failed" | "unreachable" | "interrupted" | "not-started";

/** A question whose first answer counts; every view that watches may show it. */
export interface Question {
  readonly id: string;
  readonly kind: "confirm" | "password" | "passphrase" | "grant" | "param";
  readonly text: string;
  readonly node?: string;
  /** Whether views must not show, and records not hold, the answer. */
  readonly secret: boolean;
  /** The parameter that gets the answer, for the kind `param`. */
  readonly param?: string;
}

/**
 * Everything that happens in a run: plain JSON, past tense, secrets masked before it is recorded.
 * `seq` counts from 1 without gaps; `at` is milliseconds since the epoch on the bastion.
 */
export type RunEvent = { readonly seq: number; readonly at: number } & RunEventBody;

export type RunEventBody =
  | {
      readonly type: "run.started";
      readonly runId: string;
      readonly title: string;
      readonly command: string;
      readonly nodes: readonly string[];
      /** User, address, port and jump hosts of each of `nodes`: a plan holds for these machines, not for their names. */
      readonly places?: readonly string[];
      /** By role of the roster, the indexes of its nodes in `nodes`. */
      readonly roles?: Readonly<Record<string, readonly number[]>>;
      /** By datacenter of the roster, the indexes of its nodes in `nodes`. */
      readonly dcs?: Readonly<Record<string, readonly number[]>>;
      readonly stages: readonly StageOutline[];
      readonly dryRun: boolean;
      /** Absent: the run does all its work. */
      readonly leftOut?: LeftOut;
      readonly revision?: string;
      readonly dirty?: boolean;
      readonly who: string;
      /** Set when this continues an earlier run of the same id. */
      readonly resumed?: boolean;
    }
  | { readonly type: "run.stopping"; readonly how: "stop" | "abort" | "kill"; readonly by: string }
  | {
      readonly type: "run.finished";
      readonly outcome: "done" | "failed" | "unreachable" | "interrupted";
      readonly exitCode: number;
      readonly problem?: Problem;
      /** All problems, when the input was wrong in more than one place; `problem` is then the first of them. */
      readonly problems?: readonly Problem[];
    }
  | { readonly type: "stage.started"; readonly stage: string }
  | {
      readonly type: "stage.finished";
      readonly stage: string;
      readonly outcome: "ok" | "failed" | "skipped" | "interrupted";
      readonly reason?: string;
    }
  | { readonly type: "node.connecting"; readonly node: string; readonly attempt: number }
  | { readonly type: "node.connected"; readonly node: string; readonly fingerprint: string }
  /** The connection dropped; the runner on the node finishes its step meanwhile. */
  | { readonly type: "node.disconnected"; readonly node: string; readonly reason: string; readonly retryIn?: number }
  | { readonly type: "node.waiting"; readonly node: string; readonly reason: string }
  | { readonly type: "node.rebooted"; readonly node: string }
  /** One segment was sent; `exchange` counts the round trips of this node's program so far, from 1. */
  | {
      readonly type: "node.segment";
      readonly node: string;
      readonly exchange: number;
      readonly steps: number;
      readonly bytes: number;
    }
  /** A disk's table, headers and labels were saved on the bastion (ADR 0012). `isNew`: the bastion had no equal save. */
  | ({
      readonly type: "node.saved";
      readonly node: string;
      readonly isNew: boolean;
      readonly bytes: number;
      readonly pieces: number;
    } & Save)
  /** The node neither wiped nor restored the device, so the bastion dropped the save made for that. */
  | { readonly type: "node.unsaved"; readonly node: string; readonly device: string; readonly save: string }
  /**
   * Progress of a large content on its way to the node, about once a second; from the bastion less often the longer the transfer takes.
   * Only bytes that the node has taken count.
   */
  | ({ readonly type: "node.sending"; readonly node: string } & Sending)
  /** The node has the whole content. */
  | ({ readonly type: "node.sent"; readonly node: string } & Sent)
  | { readonly type: "node.milestone"; readonly node: string; readonly milestone: string }
  | { readonly type: "node.facts"; readonly node: string; readonly facts: Readonly<Record<string, unknown>> }
  | { readonly type: "node.finished"; readonly node: string; readonly outcome: NodeOutcome; readonly problem?: Problem }
  | ({ readonly type: "step.started"; readonly node: string } & StepNames)
  | { readonly type: "step.note"; readonly node: string; readonly step: string; readonly text: string }
  /**
   * Output in the order in which both streams came, cut at line ends except in long or slow lines. Bytes that are not UTF-8 become
   * U+FFFD, and control characters are escaped (`cleanText`). `skipped`: bytes left out before the text.
   */
  | {
      readonly type: "step.output";
      readonly node: string;
      readonly step: string;
      readonly stream: "out" | "err";
      readonly text: string;
      /** The output in base64, for a step whose output is reported byte for byte; absent if `text` in UTF-8 is equal. */
      readonly bytes?: string;
      readonly skipped?: number;
    }
  | ({ readonly type: "step.finished"; readonly node: string } & StepNames & StepEnd)
  | ({ readonly type: "action.started" } & ActionNames)
  | ({ readonly type: "action.note"; readonly text: string } & ActionNames)
  /** Output of an action's command on the bastion; as `step.output`. */
  | ({
      readonly type: "action.output";
      readonly stream: "out" | "err";
      readonly text: string;
      readonly skipped?: number;
    } & ActionNames)
  | ({ readonly type: "action.finished" } & ActionNames & WorkEnd)
  | { readonly type: "question.asked"; readonly question: Question }
  | { readonly type: "question.answered"; readonly id: string; readonly by: string }
  /** `cutsOutput`: output from here on is left out, of `node` or of all. */
  | { readonly type: "warning"; readonly node?: string; readonly text: string; readonly cutsOutput?: true };

/** Reports an event; the record adds `seq` and `at`. Always a parameter, never a global. */
export type Emit = (event: RunEventBody) => void;

/** A message that a view may send to a run. */
export type RunControl =
  | { readonly type: "answer"; readonly id: string; readonly value: string }
  /** No new step starts; the run ends when the running steps have ended. */
  | { readonly type: "stop" }
  /** The process groups of the running steps get TERM, and KILL after 5 s. */
  | { readonly type: "abort" };
