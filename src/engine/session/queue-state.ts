import type { Problem } from "#errors/problem.ts";
import type { Batch, SessionEffect, SessionEvent, TransitionResult, QueuedStep, RunnerEvent, NodeFailure } from "./session-events.ts";
import type { StepInputs } from "./next-batch.ts";

/** A call of `perform`, with its remaining steps. */
export interface Call {
  readonly rest: readonly QueuedStep[];
  readonly failed: Problem | undefined;
  readonly isLast: boolean;
}

export interface Sent {
  readonly call: Call;
  readonly batch: Batch;
  /** What of it the present runner was given. */
  readonly left: Batch;
  /** Boot of the node in which it was sent; undefined until that is known. */
  readonly boot: string | undefined;
  /** The step after the batch cannot be rendered. */
  readonly unrenderable: Problem | undefined;
}

type Phase =
  | { readonly at: "idle" }
  /** Connecting and hearing what an earlier process of this run left. */
  | { readonly at: "joining"; readonly call: Call }
  /** Only a connection is asked for. */
  | { readonly at: "connecting"; readonly call: Call }
  | ({ readonly at: "sent" } & Sent)
  /** Another run holds the node: it is asked again later. */
  | ({ readonly at: "locked"; readonly problem: Problem } & Sent)
  /** All was done, and the node reboots. */
  | {
      readonly at: "rebooting";
      readonly call: Call;
      readonly boot: string | undefined;
      readonly within: number;
      /** Why it could not be reached the last time. */
      readonly seen?: string;
    }
  /** Nothing more can be done. */
  | ({ readonly at: "dead" } & NodeFailure);

/** The work of a node: what is to be sent to it, and what came of it. */
export interface Queue extends StepInputs {
  readonly phase: Phase;
  readonly boot: string | undefined;
  readonly isStopped: boolean;
  /** It was told once that the node is locked. */
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

export function done(call: Call, nodeFailure?: NodeFailure): SessionEffect {
  return { do: "return", nodeFailure, failed: call.failed };
}

export function expectReboot(within: number | undefined): SessionEvent {
  return { to: "connection", event: { type: "expect-reboot", within } };
}

export function tellRunner(event: RunnerEvent): SessionEvent {
  return { to: "runner", event };
}

export function led(effects: readonly SessionEffect[], next: TransitionResult<Queue>): TransitionResult<Queue> {
  return { ...next, effects: [...effects, ...next.effects] };
}

export function go(state: Queue, phase: Phase, ...effects: readonly (SessionEffect | SessionEvent)[]): TransitionResult<Queue> {
  return { state: { ...state, phase }, effects };
}
