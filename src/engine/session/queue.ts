import type { Problem } from "#errors/problem.ts";
import { answering, firstFailure, isRebooting, leftOf, rebootOf, settle } from "./batch.ts";
import type { Batch, Message, Next, QueueEvent, Setting, Trouble } from "./session-events.ts";
import { rebootStopped, rebootTooLong } from "./problems.ts";
import { done, expectReboot, go, led, tellRunner, type Call, type Queue, type Sent } from "./queue-state.ts";
import { take } from "./next-batch.ts";

const lockedDelay = 2_000;

/** @throws what a draft throws beside KcoreError */
export function queueAfter(state: Queue, event: QueueEvent, setting: Setting): Next<Queue> {
  const { phase } = state;
  switch (event.type) {
    case "perform": {
      const drafts = new Map([...state.drafts, ...event.steps.map(({ key, draft }) => [key, draft] as const)]);
      return begin({ ...state, drafts }, { rest: event.steps, failed: undefined, isLast: event.isLast }, setting);
    }
    case "rest":
      return go(state, phase, phase.at === "dead" ? { do: "rested" } : tellRunner(event));
    case "finish":
      if (phase.at !== "dead") return go(state, phase, tellRunner(event));
      // A runner that still lives must not wait for the bastion to come back.
      return go(
        state,
        phase,
        { do: "say", text: `fin ${event.outcome}\n` },
        { to: "connection", event: { type: "hang-up" } },
        { do: "finished" },
      );
    case "stop": {
      const stopped = { ...state, isStopped: true };
      if (phase.at === "locked") return die(stopped, { problem: phase.problem, outcome: "failed" });
      if (phase.at !== "rebooting") return go(stopped, phase);
      return die(stopped, { problem: rebootStopped(setting.node), outcome: "interrupted" });
    }
    case "failed":
      return phase.at === "dead" ? go(state, phase) : die(state, event);
    case "up":
      return cameUp(state, event.hasRunner, setting);
    case "joined":
      return phase.at === "joining" ? joined(state, phase.call, setting) : go(state, phase);
    case "hello": {
      const known = { ...state, boot: event.boot };
      return go(known, phase.at === "sent" ? { ...phase, boot: phase.boot ?? event.boot } : phase);
    }
    case "ended":
      return phase.at === "sent" ? ended(state, phase, setting) : go(state, phase);
    case "sent":
      return go(state, phase.at === "sent" ? { ...phase, boot: event.isFirst ? undefined : state.boot } : phase);
    case "withheld":
      return phase.at === "sent" ? go(state, { at: "idle" }, done(phase.call)) : go(state, phase);
    case "lost":
      return phase.at === "sent" ? lost(state, phase, setting) : go(state, phase);
    case "locked":
      return phase.at === "sent" ? locked(state, phase, event.problem, setting) : go(state, phase);
    case "lock-waited":
      return phase.at === "locked" ? send(state, phase) : go(state, phase);
    case "away":
      return go(state, phase.at === "rebooting" ? { ...phase, seen: event.problem.message } : phase);
    case "reboot-late":
      if (phase.at !== "rebooting") return go(state, phase);
      return die(state, { problem: rebootTooLong(setting, phase.within, phase.seen), outcome: "failed" });
  }
}

function cameUp(state: Queue, hasRunner: boolean, setting: Setting): Next<Queue> {
  const { phase } = state;
  if (phase.at === "looking") return go(state, { at: "idle" }, done(phase.call));
  if (phase.at === "rebooting" && phase.boot !== state.boot)
    return led([{ do: "forget", timer: "reboot" }], goOn(state, phase.call, setting));
  if (phase.at !== "joining") return go(state, phase);
  return hasRunner ? go(state, phase, tellRunner({ type: "take-over" })) : joined(state, phase.call, setting);
}

function begin(state: Queue, call: Call, setting: Setting): Next<Queue> {
  if (state.phase.at === "dead") return go(state, state.phase, done(call, state.phase));
  if (!setting.resumed) return joined(state, call, setting);
  return go(state, { at: "joining", call }, tellRunner({ type: "join" }));
}

function joined(state: Queue, call: Call, setting: Setting): Next<Queue> {
  if (call.rest.length > 0) return goOn(state, call, setting);
  return go(state, { at: "looking", call }, tellRunner({ type: "look" }));
}

/** Sends what can be sent next; without any, the call is over. */
function goOn(state: Queue, call: Call, { heard }: Setting): Next<Queue> {
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

function sendNew(state: Queue, call: Call, batch: Batch, unrenderable?: Problem): Next<Queue> {
  return send(state, { call, batch, left: batch, boot: undefined, unrenderable });
}

function send(state: Queue, { call, batch, left, boot, unrenderable }: Sent): Next<Queue> {
  const phase = { at: "sent", call, batch, left, boot, unrenderable } as const;
  return go(state, phase, expectReboot(rebootOf(batch)), tellRunner({ type: "work", batch: left }));
}

function ended(state: Queue, sent: Sent, setting: Setting): Next<Queue> {
  const { call, batch, boot, unrenderable } = sent;
  const { heard, node } = setting;
  const { known, effects } = settle(state, batch, setting);
  const settled = { ...state, ...known };
  const within = rebootOf(batch);
  // It may have booted already, when the connection broke before it could tell.
  if (within !== undefined && isRebooting(batch, heard) && boot === state.boot)
    return go(
      settled,
      { at: "rebooting", call, boot, within },
      ...effects,
      { do: "emit", event: { type: "node.waiting", node, reason: "it reboots" } },
      { do: "wait", timer: "reboot", milliseconds: within },
    );
  const failed = call.failed ?? firstFailure(batch, heard) ?? unrenderable;
  const rest = failed ? answering(call.rest, batch, heard) : call.rest;
  return led(effects, goOn(settled, { ...call, rest, failed }, setting));
}

/** A new runner is given what is left. */
function lost(state: Queue, sent: Sent, setting: Setting): Next<Queue> {
  if (isRebooting(sent.batch, setting.heard)) return ended(state, sent, setting);
  const { left, notes } = leftOf(sent.batch, setting);
  return led(notes, send(state, { ...sent, left }));
}

function locked(state: Queue, sent: Sent, problem: Problem, { node, waitForLock }: Setting): Next<Queue> {
  if (!waitForLock || state.isStopped) return die(state, { problem, outcome: "failed" });
  const waiting = { do: "emit", event: { type: "node.waiting", node, reason: problem.message } } as const;
  return go(
    { ...state, hasWaited: true },
    { ...sent, at: "locked", problem },
    ...(state.hasWaited ? [] : [waiting]),
    { to: "connection", event: { type: "hang-up" } },
    { do: "wait", timer: "lock", milliseconds: lockedDelay },
  );
}

function die(state: Queue, { problem, outcome }: Trouble): Next<Queue> {
  const { phase } = state;
  const forget = (["abort", "lock", "reboot"] as const).map((timer) => ({ do: "forget", timer }) as const);
  const calling = "call" in phase ? [done(phase.call, { problem, outcome })] : [];
  const letGo: Message = { to: "connection", event: { type: "let-go" } };
  return go(state, { at: "dead", problem, outcome }, ...forget, letGo, ...calling);
}
