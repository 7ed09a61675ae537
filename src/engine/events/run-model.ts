import type { Problem } from "#errors/problem.ts";
import type {
  ActionNames,
  Change,
  Changed,
  LeftOut,
  NodeOutcome,
  Question,
  Save,
  Sending,
  Sent,
  StageOutline,
  StepEnd,
  StepNames,
  WorkEnd,
} from "./event.ts";

/** The state of a run after some of its events: plain values. */
export interface RunModel {
  readonly runId: string;
  readonly title: string;
  readonly command: string;
  readonly who: string;
  readonly revision?: string;
  readonly dirty: boolean;
  readonly dryRun: boolean;
  readonly resumed: boolean;
  readonly leftOut?: LeftOut;
  readonly state: "starting" | "running" | "stopping" | "finished";
  /** How the run was stopped, and the operator or signal that did it. */
  readonly stopping?: { readonly how: "stop" | "abort" | "kill"; readonly by: string };
  /** Milliseconds since the epoch; 0 before the first event. */
  readonly startedAt: number;
  /** As `startedAt`, for the present part: a resumed run has several. */
  readonly partAt: number;
  /** Milliseconds that the earlier parts took. */
  readonly ranBefore: number;
  readonly endedAt?: number;
  readonly lastAt: number;
  readonly lastSeq: number;
  readonly outcome?: "done" | "failed" | "unreachable" | "interrupted";
  readonly exitCode?: number;
  /** Problems that ended the run itself; the problems of nodes and steps are in their models. */
  readonly problems: readonly Problem[];
  readonly stages: readonly StageModel[];
  /** In the order of the run. */
  readonly nodes: ReadonlyMap<string, NodeModel>;
  /** Asked and not answered yet. */
  readonly questions: readonly Question[];
  readonly warnings: readonly { readonly node?: string; readonly text: string }[];
}

export interface StageModel extends StageOutline {
  readonly state: "pending" | "running" | "ok" | "failed" | "skipped" | "interrupted";
  readonly reason?: string;
  /** Milliseconds since the epoch; absent: the stage has not begun. */
  readonly startedAt?: number;
  /** Milliseconds since the epoch; absent: the stage has not ended. */
  readonly endedAt?: number;
  readonly actions: readonly ActionModel[];
}

/** A step or an action in its last attempt. */
interface LastAttempt {
  readonly startedAt: number;
  /** An ended attempt came before: the node rebooted, or the run was resumed. */
  readonly again?: boolean;
  /** The change of an earlier attempt: a later attempt that finds the step in order does not undo the change. */
  readonly before?: Changed;
  readonly note?: string;
  /** Milliseconds since the epoch: its last output, note or progress. */
  readonly heardAt?: number;
  /** The last whole lines of both streams, or the end of a longer last line: at most {@link MAX_TAIL} characters. */
  readonly tail: string;
  /** Number of lines before the tail, which only the record has; absent: none. */
  readonly above?: number;
  /** For each line of the tail its stream, `o` or `e`; absent: all lines came by stdout. */
  readonly streams?: string;
}

/** An action; it has no outcome while it runs. */
export interface ActionModel extends ActionNames, LastAttempt, Partial<WorkEnd> {}

/** A step; it has no outcome while it runs. */
export interface StepModel extends StepNames, LastAttempt, Partial<StepEnd> {
  readonly changes: readonly Change[];
  readonly always: boolean;
}

export interface NodeModel {
  readonly name: string;
  /** As in the roster when the run began; absent: none, or a record of an earlier version. */
  readonly roles?: readonly string[];
  /** As in the roster when the run began; absent in records of earlier versions. */
  readonly dc?: string;
  /** How the bastion reaches the node: user, address, port, jump hosts. */
  readonly place?: string;
  readonly state: "pending" | "connecting" | "connected" | "disconnected" | "waiting" | "rebooting" | "finished";
  /** The thing that the node waits for, or the reason of a lost connection. */
  readonly reason?: string;
  readonly fingerprint?: string;
  /** Round trips of the node's program so far. */
  readonly exchanges: number;
  /** The number of ended steps and of the steps in the last segment, together; absent before the first segment. */
  readonly planned?: number;
  /** Milliseconds since the epoch: the first attempt to connect in this part of the run. */
  readonly startedAt?: number;
  /** Milliseconds since the epoch: the node's end in this part of the run. */
  readonly endedAt?: number;
  /** Milliseconds that the node took in earlier parts of the run. */
  readonly ranBefore?: number;
  readonly milestone?: string;
  readonly saved?: readonly Save[];
  /** The content on its way to the node; `since`: when its first progress was reported. */
  readonly sending?: Sending & { readonly since: number };
  readonly sent?: readonly Sent[];
  readonly facts?: Readonly<Record<string, unknown>>;
  readonly outcome?: NodeOutcome;
  readonly problem?: Problem;
  /** In the order in which they began. */
  readonly steps: readonly StepModel[];
}

/** Characters of a step's output that the model keeps. */
export const MAX_TAIL = 4096;

/** The model before the first event. */
export const emptyRun: RunModel = {
  runId: "",
  title: "",
  command: "",
  who: "",
  dirty: false,
  dryRun: false,
  resumed: false,
  state: "starting",
  startedAt: 0,
  partAt: 0,
  ranBefore: 0,
  lastAt: 0,
  lastSeq: 0,
  problems: [],
  stages: [],
  nodes: new Map(),
  questions: [],
  warnings: [],
};

/** Milliseconds that the run took on the clock, from its start to its end or until `now`; without the time between its parts. */
export function runTime({ partAt, endedAt, ranBefore, lastAt }: RunModel, now: number = lastAt): number {
  return ranBefore + (partAt === 0 ? 0 : Math.max(0, (endedAt ?? now) - partAt));
}

/** Milliseconds that a node took, from its first attempt to connect to its end, as in `runTime`; undefined: the node has not begun. */
export function nodeTime({ startedAt, endedAt, ranBefore }: NodeModel, now: number): number | undefined {
  if (startedAt === undefined) return ranBefore;
  return (ranBefore ?? 0) + Math.max(0, (endedAt ?? now) - startedAt);
}
