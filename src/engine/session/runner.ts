import type { Batch, Effect, Message, Next, RunnerEvent, Setting } from "./session-events.ts";
import { abortUnanswered } from "./problems.ts";
import { goesOn, heard } from "./runner-frames.ts";
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
const abortLimit = { do: "wait", timer: "abort", milliseconds: 60_000 } as const;
/** How often a runner is asked for its last word at the end. */
const goodbyeTries = 3;

export function runnerAfter(state: Runner, event: RunnerEvent, setting: Setting): Next<Runner> {
  const { phase, line } = state;
  switch (event.type) {
    case "work":
      return send(state, event.batch);
    case "look":
      if (line === "none") return next({ ...state, line: "down" }, dial("look", 1));
      return line === "up" ? next(state, tellUp(state)) : next(state);
    case "join":
      if (line === "none") return next({ ...state, line: "down" }, dial("attach", 1));
      return next(state, tellQueue({ type: "joined" }));
    case "take-over":
      if (phase.at === "working") return go(state, { at: "inherited" }, { do: "say", text: "stop\n" });
      return phase.at === "idle" ? leave(state, "join", "interrupted") : next(state, tellQueue({ type: "joined" }));
    case "rest":
      return phase.at === "absent" ? part(state, "rest") : leave(state, "rest", "interrupted");
    case "finish":
      // Where a runner was and is no more, the follower clears up.
      if (phase.at === "absent" && (line === "none" || state.segment === 0)) return part(state, "finish");
      return phase.at === "parting" && line === "up"
        ? awaitBye(state, event.outcome)
        : leave(state, "finish", event.outcome);
    case "stop": {
      const wish = event.how === "abort" ? "abort" : (state.wish ?? "stop");
      // Stopped in time, it does not end by itself.
      const say = { do: "say", text: `${event.how}\n` } as const;
      if (event.how === "abort" && isAtWork(phase)) return next({ ...state, wish }, say, abortLimit);
      if (phase.at !== "parting") return next({ ...state, wish }, say);
      return go({ ...state, wish }, { at: "idle" }, say, ...(phase.due ? [tellQueue({ type: "withheld" })] : []));
    }
    case "opened":
      // Asked for while there was no connection.
      return state.wish ? next(state, { do: "say", text: `${state.wish}\n` }) : next(state);
    case "up": {
      const { trial } = state;
      const { state: after, effects } = cameUp({ ...state, line: "up" });
      // This connection was made after that change.
      return next(
        after,
        ...(trial === undefined ? [] : [{ do: "say", text: `confirm ${trial}\n` } as const]),
        ...effects,
      );
    }
    case "down":
      return phase.at === "flying"
        ? go({ ...state, line: "down" }, { at: "sent" }, { do: "announce" })
        : next({ ...state, line: "down" }, ...(phase.at === "leaving" ? [forgetGoodbye] : []));
    case "cut":
    case "unreachable":
      return cut({ ...state, line: "none", asked: [] }, event.type === "cut");
    case "unanswered":
      if (phase.at !== "leaving") return next(state);
      return phase.after === "finish" && phase.tries < goodbyeTries && line === "up"
        ? go(state, { ...phase, tries: phase.tries + 1 }, ...goodbye(phase))
        : part(state, phase.after);
    case "abort-late": {
      if (!isAtWork(phase)) return next(state);
      const trouble = { outcome: "interrupted", problem: abortUnanswered(setting) } as const;
      return next(state, tellQueue({ type: "failed", ...trouble }), { do: "end-link" });
    }
    case "went-on":
      return next({ ...state, asked: [] });
    case "frame":
      return heard(goesOn(event.frame.type) ? { ...state, asked: [] } : state, event.frame, event.offset, setting);
  }
}

/** A segment is with it that it has not ended. */
function isAtWork({ at }: Runner["phase"]): boolean {
  return at === "flying" || at === "sent" || at === "working" || at === "inherited";
}

function send(state: Runner, batch: Batch): Next<Runner> {
  const { phase, line } = state;
  const launch = phase.at === "absent";
  // What comes after its last segment is for a new one, when it has ended.
  if (phase.at === "parting") return go(state, { at: "parting", due: batch });
  if (line === "down") return go(state, { at: launch ? "absent" : "idle", due: batch });
  const number = state.segment + 1;
  const exchange = state.exchanges + 1;
  const sent = { ...state, segment: number, exchanges: exchange, isLast: batch.isLast };
  const write = { do: "write", number, exchange, batch, launch } as const;
  const told = tellQueue({ type: "sent", isFirst: line === "none" });
  if (line === "none") return go({ ...sent, line: "down" }, { at: "flying" }, write, told, dial("flight", 1));
  return go(sent, { at: "sent" }, write, { do: "announce" }, { do: "transmit", what: "flight" }, told);
}

/** What was not done while there was no connection is done now. */
function cameUp(state: Runner): Next<Runner> {
  const { phase, asked } = state;
  const blobs: readonly Effect[] = asked.length > 0 ? [{ do: "send-blobs", names: asked }] : [];
  switch (phase.at) {
    case "absent":
      if (phase.due) return sendDue(state, phase.due);
      return next(state, tellQueue({ type: "lost" }), tellUp(state));
    case "idle":
      return phase.due ? sendDue(state, phase.due) : next(state, ...blobs, tellUp(state));
    case "flying":
      return go(state, { at: "sent" }, { do: "announce" }, ...blobs);
    case "sent":
      // What was on its way when the connection broke may not have arrived. Sent twice, it does no harm.
      return next(state, { do: "transmit", what: "segment" }, ...blobs);
    case "working":
    case "parting":
      return next(state, ...blobs, tellUp(state));
    case "inherited":
      return next(state, { do: "say", text: "stop\n" });
    case "leaving":
      return next(state, ...goodbye(phase));
  }
}

/** Nothing that was not sent before a stop is sent after it. */
function sendDue(state: Runner, due: Batch): Next<Runner> {
  if (!state.wish) return send(state, due);
  return go(state, { at: state.phase.at === "absent" ? "absent" : "idle" }, tellQueue({ type: "withheld" }));
}

function cut(state: Runner, mayDial: boolean): Next<Runner> {
  const { phase } = state;
  if (phase.at !== "leaving") return go(state, { at: "absent" });
  // A connection that broke just now must not leave the node locked until the lease ends.
  if (phase.after !== "finish" || phase.tries >= goodbyeTries || !mayDial) return part(state, phase.after);
  const tries = phase.tries + 1;
  return go({ ...state, line: "down" }, { ...phase, tries }, forgetGoodbye, dial("attach", tries));
}

function dial(purpose: "flight" | "look" | "attach", attempt: number): Message {
  return tellConnection({ type: "dial", purpose, attempt });
}

function tellUp({ phase }: Runner): Message {
  return tellQueue({ type: "up", hasRunner: phase.at === "idle" || phase.at === "working" });
}
