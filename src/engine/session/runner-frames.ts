import type { Frame } from "#engine/program/frames.ts";
import type { SessionEffect, SessionEvent, TransitionResult, QueueEvent, TransitionContext } from "./session-events.ts";
import { followerFailed, holderOf, nodeLocked, runnerEnded } from "./problems.ts";
import { forgetGoodbye, go, leave, next, part, tellConnection, tellQueue, type Runner } from "./runner-state.ts";

/** Frames that come between a question for blobs and the blobs' arrival. */
const aside: ReadonlySet<string> = new Set(["need", "out", "hello", "runner", "told", "detached"]);

/** Whether a frame of this type says that no question for blobs is open. */
export function closesBlobRequest(type: string): boolean {
  return !aside.has(type);
}

/** Frames that speak of the runner, not of its steps. */
const ofRunner: ReadonlySet<string> = new Set(
  "runner segment segment-end trial trial-end need lock bye gone fatal".split(" "),
);

/** Whom a frame concerns; undefined: it speaks of steps or facts. */
export function eventOfFrame(frame: Frame, offset: number): SessionEvent | undefined {
  const { type, rest } = frame;
  const [, , boot = "", , epoch = "0"] = rest.split(" ");
  if (type === "hello") return { to: "connection", event: { type, boot, epoch: Number(epoch) } };
  if (type === "told") return { to: "connection", event: { type } };
  return ofRunner.has(type) ? { to: "runner", event: { type: "frame", frame, offset } } : undefined;
}

/** What a frame of the follower or the runner makes of what is known of it. */
export function heard(state: Runner, { type, rest }: Frame, offset: number, context: TransitionContext): TransitionResult<Runner> {
  const { phase, connection } = state;
  const [first = "", second = "", third = ""] = rest.split(" ");
  const isPast = offset <= state.history;
  switch (type) {
    case "runner":
      return metRunner({ ...state, history: Number(second) || 0 }, first === "alive");
    case "segment": {
      const opened = { ...state, segment: Math.max(state.segment, Number(first) || 0) };
      if (phase.at === "flying") return go(opened, { at: "working" }, { do: "report-segment" });
      return phase.at === "sent" || phase.at === "idle" ? go(opened, { at: "working" }) : next(opened);
    }
    case "segment-end":
      return Number(first) === state.segment ? segmentEnded(state, second) : next(state);
    case "need": {
      const asked = rest.split(" ");
      const wanting = { ...state, asked, exchanges: state.exchanges + 1 };
      // Once a connection is enough, and two at a time would garble each other.
      return connection === "up" ? next(wanting, { do: "send-blobs", names: asked }) : next(wanting);
    }
    case "trial":
      if (isPast) return next(state);
      return next({ ...state, trial: first }, tellConnection({ type: "renew", within: Number(second) || 0 }));
    case "trial-end":
      return next({ ...state, trial: undefined });
    case "lock": {
      // A runner begins: what the one before it was at is over.
      if (first !== "held") return begun(state, first === "taken-over" ? [tookOver(second, context)] : []);
      // History of an earlier attempt that found the node busy.
      if (isPast) return next(state);
      return gone(state, { type: "locked", problem: nodeLocked(context.node, second, third) });
    }
    case "bye": {
      if (isPast) return next(state);
      if (state.isLast && (phase.at === "ending" || phase.at === "idle")) return parted(state);
      const problem = runnerEnded(context.node, first, context.runId);
      return gone(state, { type: "failed", problem, outcome: "failed" });
    }
    case "gone":
      // It leaves its stop behind, which the next follower removes.
      return phase.at === "inherited" ? part(state, "join") : gone(state, { type: "lost" });
    case "fatal": {
      const problem = followerFailed(context.node, rest);
      return next(state, tellQueue({ type: "failed", problem, outcome: "failed" }), { do: "close-channel" });
    }
    default:
      return next(state);
  }
}

function begun(before: Runner, effects: readonly SessionEffect[]): TransitionResult<Runner> {
  const state = { ...before, trial: undefined };
  const { at } = state.phase;
  if (at === "inherited") return leave(state, "join", "interrupted");
  return at === "working" ? go(state, { at: "idle" }, ...effects) : next(state, ...effects);
}

function tookOver(holder: string, { node, runId }: TransitionContext): SessionEffect {
  const { run, who } = holderOf(holder);
  const whom = run === runId ? "this run's own runner, which had died" : `a dead run (${run} of ${who})`;
  return { do: "emit", event: { type: "warning", node, text: `took the lock over from ${whom}` } };
}

/** It ended as it was told to; its follower is of no more use. Work that came after all is given to a new one. */
function parted(state: Runner): TransitionResult<Runner> {
  const hangUp = tellConnection({ type: "disconnect" });
  return go({ ...state, connection: "none" }, { at: "absent" }, hangUp, tellQueue({ type: "lost" }));
}

function metRunner(state: Runner, isAlive: boolean): TransitionResult<Runner> {
  const { phase, connection } = state;
  const due = "due" in phase && phase.due ? { due: phase.due } : {};
  if (isAlive && phase.at === "absent") return go(state, { at: "idle", ...due });
  // It was not sent for: the one that went along was not needed, and its segment has to come by itself.
  if (isAlive && phase.at === "flying") return go(state, { at: "sent" }, { do: "report-segment" });
  if (isAlive && phase.at === "sent" && connection === "up") return next(state, { do: "transmit", what: "segment" });
  if (isAlive) return next(state);
  // One that was sent over this connection is on its way.
  if (connection === "up" || phase.at === "flying") return next(state);
  // The follower clears up what it left; but who joins only wants to hear what it did.
  if (phase.at === "finishing" && phase.after !== "join") return next(state);
  return go(state, { at: "absent", ...due }, forgetGoodbye);
}

function segmentEnded(state: Runner, how: string): TransitionResult<Runner> {
  const ended = tellQueue({ type: "ended" });
  const isParting = state.isLast && how === "" && !state.wish;
  const after = { at: isParting ? "ending" : "idle" } as const;
  switch (state.phase.at) {
    case "flying":
      return go(state, after, { do: "report-segment" }, ended);
    case "sent":
    case "working":
      return go(state, after, ended);
    case "inherited":
      return leave(state, "join", "interrupted");
    case "absent":
      return next(state, ended);
    default:
      return next(state);
  }
}

function gone(state: Runner, news: QueueEvent): TransitionResult<Runner> {
  const { phase } = state;
  return phase.at === "finishing" ? part(state, phase.after) : go(state, { at: "absent" }, tellQueue(news));
}
