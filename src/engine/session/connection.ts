import { shellUnusable } from "#engine/transport/host-problems.ts";
import type { Problem } from "#errors/problem.ts";
import { confirmationDue, connectionLost, rebootStopped, rebootTooLong, unreachableCodes } from "./problems.ts";
import {
  go,
  stay,
  toQueue,
  toRunner,
  type ConnectionEvent,
  type NodeFailure,
  type SessionEffect,
  type SessionEvent,
  type TransitionContext,
  type TransitionResult,
} from "./session-events.ts";

/** How a lost connection is made again. */
interface Reconnect {
  /** Milliseconds before each further attempt, varied at random. */
  readonly pauses: readonly number[];
  /** The node reboots: attempts are repeated until this time, in milliseconds since 1970. */
  readonly reboot: { readonly within: number; readonly until: number } | undefined;
}

interface ConnectionRequest {
  /** A runner and its segment are sent in one go with the follower's text. */
  readonly withFlight: boolean;
  readonly attempt: number;
  /** Set after a lost connection. */
  readonly retry?: Reconnect;
}

type ConnectionPhase =
  | { readonly at: "none" }
  /** `connecting`: the SSH connection is being made. `starting`: the shell is being started. */
  | ({
      readonly at: "connecting" | "starting";
      /** The follower sent the journal before its channel was handed over, as after sudo. */
      readonly isCaughtUp?: boolean;
    } & ConnectionRequest)
  /** The attempt under way is no longer needed. `next`: the request to follow. */
  | { readonly at: "cancelling"; readonly next?: ConnectionRequest }
  /** The follower is sending the journal as it was when the connection began. */
  | { readonly at: "attaching" }
  | { readonly at: "open" }
  /** The connection is there, and is not made again when it ends. */
  | { readonly at: "closing" }
  /** The channel ended before the hello. Either the node's shell is unusable, or the SSH connection broke. */
  | { readonly at: "checking-host"; readonly problem: Problem }
  | { readonly at: "pausing"; readonly problem: Problem; readonly attempt: number; readonly retry: Reconnect };

/** The connection to the node: made on request, and made again when it breaks. */
export interface Connection {
  readonly phase: ConnectionPhase;
  /** The node's present boot; undefined before its first hello. */
  readonly boot: string | undefined;
  /** SSH connections made since the last hello. */
  readonly unanswered: number;
  /** When the last SSH connection was made, in milliseconds since 1970. */
  readonly reachedAt: number;
  /** Milliseconds that the reboot at the end of the running segment may take; undefined: the segment ends without a reboot. */
  readonly reboot: number | undefined;
  readonly isStopped: boolean;
  /** A look's connection was lost, so the node was reachable a moment ago. */
  readonly wasLost: boolean;
}

export const noConnection: Connection = {
  phase: { at: "none" },
  boot: undefined,
  unanswered: 0,
  reachedAt: 0,
  reboot: undefined,
  isStopped: false,
  wasLost: false,
};

/** Milliseconds between two attempts to reach a node that reboots. */
const rebootPause = 2_000;
/** Milliseconds between two attempts to make the connection that confirms a change. */
const renewalPause = 2_000;
/** Milliseconds that a node may take to revert a change after its deadline. */
const revertTime = 60_000;

/** The connection's state and effects after an event. */
export function connectionTransition(
  state: Connection,
  event: ConnectionEvent,
  context: TransitionContext,
): TransitionResult<Connection> {
  const { phase } = state;
  const isPending = phase.at === "connecting" || phase.at === "starting";
  const isConnected = phase.at === "attaching" || phase.at === "open" || phase.at === "closing";
  switch (event.type) {
    case "connect":
      if (phase.at === "cancelling") return go(state, { ...phase, next: event });
      return phase.at === "none" ? connect(state, event) : stay(state);
    case "reached":
      if (phase.at !== "connecting") return stay({ ...state, reachedAt: context.now });
      return go({ ...state, unanswered: state.unanswered + 1, reachedAt: context.now }, { ...phase, at: "starting" });
    case "opened":
      if (phase.at === "cancelling") return cancelled(state, phase, { do: "disconnect" });
      if (!isPending) return stay(state);
      // Without a flight, the journal is read first, which also proves the node's shell usable.
      return !phase.withFlight && !phase.isCaughtUp
        ? go(state, { at: "attaching" }, { do: "start-beat" }, toRunner({ type: "opened" }))
        : go(state, { at: "open" }, { do: "start-beat" }, toRunner({ type: "opened" }), toRunner({ type: "up" }));
    case "refused":
      if (phase.at === "cancelling") return cancelled(state, phase);
      return isPending ? refused(state, phase, event.problem, context) : stay(state);
    case "lost":
      if (phase.at === "closing") return go(state, { at: "none" }, { do: "stop-beat" }, toRunner({ type: "closed" }));
      return isConnected ? lost(state, connectionLost(context.node, event.output), context) : stay(state);
    case "host-checked":
      if (phase.at !== "checking-host") return stay(state);
      if (event.isHostGone) return reconnect(state, phase.problem, context);
      return giveUp(state, { problem: shellUnusable(context.node, phase.problem.detail), outcome: "failed" });
    case "look-lost":
      return stay({ ...state, wasLost: true });
    case "retry-due": {
      if (phase.at !== "pausing") return stay(state);
      const { attempt, retry } = phase;
      if (retry.reboot && context.now > retry.reboot.until) return giveUp(state, rebootFailure(state, phase, context));
      return connect(state, { withFlight: false, attempt, retry });
    }
    case "hello":
      return hello(state, event, context);
    case "caught-up":
      if (phase.at === "starting") return go(state, { ...phase, isCaughtUp: true });
      return phase.at === "attaching" ? go(state, { at: "open" }, toRunner({ type: "up" })) : stay(state);
    case "expect-reboot":
      return { state: { ...state, reboot: event.within }, effects: [] };
    case "renew":
      // A connection that is still being made is new and can confirm the change.
      return phase.at === "open" ? renew(state, event.within, context) : stay(state);
    case "stop": {
      const stopped = { ...state, isStopped: true };
      if (phase.at !== "pausing" || !phase.retry.reboot) return stay(stopped);
      return giveUp(stopped, rebootFailure(stopped, phase, context), { do: "clear-timer", timer: "retry" });
    }
    case "stop-reconnecting":
      if (phase.at === "attaching" || phase.at === "open") return go(state, { at: "closing" });
      return isConnected ? stay(state) : disconnect(state);
    case "disconnect":
      return disconnect(state, ...(isConnected ? [{ do: "stop-beat" } as const] : []));
  }
}

function connect(
  state: Connection,
  { withFlight, attempt, retry }: ConnectionRequest,
  ...effects: readonly SessionEffect[]
): TransitionResult<Connection> {
  const phase = { at: "connecting", withFlight, attempt, ...(retry && { retry }) } as const;
  return go(state, phase, ...effects, { do: "connect", attempt, withFlight });
}

function cancelled(
  state: Connection,
  { next }: { next?: ConnectionRequest },
  ...effects: readonly SessionEffect[]
): TransitionResult<Connection> {
  return next ? connect(state, next, ...effects) : go(state, { at: "none" }, ...effects, toRunner({ type: "closed" }));
}

function refused(
  state: Connection,
  { at, withFlight, attempt, retry }: ConnectionRequest & { readonly at: "connecting" | "starting" },
  problem: Problem,
  context: TransitionContext,
): TransitionResult<Connection> {
  // UNLOCK_FAILED: the root disk is locked, and retrying cannot help.
  if (retry && problem.code !== "UNLOCK_FAILED") return pause(state, { problem, attempt: attempt + 1, retry }, context);
  const isGone = unreachableCodes.has(problem.code);
  const isBroken = (at === "starting" && withFlight) || state.wasLost;
  if (!isBroken || !isGone)
    return giveUp(state, { problem, outcome: isGone ? "unreachable" : state.isStopped ? "interrupted" : "failed" });
  // The connection broke under the flight, or under a look. A runner that arrived works and holds the node's lock: connect
  // again.
  return reconnect(state, connectionLost(context.node, ""), context, toRunner({ type: "down" }));
}

function lost(state: Connection, problem: Problem, context: TransitionContext): TransitionResult<Connection> {
  if (state.boot !== undefined)
    return reconnect(state, problem, context, { do: "stop-beat" }, toRunner({ type: "down" }));
  return go(state, { at: "checking-host", problem }, { do: "stop-beat" }, toRunner({ type: "down" }), {
    do: "check-host",
  });
}

function reconnect(
  state: Connection,
  problem: Problem,
  context: TransitionContext,
  ...effects: readonly (SessionEffect | SessionEvent)[]
): TransitionResult<Connection> {
  const within = state.reboot;
  const retry: Reconnect = {
    pauses: context.retryDelays.slice(Math.max(0, state.unanswered - 1)),
    reboot: within === undefined ? undefined : { within, until: context.now + within },
  };
  return pause(state, { problem, attempt: 2, retry }, context, ...effects, { do: "disconnect" });
}

/** Replaces the connection to confirm a change. If the change blocks new connections, attempts last until the node has reverted it. */
function renew(state: Connection, within: number, context: TransitionContext): TransitionResult<Connection> {
  const pauses = [
    0,
    ...Array.from({ length: Math.ceil((within * 1_000 + revertTime) / renewalPause) }, () => renewalPause),
  ];
  const problem = confirmationDue(context.node, within);
  const retry: Reconnect = { pauses, reboot: undefined };
  return pause(state, { problem, attempt: 2, retry }, context, { do: "stop-beat" }, toRunner({ type: "down" }), {
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
  if (reboot && state.isStopped) return giveUp(state, rebootFailure(state, { problem, retry }, context), ...effects);
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
    ...(reboot ? [toQueue({ type: "reconnect-failed", problem })] : []),
  );
}

/** Why the run gives up a node that has not come back from its reboot. */
function rebootFailure(
  { isStopped }: Connection,
  { problem, retry }: { readonly problem: Problem; readonly retry: Reconnect },
  context: TransitionContext,
): NodeFailure {
  if (isStopped) return { outcome: "interrupted", problem: rebootStopped(context.node) };
  return { outcome: "failed", problem: rebootTooLong(context, retry.reboot?.within ?? 0, problem.message) };
}

function giveUp(
  state: Connection,
  nodeFailure: NodeFailure,
  ...effects: readonly (SessionEffect | SessionEvent)[]
): TransitionResult<Connection> {
  const failed = toQueue({ type: "failed", ...nodeFailure });
  return go(state, { at: "none" }, ...effects, toRunner({ type: "unreachable" }), failed);
}

function disconnect(state: Connection, ...effects: readonly SessionEffect[]): TransitionResult<Connection> {
  const { at } = state.phase;
  if (at === "connecting" || at === "starting" || at === "cancelling") return go(state, { at: "cancelling" });
  return go(
    state,
    { at: "none" },
    ...effects,
    { do: "clear-timer", timer: "retry" },
    { do: "disconnect" },
    toRunner({ type: "closed" }),
  );
}

function hello(
  state: Connection,
  { boot, epoch }: { boot: string; epoch: number },
  { node, now }: TransitionContext,
): TransitionResult<Connection> {
  const effects: (SessionEffect | SessionEvent)[] = [];
  if (state.boot !== undefined && state.boot !== boot)
    effects.push({ do: "emit", event: { type: "node.rebooted", node } });
  // The node read its clock between `reachedAt` and `now`, so a slow connection does not count as a wrong clock.
  const skew = Math.round(Math.max(state.reachedAt / 1000 - (epoch + 1), epoch - now / 1000));
  const text = `the clock of ${node} differs from this machine's by ${skew} s`;
  if (skew > 5) effects.push({ do: "emit", event: { type: "warning", node, text } });
  effects.push(toQueue({ type: "hello", boot }));
  return { state: { ...state, boot, unanswered: 0, wasLost: false }, effects };
}
