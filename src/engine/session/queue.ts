import type { Problem } from "#errors/problem.ts";
import {
  batchResults,
  failureHandlers,
  firstFailure,
  isRebooting,
  rebootLimit,
  remainingBatch,
} from "./segment-steps.ts";
import { nextBatch, type StepInputs } from "./next-segment.ts";
import { rebootStopped, rebootTooLong } from "./problems.ts";
import {
  go,
  toConnection,
  toRunner,
  type Batch,
  type NodeFailure,
  type QueuedStep,
  type QueueEvent,
  type SessionEffect,
  type SessionEvent,
  type TransitionContext,
  type TransitionResult,
} from "./session-events.ts";

/** A call of `perform`, with its remaining steps. */
interface PerformCall {
  readonly rest: readonly QueuedStep[];
  /** Why the call's first failed step failed. */
  readonly failed: Problem | undefined;
  readonly isLast: boolean;
}

interface SentBatch {
  readonly call: PerformCall;
  readonly batch: Batch;
  /** The part of the batch that the present runner was given. */
  readonly remaining: Batch;
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
  /** The node's present boot; undefined before its first hello. */
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

/** Milliseconds between two attempts to take the node's lock. */
const lockRetryPause = 2_000;

/** The queue's state and effects after an event. @throws errors of rendering a draft, except KcoreError, which fails the step */
export function queueTransition(state: Queue, event: QueueEvent, context: TransitionContext): TransitionResult<Queue> {
  const { phase } = state;
  switch (event.type) {
    case "perform": {
      const drafts = new Map([...state.drafts, ...event.steps.map(({ key, draft }) => [key, draft] as const)]);
      return begin({ ...state, drafts }, { rest: event.steps, failed: undefined, isLast: event.isLast }, context);
    }
    case "looked": {
      const drafts = event.steps.map(({ key, draft }) => [key, draft] as const);
      return go({ ...state, drafts: new Map([...state.drafts, ...drafts]), registered: event.registered }, phase);
    }
    case "rest":
      return go(state, phase, phase.at === "dead" ? { do: "rested" } : toRunner(event));
    case "finish":
      // The runner belongs to the other process.
      if (phase.at === "dead" && phase.problem.code === "RUN_SUPERSEDED")
        return go(state, phase, { do: "finished" }, toConnection({ type: "disconnect" }));
      return go(state, phase, toRunner(phase.at === "dead" ? { type: "give-up", outcome: event.outcome } : event));
    case "stop": {
      const stopped = { ...state, isStopped: true };
      if (phase.at === "locked") return die(stopped, { problem: phase.problem, outcome: "failed" });
      if (phase.at !== "rebooting") return go(stopped, phase);
      return die(stopped, { problem: rebootStopped(context.node), outcome: "interrupted" });
    }
    case "failed":
      return phase.at === "dead" ? go(state, phase) : die(state, event);
    case "up":
      return cameUp(state, event.hasRunner, context);
    case "joined":
      return phase.at === "joining" ? joined(state, phase.call, context) : go(state, phase);
    case "hello": {
      const updated = { ...state, boot: event.boot };
      return go(updated, phase.at === "sent" ? { ...phase, boot: phase.boot ?? event.boot } : phase);
    }
    case "ended":
      return phase.at === "sent" ? ended(state, phase, context) : go(state, phase);
    case "sent":
      return go(state, phase.at === "sent" ? { ...phase, boot: event.isFirst ? undefined : state.boot } : phase);
    case "withheld":
      return phase.at === "sent" ? go(state, { at: "idle" }, returned(phase.call)) : go(state, phase);
    case "lost":
      return phase.at === "sent" ? lost(state, phase, context) : go(state, phase);
    case "locked":
      return phase.at === "sent" ? locked(state, phase, event.problem, context) : go(state, phase);
    case "lock-retry-due":
      return phase.at === "locked" ? send(state, phase) : go(state, phase);
    case "reconnect-failed":
      return go(state, phase.at === "rebooting" ? { ...phase, seen: event.problem.message } : phase);
    case "reboot-timeout":
      if (phase.at !== "rebooting") return go(state, phase);
      return die(state, { problem: rebootTooLong(context, phase.within, phase.seen), outcome: "failed" });
  }
}

function cameUp(state: Queue, hasRunner: boolean, context: TransitionContext): TransitionResult<Queue> {
  const { phase } = state;
  if (phase.at === "connecting") return go(state, { at: "idle" }, returned(phase.call));
  if (phase.at === "rebooting" && phase.boot !== state.boot)
    return after([{ do: "clear-timer", timer: "reboot" }], sendNext(state, phase.call, context));
  if (phase.at !== "joining") return go(state, phase);
  return hasRunner ? go(state, phase, toRunner({ type: "take-over" })) : joined(state, phase.call, context);
}

function begin(state: Queue, call: PerformCall, context: TransitionContext): TransitionResult<Queue> {
  if (state.phase.at === "dead") return go(state, state.phase, returned(call, state.phase));
  if (!context.resumed) return joined(state, call, context);
  return go(state, { at: "joining", call }, toRunner({ type: "join" }));
}

function joined(state: Queue, call: PerformCall, context: TransitionContext): TransitionResult<Queue> {
  if (call.rest.length > 0) return sendNext(state, call, context);
  return go(state, { at: "connecting", call }, toRunner({ type: "connect-only" }));
}

/** Sends the next batch; without one, the call is over. */
function sendNext(state: Queue, call: PerformCall, { results }: TransitionContext): TransitionResult<Queue> {
  const { failed } = call;
  if (call.rest.length === 0 || state.isStopped)
    return go(state, { at: "idle" }, expectReboot(undefined), returned(call));
  const { ends, registered, rest, unrenderable, steps, facts } = nextBatch(
    call.rest,
    state,
    results,
    failed !== undefined,
  );
  const updated = { ...state, registered };
  const isLast = call.isLast && rest.length === 0 && !unrenderable && !failed && !facts;
  const batch = { steps, facts, isLast: isLast && steps.at(-1)?.plan.step.ends === undefined };
  if (batch.steps.length > 0 || batch.facts)
    return after(
      ends,
      send(updated, { call: { ...call, rest }, batch, remaining: batch, boot: undefined, unrenderable }),
    );
  // `onFailure` steps do not react to a step that cannot be rendered, so nothing follows.
  return after(
    ends,
    go(updated, { at: "idle" }, expectReboot(undefined), returned({ ...call, failed: failed ?? unrenderable })),
  );
}

function send(state: Queue, { call, batch, remaining, boot, unrenderable }: SentBatch): TransitionResult<Queue> {
  const phase = { at: "sent", call, batch, remaining, boot, unrenderable } as const;
  return go(state, phase, expectReboot(rebootLimit(batch)), toRunner({ type: "work", batch: remaining }));
}

function ended(state: Queue, sent: SentBatch, context: TransitionContext): TransitionResult<Queue> {
  const { call, batch, boot, unrenderable } = sent;
  const { results, node } = context;
  const { inputs, effects } = batchResults(state, batch, context);
  const updated = { ...state, ...inputs };
  const within = rebootLimit(batch);
  // If the connection broke first, the node has perhaps booted before the end of the batch was read.
  if (within !== undefined && isRebooting(batch, results) && boot === state.boot)
    return go(
      updated,
      { at: "rebooting", call, boot, within },
      ...effects,
      { do: "emit", event: { type: "node.waiting", node, reason: "it reboots" } },
      { do: "start-timer", timer: "reboot", milliseconds: within },
    );
  const failed = call.failed ?? firstFailure(batch, results) ?? unrenderable;
  const rest = failed ? failureHandlers(call.rest, batch, results) : call.rest;
  return after(effects, sendNext(updated, { ...call, rest, failed }, context));
}

/** A lost runner's remaining steps are sent with a new runner. */
function lost(state: Queue, sent: SentBatch, context: TransitionContext): TransitionResult<Queue> {
  if (isRebooting(sent.batch, context.results)) return ended(state, sent, context);
  const { remaining, notes } = remainingBatch(sent.batch, context);
  return after(notes, send(state, { ...sent, remaining }));
}

function locked(
  state: Queue,
  sent: SentBatch,
  problem: Problem,
  { node, waitForLock }: TransitionContext,
): TransitionResult<Queue> {
  if (!waitForLock || state.isStopped) return die(state, { problem, outcome: "failed" });
  const waiting = { do: "emit", event: { type: "node.waiting", node, reason: problem.message } } as const;
  return go(
    { ...state, hasWaited: true },
    { ...sent, at: "locked", problem },
    ...(state.hasWaited ? [] : [waiting]),
    toConnection({ type: "disconnect" }),
    { do: "start-timer", timer: "lock", milliseconds: lockRetryPause },
  );
}

function die(state: Queue, { problem, outcome }: NodeFailure): TransitionResult<Queue> {
  const { phase } = state;
  const clear = (["abort", "lock", "reboot"] as const).map((timer) => ({ do: "clear-timer", timer }) as const);
  const ends = "call" in phase ? [returned(phase.call, { problem, outcome })] : [];
  return go(state, { at: "dead", problem, outcome }, ...clear, toConnection({ type: "stop-reconnecting" }), ...ends);
}

function expectReboot(within: number | undefined): SessionEvent {
  return toConnection({ type: "expect-reboot", within });
}

function returned(call: PerformCall, nodeFailure?: NodeFailure): SessionEffect {
  return { do: "return", nodeFailure, failed: call.failed };
}

/** The transition with these effects before its own. */
function after(effects: readonly SessionEffect[], result: TransitionResult<Queue>): TransitionResult<Queue> {
  return { ...result, effects: [...effects, ...result.effects] };
}
