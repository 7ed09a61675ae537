import type { Problem } from "#errors/problem.ts";
import type { StepInputs } from "./next-batch.ts";
import type {
  Batch,
  NodeFailure,
  QueuedStep,
  SessionEffect,
  SessionEvent,
  TransitionResult,
} from "./session-events.ts";

/** A call of `perform`, with its remaining steps. */
export interface PerformCall {
  readonly rest: readonly QueuedStep[];
  /** Why the call's first failed step failed. */
  readonly failed: Problem | undefined;
  readonly isLast: boolean;
}

export interface SentBatch {
  readonly call: PerformCall;
  readonly batch: Batch;
  /** The part of the batch that the present runner was given. */
  readonly left: Batch;
  /** The node's boot at the time of sending; undefined until the node's hello. */
  readonly boot: string | undefined;
  /** Why the step after the batch cannot be rendered. */
  readonly unrenderable: Problem | undefined;
}

type QueuePhase =
  | { readonly at: "idle" }
  /** The journal of an earlier process of this run is being read. */
  | { readonly at: "joining"; readonly call: PerformCall }
  /** The call needs nothing but a connection. */
  | { readonly at: "connecting"; readonly call: PerformCall }
  | ({ readonly at: "sent" } & SentBatch)
  /** Another run holds the node's lock; the batch is sent again later. */
  | ({ readonly at: "locked"; readonly problem: Problem } & SentBatch)
  /** The batch is done, and its last step reboots the node. */
  | {
      readonly at: "rebooting";
      readonly call: PerformCall;
      readonly boot: string | undefined;
      readonly within: number;
      /** Why the last attempt to reach the node failed. */
      readonly seen?: string;
    }
  /** No further work is possible. */
  | ({ readonly at: "dead" } & NodeFailure);

/** The work of a node: its waiting steps, and the values that later steps may use. */
export interface Queue extends StepInputs {
  readonly phase: QueuePhase;
  readonly boot: string | undefined;
  readonly isStopped: boolean;
  /** The wait for the node's lock was reported. */
  readonly hasWaited: boolean;
}

export const emptyQueue: Queue = {
  phase: { at: "idle" },
  drafts: new Map(),
  registered: new Map(),
  facts: undefined,
  boot: undefined,
  isStopped: false,
  hasWaited: false,
};

export function returned(call: PerformCall, nodeFailure?: NodeFailure): SessionEffect {
  return { do: "return", nodeFailure, failed: call.failed };
}

/** The transition with these effects before its own. */
export function after(effects: readonly SessionEffect[], result: TransitionResult<Queue>): TransitionResult<Queue> {
  return { ...result, effects: [...effects, ...result.effects] };
}

export function go(
  state: Queue,
  phase: QueuePhase,
  ...effects: readonly (SessionEffect | SessionEvent)[]
): TransitionResult<Queue> {
  return { state: { ...state, phase }, effects };
}
