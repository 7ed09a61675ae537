import type { Batch, SessionEffect, SessionEvent, TransitionResult, RunnerEvent, TransitionContext } from "./session-events.ts";
import { abortUnanswered } from "./problems.ts";
import { closesBlobRequest, heard } from "./runner-frames.ts";
import {
  awaitBye,
  forgetGoodbye,
  go,
  goodbye,
  leave,
  next,
  part,
  tellConnection,
  tellQueue,
  type Runner,
} from "./runner-state.ts";

/** A step's group is killed after 5 s; what was changed on trial goes back, which may restart services. */
const abortLimit = { do: "start-timer", timer: "abort", milliseconds: 60_000 } as const;
/** How often a runner is asked for its last word at the end. */
const goodbyeTries = 3;

export function runnerTransition(state: Runner, event: RunnerEvent, context: TransitionContext): TransitionResult<Runner> {
  const { phase, connection } = state;
  switch (event.type) {
    case "work":
      return send(state, event.batch);
    case "connect-only":
      if (connection === "none") return next({ ...state, connection: "down" }, dial("connect-only", 1));
      return connection === "up" ? next(state, tellUp(state)) : next(state);
    case "join":
      if (connection === "none") return next({ ...state, connection: "down" }, dial("attach", 1));
      return next(state, tellQueue({ type: "joined" }));
    case "take-over":
      if (phase.at === "working") return go(state, { at: "inherited" }, { do: "send-command", text: "stop\n" });
      return phase.at === "idle" ? leave(state, "join", "interrupted") : next(state, tellQueue({ type: "joined" }));
    case "rest":
      return phase.at === "absent" ? part(state, "rest") : leave(state, "rest", "interrupted");
    case "finish":
      // Where a runner was and is no more, the follower clears up.
      if (phase.at === "absent" && (connection === "none" || state.segment === 0)) return part(state, "finish");
      return phase.at === "ending" && connection === "up"
        ? awaitBye(state, event.outcome)
        : leave(state, "finish", event.outcome);
    case "stop": {
      const wish = event.how === "abort" ? "abort" : (state.wish ?? "stop");
      // Stopped in time, it does not end by itself.
      const say = { do: "send-command", text: `${event.how}\n` } as const;
      if (event.how === "abort" && isAtWork(phase)) return next({ ...state, wish }, say, abortLimit);
      if (phase.at !== "ending") return next({ ...state, wish }, say);
      return go({ ...state, wish }, { at: "idle" }, say, ...(phase.due ? [tellQueue({ type: "withheld" })] : []));
    }
    case "opened":
      // Asked for while there was no connection.
      return state.wish ? next(state, { do: "send-command", text: `${state.wish}\n` }) : next(state);
    case "up": {
      const { trial } = state;
      const { state: after, effects } = cameUp({ ...state, connection: "up" });
      // This connection was made after that change.
      return next(
        after,
        ...(trial === undefined ? [] : [{ do: "send-command", text: `confirm ${trial}\n` } as const]),
        ...effects,
      );
    }
    case "down":
      return phase.at === "flying"
        ? go({ ...state, connection: "down" }, { at: "sent" }, { do: "report-segment" })
        : next({ ...state, connection: "down" }, ...(phase.at === "finishing" ? [forgetGoodbye] : []));
    case "closed":
    case "unreachable":
      return cut({ ...state, connection: "none", asked: [] }, event.type === "closed");
    case "goodbye-timeout":
      if (phase.at !== "finishing") return next(state);
      return phase.after === "finish" && phase.tries < goodbyeTries && connection === "up"
        ? go(state, { ...phase, tries: phase.tries + 1 }, ...goodbye(phase))
        : part(state, phase.after);
    case "abort-timeout": {
      if (!isAtWork(phase)) return next(state);
      const nodeFailure = { outcome: "interrupted", problem: abortUnanswered(context) } as const;
      return next(state, tellQueue({ type: "failed", ...nodeFailure }), { do: "close-channel" });
    }
    case "blob-request-closed":
      return next({ ...state, asked: [] });
    case "frame":
      return heard(closesBlobRequest(event.frame.type) ? { ...state, asked: [] } : state, event.frame, event.offset, context);
  }
}

/** A segment is with it that it has not ended. */
function isAtWork({ at }: Runner["phase"]): boolean {
  return at === "flying" || at === "sent" || at === "working" || at === "inherited";
}

function send(state: Runner, batch: Batch): TransitionResult<Runner> {
  const { phase, connection } = state;
  const launch = phase.at === "absent";
  // What comes after its last segment is for a new one, when it has ended.
  if (phase.at === "ending") return go(state, { at: "ending", due: batch });
  if (connection === "down") return go(state, { at: launch ? "absent" : "idle", due: batch });
  const number = state.segment + 1;
  const exchange = state.exchanges + 1;
  const sent = { ...state, segment: number, exchanges: exchange, isLast: batch.isLast };
  const write = { do: "write-segment", number, exchange, batch, launch } as const;
  const told = tellQueue({ type: "sent", isFirst: connection === "none" });
  if (connection === "none") return go({ ...sent, connection: "down" }, { at: "flying" }, write, told, dial("flight", 1));
  return go(sent, { at: "sent" }, write, { do: "report-segment" }, { do: "transmit", what: "flight" }, told);
}

/** What was not done while there was no connection is done now. */
function cameUp(state: Runner): TransitionResult<Runner> {
  const { phase, asked } = state;
  const blobs: readonly SessionEffect[] = asked.length > 0 ? [{ do: "send-blobs", names: asked }] : [];
  switch (phase.at) {
    case "absent":
      if (phase.due) return sendDue(state, phase.due);
      return next(state, tellQueue({ type: "lost" }), tellUp(state));
    case "idle":
      return phase.due ? sendDue(state, phase.due) : next(state, ...blobs, tellUp(state));
    case "flying":
      return go(state, { at: "sent" }, { do: "report-segment" }, ...blobs);
    case "sent":
      // What was on its way when the connection broke may not have arrived. Sent twice, it does no harm.
      return next(state, { do: "transmit", what: "segment" }, ...blobs);
    case "working":
    case "ending":
      return next(state, ...blobs, tellUp(state));
    case "inherited":
      return next(state, { do: "send-command", text: "stop\n" });
    case "finishing":
      return next(state, ...goodbye(phase));
  }
}

/** Nothing that was not sent before a stop is sent after it. */
function sendDue(state: Runner, due: Batch): TransitionResult<Runner> {
  if (!state.wish) return send(state, due);
  return go(state, { at: state.phase.at === "absent" ? "absent" : "idle" }, tellQueue({ type: "withheld" }));
}

function cut(state: Runner, mayDial: boolean): TransitionResult<Runner> {
  const { phase } = state;
  if (phase.at !== "finishing") return go(state, { at: "absent" });
  // A connection that broke just now must not leave the node locked until the lease ends.
  if (phase.after !== "finish" || phase.tries >= goodbyeTries || !mayDial) return part(state, phase.after);
  const tries = phase.tries + 1;
  return go({ ...state, connection: "down" }, { ...phase, tries }, forgetGoodbye, dial("attach", tries));
}

function dial(purpose: "flight" | "connect-only" | "attach", attempt: number): SessionEvent {
  return tellConnection({ type: "connect", purpose, attempt });
}

function tellUp({ phase }: Runner): SessionEvent {
  return tellQueue({ type: "up", hasRunner: phase.at === "idle" || phase.at === "working" });
}
