import type { Frame } from "#engine/program/frames.ts";
import { followerFailed, holderOf, nodeLocked, runnerEnded } from "./problems.ts";
import { clearGoodbyeTimer, ended, requestEnd, type Runner } from "./runner-state.ts";
import {
  go,
  stay,
  toConnection,
  toQueue,
  type QueueEvent,
  type SessionEffect,
  type SessionEvent,
  type TransitionContext,
  type TransitionResult,
} from "./session-events.ts";

/** Types of frames that may arrive while the runner waits for blobs. */
const duringBlobRequest: ReadonlySet<string> = new Set(["need", "out", "hello", "runner", "told", "detached"]);

/** Whether a frame of this type shows that the runner waits for no blobs. */
export function closesBlobRequest(type: string): boolean {
  return !duringBlobRequest.has(type);
}

/** Types of frames about the runner itself. */
const aboutRunner: ReadonlySet<string> = new Set(
  "runner segment segment-end trial trial-end need lock bye gone fatal".split(" "),
);

/** The event of a frame about the connection or the runner; undefined: the frame is about steps or facts. */
export function eventOfFrame(frame: Frame, offset: number): SessionEvent | undefined {
  const { type, rest } = frame;
  const [, , boot = "", , epoch = "0"] = rest.split(" ");
  if (type === "hello") return toConnection({ type, boot, epoch: Number(epoch) });
  if (type === "told") return toConnection({ type: "caught-up" });
  return aboutRunner.has(type) ? { to: "runner", event: { type: "frame", frame, offset } } : undefined;
}

/** The runner's state after a frame about the runner. */
export function runnerFrameTransition(
  state: Runner,
  { type, rest }: Frame,
  offset: number,
  context: TransitionContext,
): TransitionResult<Runner> {
  const { phase, connection } = state;
  const [first = "", second = "", third = ""] = rest.split(" ");
  const isPast = offset <= state.history;
  switch (type) {
    case "runner":
      return foundRunner({ ...state, history: Number(second) || 0 }, first === "alive");
    case "segment": {
      const opened = { ...state, segment: Math.max(state.segment, Number(first) || 0) };
      if (phase.at === "flying") return go(opened, { at: "working" }, { do: "report-segment" });
      return phase.at === "sent" || phase.at === "idle" ? go(opened, { at: "working" }) : stay(opened);
    }
    case "segment-end":
      return Number(first) === state.segment ? segmentEnded(state, second) : stay(state);
    case "need": {
      const asked = rest.split(" ");
      const wanting = { ...state, asked, exchanges: state.exchanges + 1 };
      // If the connection is not up yet, its `up` sends the blobs: two answers at a time would mix in the stream.
      return connection === "up" ? stay(wanting, { do: "send-blobs", names: asked }) : stay(wanting);
    }
    case "trial":
      if (isPast) return stay(state);
      return stay({ ...state, trial: first }, toConnection({ type: "renew", within: Number(second) || 0 }));
    case "trial-end":
      return stay({ ...state, trial: undefined });
    case "lock": {
      // A runner has the lock, so the segment of the runner before it is over.
      if (first !== "held") return begun(state, first === "taken-over" ? [tookOver(second, context)] : []);
      // The frame belongs to an earlier attempt, which found the node locked.
      if (isPast) return stay(state);
      return gone(state, { type: "locked", problem: nodeLocked(context.node, second, third) });
    }
    case "bye": {
      if (isPast) return stay(state);
      if (state.isLast && (phase.at === "ending" || phase.at === "idle")) return endedInOrder(state);
      const problem = runnerEnded(context.node, first, context.runId);
      return gone(state, { type: "failed", problem, outcome: "failed" });
    }
    case "gone":
      // The next follower removes the stop request of an inherited runner.
      return phase.at === "inherited" ? ended(state, "join") : gone(state, { type: "lost" });
    case "fatal": {
      const problem = followerFailed(context.node, rest);
      return stay(state, toQueue({ type: "failed", problem, outcome: "failed" }), { do: "close-channel" });
    }
    default:
      return stay(state);
  }
}

function begun(before: Runner, effects: readonly SessionEffect[]): TransitionResult<Runner> {
  const state = { ...before, trial: undefined };
  const { at } = state.phase;
  if (at === "inherited") return requestEnd(state, "join", "interrupted");
  return at === "working" ? go(state, { at: "idle" }, ...effects) : stay(state, ...effects);
}

function tookOver(holder: string, { node, runId }: TransitionContext): SessionEffect {
  const { run, who } = holderOf(holder);
  const holding = run === runId ? "this run's own runner, which had died" : `a dead run (${run} of ${who})`;
  return { do: "emit", event: { type: "warning", node, text: `took the lock over from ${holding}` } };
}

/** The runner ended after its last segment. Work that came meanwhile is given to a new runner. */
function endedInOrder(state: Runner): TransitionResult<Runner> {
  const disconnect = toConnection({ type: "disconnect" });
  return go({ ...state, connection: "none" }, { at: "absent" }, disconnect, toQueue({ type: "lost" }));
}

/** The follower has found a runner, or none. */
function foundRunner(state: Runner, isAlive: boolean): TransitionResult<Runner> {
  const { phase, connection } = state;
  const due = "due" in phase && phase.due ? { due: phase.due } : {};
  if (isAlive && phase.at === "absent") return go(state, { at: "idle", ...due });
  // The follower ignores the runner of the flight because another one lives, so the segment is sent by itself.
  if (isAlive && phase.at === "flying") return go(state, { at: "sent" }, { do: "report-segment" });
  if (isAlive && phase.at === "sent" && connection === "up") return stay(state, { do: "transmit", what: "segment" });
  if (isAlive) return stay(state);
  // A runner was sent over this connection and has yet to start.
  if (connection === "up" || phase.at === "flying") return stay(state);
  // `fin` makes the follower clean up after the dead runner; a join only reads the journal.
  if (phase.at === "finishing" && phase.after !== "join") return stay(state);
  return go(state, { at: "absent", ...due }, clearGoodbyeTimer);
}

function segmentEnded(state: Runner, how: string): TransitionResult<Runner> {
  const event = toQueue({ type: "ended" });
  const isEnding = state.isLast && how === "" && !state.stopRequest;
  const after = { at: isEnding ? "ending" : "idle" } as const;
  switch (state.phase.at) {
    case "flying":
      return go(state, after, { do: "report-segment" }, event);
    case "sent":
    case "working":
      return go(state, after, event);
    case "inherited":
      return requestEnd(state, "join", "interrupted");
    case "absent":
      return stay(state, event);
    default:
      return stay(state);
  }
}

function gone(state: Runner, event: QueueEvent): TransitionResult<Runner> {
  const { phase } = state;
  return phase.at === "finishing" ? ended(state, phase.after) : go(state, { at: "absent" }, toQueue(event));
}
