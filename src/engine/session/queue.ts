import type { Problem } from "#errors/problem.ts";
import { answering, firstFailure, isRebooting, leftOf, rebootOf, settle } from "./batch.ts";
import type { Batch, SessionEvent, TransitionResult, QueueEvent, TransitionContext, NodeFailure } from "./session-events.ts";
import { rebootStopped, rebootTooLong } from "./problems.ts";
import { done, expectReboot, go, led, tellRunner, type Call, type Queue, type Sent } from "./queue-state.ts";
import { take } from "./next-batch.ts";

const lockedDelay = 2_000;

/** @throws what a draft throws beside KcoreError */
export function queueTransition(state: Queue, event: QueueEvent, context: TransitionContext): TransitionResult<Queue> {
  const { phase } = state;
  switch (event.type) {
    case "perform": {
      const drafts = new Map([...state.drafts, ...event.steps.map(({ key, draft }) => [key, draft] as const)]);
      return begin({ ...state, drafts }, { rest: event.steps, failed: undefined, isLast: event.isLast }, context);
    }
    case "rest":
      return go(state, phase, phase.at === "dead" ? { do: "rested" } : tellRunner(event));
    case "finish":
      if (phase.at !== "dead") return go(state, phase, tellRunner(event));
      // A runner that still lives must not wait for the bastion to come back.
      return go(
        state,
        phase,
        { do: "send-command", text: `fin ${event.outcome}\n` },
        { to: "connection", event: { type: "disconnect" } },
        { do: "finished" },
      );
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
      const known = { ...state, boot: event.boot };
      return go(known, phase.at === "sent" ? { ...phase, boot: phase.boot ?? event.boot } : phase);
    }
    case "ended":
      return phase.at === "sent" ? ended(state, phase, context) : go(state, phase);
    case "sent":
      return go(state, phase.at === "sent" ? { ...phase, boot: event.isFirst ? undefined : state.boot } : phase);
    case "withheld":
      return phase.at === "sent" ? go(state, { at: "idle" }, done(phase.call)) : go(state, phase);
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
  if (phase.at === "connecting") return go(state, { at: "idle" }, done(phase.call));
  if (phase.at === "rebooting" && phase.boot !== state.boot)
    return led([{ do: "clear-timer", timer: "reboot" }], goOn(state, phase.call, context));
  if (phase.at !== "joining") return go(state, phase);
  return hasRunner ? go(state, phase, tellRunner({ type: "take-over" })) : joined(state, phase.call, context);
}

function begin(state: Queue, call: Call, context: TransitionContext): TransitionResult<Queue> {
  if (state.phase.at === "dead") return go(state, state.phase, done(call, state.phase));
  if (!context.resumed) return joined(state, call, context);
  return go(state, { at: "joining", call }, tellRunner({ type: "join" }));
}

function joined(state: Queue, call: Call, context: TransitionContext): TransitionResult<Queue> {
  if (call.rest.length > 0) return goOn(state, call, context);
  return go(state, { at: "connecting", call }, tellRunner({ type: "connect-only" }));
}

/** Sends what can be sent next; without any, the call is over. */
function goOn(state: Queue, call: Call, { heard }: TransitionContext): TransitionResult<Queue> {
  const { failed } = call;
  if (call.rest.length === 0 || state.isStopped) return go(state, { at: "idle" }, expectReboot(undefined), done(call));
  const { ends, registered, rest, unrenderable, steps, facts } = take(call.rest, state, heard, failed !== undefined);
  const known = { ...state, registered };
  const isLast = call.isLast && rest.length === 0 && !unrenderable && !failed && !facts;
  const batch = { steps, facts, isLast: isLast && steps.at(-1)?.plan.step.ends === undefined };
  if (batch.steps.length > 0 || batch.facts) return led(ends, sendNew(known, { ...call, rest }, batch, unrenderable));
  // Nothing answers what cannot be rendered.
  return led(
    ends,
    go(known, { at: "idle" }, expectReboot(undefined), done({ ...call, failed: failed ?? unrenderable })),
  );
}

function sendNew(state: Queue, call: Call, batch: Batch, unrenderable?: Problem): TransitionResult<Queue> {
  return send(state, { call, batch, left: batch, boot: undefined, unrenderable });
}

function send(state: Queue, { call, batch, left, boot, unrenderable }: Sent): TransitionResult<Queue> {
  const phase = { at: "sent", call, batch, left, boot, unrenderable } as const;
  return go(state, phase, expectReboot(rebootOf(batch)), tellRunner({ type: "work", batch: left }));
}

function ended(state: Queue, sent: Sent, context: TransitionContext): TransitionResult<Queue> {
  const { call, batch, boot, unrenderable } = sent;
  const { heard, node } = context;
  const { known, effects } = settle(state, batch, context);
  const settled = { ...state, ...known };
  const within = rebootOf(batch);
  // It may have booted already, when the connection broke before it could tell.
  if (within !== undefined && isRebooting(batch, heard) && boot === state.boot)
    return go(
      settled,
      { at: "rebooting", call, boot, within },
      ...effects,
      { do: "emit", event: { type: "node.waiting", node, reason: "it reboots" } },
      { do: "start-timer", timer: "reboot", milliseconds: within },
    );
  const failed = call.failed ?? firstFailure(batch, heard) ?? unrenderable;
  const rest = failed ? answering(call.rest, batch, heard) : call.rest;
  return led(effects, goOn(settled, { ...call, rest, failed }, context));
}

/** A new runner is given what is left. */
function lost(state: Queue, sent: Sent, context: TransitionContext): TransitionResult<Queue> {
  if (isRebooting(sent.batch, context.heard)) return ended(state, sent, context);
  const { left, notes } = leftOf(sent.batch, context);
  return led(notes, send(state, { ...sent, left }));
}

function locked(state: Queue, sent: Sent, problem: Problem, { node, waitForLock }: TransitionContext): TransitionResult<Queue> {
  if (!waitForLock || state.isStopped) return die(state, { problem, outcome: "failed" });
  const waiting = { do: "emit", event: { type: "node.waiting", node, reason: problem.message } } as const;
  return go(
    { ...state, hasWaited: true },
    { ...sent, at: "locked", problem },
    ...(state.hasWaited ? [] : [waiting]),
    { to: "connection", event: { type: "disconnect" } },
    { do: "start-timer", timer: "lock", milliseconds: lockedDelay },
  );
}

function die(state: Queue, { problem, outcome }: NodeFailure): TransitionResult<Queue> {
  const { phase } = state;
  const forget = (["abort", "lock", "reboot"] as const).map((timer) => ({ do: "clear-timer", timer }) as const);
  const calling = "call" in phase ? [done(phase.call, { problem, outcome })] : [];
  const letGo: SessionEvent = { to: "connection", event: { type: "stop-reconnecting" } };
  return go(state, { at: "dead", problem, outcome }, ...forget, letGo, ...calling);
}
