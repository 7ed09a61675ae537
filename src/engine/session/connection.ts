import { shellUnusable } from "#engine/transport/unreachable.ts";
import type { Problem } from "#errors/problem.ts";
import {
  go,
  stay,
  tellRunner,
  type Connection,
  type ConnectionPhase,
  type Retry,
  type Wanted,
} from "./connection-state.ts";
import type { ConnectionEvent, SessionEffect, SessionEvent, TransitionResult, TransitionContext, NodeFailure } from "./session-events.ts";
import { confirmationDue, connectionLost, rebootStopped, rebootTooLong, unreachable } from "./problems.ts";

const rebootPause = 2_000;
const renewalPause = 2_000;
/** Milliseconds that a node may take to take a change back. */
const renewalSlack = 60_000;

export function connectionTransition(state: Connection, event: ConnectionEvent, context: TransitionContext): TransitionResult<Connection> {
  const { phase } = state;
  const isBeingMade = phase.at === "connecting" || phase.at === "starting";
  const isThere = phase.at === "attaching" || phase.at === "open" || phase.at === "closing";
  switch (event.type) {
    case "connect":
      if (phase.at === "cancelling") return go(state, { ...phase, next: event });
      return phase.at === "none" ? dial(state, event) : stay(state);
    case "reached":
      if (phase.at !== "connecting") return stay(state);
      return go({ ...state, unanswered: state.unanswered + 1, reachedAt: context.now }, { ...phase, at: "starting" });
    case "opened":
      if (phase.at === "cancelling") return dropped(state, phase, { do: "disconnect" });
      if (!isBeingMade) return stay(state);
      // Who only looks wants to know that the node's shell does what a run needs.
      return phase.purpose !== "flight" && !phase.isCaughtUp
        ? go(state, { at: "attaching" }, { do: "start-beat" }, tellRunner("opened"))
        : go(state, { at: "open" }, { do: "start-beat" }, tellRunner("opened"), tellRunner("up"));
    case "refused":
      if (phase.at === "cancelling") return dropped(state, phase);
      return isBeingMade ? refused(state, phase, event.problem, context) : stay(state);
    case "lost":
      if (phase.at === "closing") return go(state, { at: "none" }, { do: "stop-beat" }, tellRunner("closed"));
      return isThere ? lost(state, connectionLost(context.node, event.said), context) : stay(state);
    case "host-checked":
      if (phase.at !== "checking-host") return stay(state);
      if (event.isHostGone) return comeBack(state, phase.problem, context);
      return giveUp(state, { problem: shellUnusable(context.node, phase.problem.detail), outcome: "failed" });
    case "retry-due": {
      if (phase.at !== "pausing") return stay(state);
      const { attempt, retry } = phase;
      if (retry.reboot && context.now > retry.reboot.until) return giveUp(state, notBack(state, phase, context));
      return dial(state, { purpose: "attach", attempt, retry });
    }
    case "hello":
      return hello(state, event, context);
    case "caught-up":
      if (phase.at === "starting") return go(state, { ...phase, isCaughtUp: true });
      return phase.at === "attaching" ? go(state, { at: "open" }, tellRunner("up")) : stay(state);
    case "expect-reboot":
      return { state: { ...state, reboot: event.within }, effects: [] };
    case "renew":
      // One that is being made is new.
      return phase.at === "open" ? renew(state, event.within, context) : stay(state);
    case "stop": {
      const stopped = { ...state, isStopped: true };
      if (phase.at !== "pausing" || !phase.retry.reboot) return stay(stopped);
      return giveUp(stopped, notBack(stopped, phase, context), { do: "clear-timer", timer: "retry" });
    }
    case "stop-reconnecting":
      if (phase.at === "attaching" || phase.at === "open") return go(state, { at: "closing" });
      return isThere ? stay(state) : hangUp(state);
    case "disconnect":
      return hangUp(state, ...(isThere ? [{ do: "stop-beat" } as const] : []));
  }
}

function dial(state: Connection, { purpose, attempt, retry }: Wanted, ...effects: readonly SessionEffect[]): TransitionResult<Connection> {
  const phase = { at: "connecting", purpose, attempt, ...(retry && { retry }) } as const;
  return go(state, phase, ...effects, { do: "connect", attempt, withFlight: purpose === "flight" });
}

function dropped(state: Connection, { next }: { next?: Wanted }, ...effects: readonly SessionEffect[]): TransitionResult<Connection> {
  return next ? dial(state, next, ...effects) : go(state, { at: "none" }, ...effects, tellRunner("closed"));
}

function refused(
  state: Connection,
  { at, purpose, attempt, retry }: Wanted & { readonly at: "connecting" | "starting" },
  problem: Problem,
  context: TransitionContext,
): TransitionResult<Connection> {
  // It waits, and nobody can open it: it would for ever.
  if (retry && problem.code !== "UNLOCK_FAILED") return pause(state, { problem, attempt: attempt + 1, retry }, context);
  const isGone = unreachable.has(problem.code);
  if (at !== "starting" || purpose !== "flight" || !isGone)
    return giveUp(state, { problem, outcome: isGone ? "unreachable" : state.isStopped ? "interrupted" : "failed" });
  // The connection broke under the flight: what arrived of it runs, and holds the node's lock. Go and see.
  return comeBack(state, connectionLost(context.node, ""), context, tellRunner("down"));
}

function lost(state: Connection, problem: Problem, context: TransitionContext): TransitionResult<Connection> {
  if (state.boot !== undefined) return comeBack(state, problem, context, { do: "stop-beat" }, tellRunner("down"));
  return go(state, { at: "checking-host", problem }, { do: "stop-beat" }, tellRunner("down"), { do: "check-host" });
}

function comeBack(
  state: Connection,
  problem: Problem,
  context: TransitionContext,
  ...effects: readonly (SessionEffect | SessionEvent)[]
): TransitionResult<Connection> {
  const within = state.reboot;
  const retry: Retry = {
    pauses: context.retryDelays.slice(Math.max(0, state.unanswered - 1)),
    reboot: within === undefined ? undefined : { within, until: context.now + within },
  };
  return pause(state, { problem, attempt: 2, retry }, context, ...effects, { do: "disconnect" });
}

/** Comes back over a new connection; where the change keeps it out, until the node has taken it back. */
function renew(state: Connection, within: number, context: TransitionContext): TransitionResult<Connection> {
  const pauses = [
    0,
    ...Array.from({ length: Math.ceil((within * 1_000 + renewalSlack) / renewalPause) }, () => renewalPause),
  ];
  const problem = confirmationDue(context.node, within);
  const retry: Retry = { pauses, reboot: undefined };
  return pause(state, { problem, attempt: 2, retry }, context, { do: "stop-beat" }, tellRunner("down"), {
    do: "disconnect",
  });
}

function pause(
  state: Connection,
  { problem, attempt, retry }: Omit<Extract<ConnectionPhase, { at: "pausing" }>, "at">,
  context: TransitionContext,
  ...effects: readonly (SessionEffect | SessionEvent)[]
): TransitionResult<Connection> {
  const { node, runId, chance } = context;
  const { reboot, pauses } = retry;
  if (reboot && state.isStopped) return giveUp(state, notBack(state, { problem, retry }, context), ...effects);
  const [first = reboot && rebootPause, ...later] = reboot ? [] : pauses;
  if (first === undefined) {
    const hint = `the node finishes its running step; go on with: kcore runs resume ${runId}`;
    return giveUp(state, { problem: { ...problem, hint }, outcome: "unreachable" }, ...effects);
  }
  const milliseconds = first * (0.5 + chance);
  const retryIn = Math.round(milliseconds);
  return go(
    state,
    { at: "pausing", problem, attempt, retry: { ...retry, pauses: later } },
    ...effects,
    {
      do: "emit",
      event: { type: "node.disconnected", node, reason: problem.message, ...(milliseconds > 0 && { retryIn }) },
    },
    { do: "start-timer", timer: "retry", milliseconds },
    ...(reboot ? [{ to: "queue", event: { type: "reconnect-failed", problem } } as const] : []),
  );
}

function notBack(
  { isStopped }: Connection,
  { problem, retry }: { readonly problem: Problem; readonly retry: Retry },
  context: TransitionContext,
): NodeFailure {
  if (isStopped) return { outcome: "interrupted", problem: rebootStopped(context.node) };
  return { outcome: "failed", problem: rebootTooLong(context, retry.reboot?.within ?? 0, problem.message) };
}

function giveUp(state: Connection, nodeFailure: NodeFailure, ...effects: readonly (SessionEffect | SessionEvent)[]): TransitionResult<Connection> {
  const failed: SessionEvent = { to: "queue", event: { type: "failed", ...nodeFailure } };
  return go(state, { at: "none" }, ...effects, tellRunner("unreachable"), failed);
}

function hangUp(state: Connection, ...effects: readonly SessionEffect[]): TransitionResult<Connection> {
  const { at } = state.phase;
  if (at === "connecting" || at === "starting" || at === "cancelling") return go(state, { at: "cancelling" });
  return go(state, { at: "none" }, ...effects, { do: "clear-timer", timer: "retry" }, { do: "disconnect" }, tellRunner("closed"));
}

function hello(
  state: Connection,
  { boot, epoch }: { boot: string; epoch: number },
  { node, now }: TransitionContext,
): TransitionResult<Connection> {
  const effects: (SessionEffect | SessionEvent)[] = [];
  if (state.boot !== undefined && state.boot !== boot)
    effects.push({ do: "emit", event: { type: "node.rebooted", node } });
  // The node read its clock between `reachedAt` and `now`: a slow line or machine does not count as a wrong clock.
  const skew = Math.round(Math.max(state.reachedAt / 1000 - (epoch + 1), epoch - now / 1000));
  const text = `the clock of ${node} differs from this machine's by ${skew} s`;
  if (skew > 5) effects.push({ do: "emit", event: { type: "warning", node, text } });
  effects.push({ to: "queue", event: { type: "hello", boot } });
  return { state: { ...state, boot, unanswered: 0 }, effects };
}
