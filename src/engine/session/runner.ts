import { abortUnanswered } from "./problems.ts";
import { closesBlobRequest, runnerFrameTransition } from "./runner-frames.ts";
import { awaitBye, clearGoodbyeTimer, ended, requestEnd, sendFin, type Runner } from "./runner-state.ts";
import {
  go,
  stay,
  toConnection,
  toQueue,
  type Batch,
  type RunnerEvent,
  type SessionEffect,
  type SessionEvent,
  type TransitionContext,
  type TransitionResult,
} from "./session-events.ts";

/** The node kills the step's processes after 5 s. Then it reverts a change on trial, which can restart services. */
const abortLimit = { do: "start-timer", timer: "abort", milliseconds: 60_000 } as const;
/** How often a runner is asked to end. */
const finTries = 3;

/** The runner's state and effects after an event. */
export function runnerTransition(
  state: Runner,
  event: RunnerEvent,
  context: TransitionContext,
): TransitionResult<Runner> {
  const { phase, connection } = state;
  switch (event.type) {
    case "work":
      return send(state, event.batch);
    case "connect-only":
      if (connection === "none") return stay({ ...state, connection: "connecting" }, connect(1));
      return connection === "up" ? stay(state, reportUp(state)) : stay(state);
    case "join":
      if (connection === "none") return stay({ ...state, connection: "connecting" }, connect(1));
      return stay(state, toQueue({ type: "joined" }));
    case "take-over":
      if (phase.at === "working") return go(state, { at: "inherited" }, { do: "send-command", text: "stop\n" });
      return phase.at === "idle" ? requestEnd(state, "join", "interrupted") : stay(state, toQueue({ type: "joined" }));
    case "rest":
      return phase.at === "absent" ? ended(state, "rest") : requestEnd(state, "rest", "interrupted");
    case "finish":
      if (phase.at === "absent" && (connection === "none" || state.segment === 0)) return ended(state, "finish");
      // `fin` also goes to the follower of a dead runner, which removes the runner's files.
      return phase.at === "ending" && connection === "up"
        ? awaitBye(state, event.outcome)
        : requestEnd(state, "finish", event.outcome);
    case "give-up": {
      const { state: gone, effects } = ended(state, "finish");
      // Without `fin`, a runner that still lives would keep the lock until its lease ends.
      return stay(gone, { do: "send-command", text: `fin ${event.outcome}\n` }, ...effects);
    }
    case "stop": {
      const stopRequest = event.how === "abort" ? "abort" : (state.stopRequest ?? "stop");
      const command = { do: "send-command", text: `${event.how}\n` } as const;
      if (event.how === "abort" && isAtWork(phase)) return stay({ ...state, stopRequest }, command, abortLimit);
      if (phase.at !== "ending") return stay({ ...state, stopRequest }, command);
      // A runner that gets the stop in time does not end by itself: it waits for `fin`.
      return go(
        { ...state, stopRequest },
        { at: "idle" },
        command,
        ...(phase.due ? [toQueue({ type: "withheld" })] : []),
      );
    }
    case "opened":
      // The operator stopped the run while there was no connection.
      return state.stopRequest ? stay(state, { do: "send-command", text: `${state.stopRequest}\n` }) : stay(state);
    case "up": {
      const { trial } = state;
      const { state: after, effects } = cameUp({ ...state, connection: "up" });
      // The connection is newer than the change on trial, and so confirms the change.
      return stay(
        after,
        ...(trial === undefined ? [] : [{ do: "send-command", text: `confirm ${trial}\n` } as const]),
        ...effects,
      );
    }
    case "down":
      return phase.at === "flying"
        ? go({ ...state, connection: "connecting" }, { at: "sent" }, { do: "report-segment" })
        : stay({ ...state, connection: "connecting" }, ...(phase.at === "finishing" ? [clearGoodbyeTimer] : []));
    case "closed":
    case "unreachable":
      return closed({ ...state, connection: "none", asked: [] }, event.type === "closed");
    case "goodbye-timeout":
      if (phase.at !== "finishing") return stay(state);
      return phase.after === "finish" && phase.tries < finTries && connection === "up"
        ? go(state, { ...phase, tries: phase.tries + 1 }, ...sendFin(phase))
        : ended(state, phase.after);
    case "abort-timeout": {
      if (!isAtWork(phase)) return stay(state);
      const nodeFailure = { outcome: "interrupted", problem: abortUnanswered(context) } as const;
      return stay(state, toQueue({ type: "failed", ...nodeFailure }), { do: "close-channel" });
    }
    case "blob-request-closed":
      return stay({ ...state, asked: [] });
    case "frame":
      return runnerFrameTransition(
        closesBlobRequest(event.frame.type) ? { ...state, asked: [] } : state,
        event.frame,
        event.offset,
        context,
      );
  }
}

/** Whether the runner has a segment that has not ended. */
function isAtWork({ at }: Runner["phase"]): boolean {
  return at === "flying" || at === "sent" || at === "working" || at === "inherited";
}

function send(state: Runner, batch: Batch): TransitionResult<Runner> {
  const { phase, connection } = state;
  const launch = phase.at === "absent";
  // A runner that ends takes no more segments: the batch waits for the next runner.
  if (phase.at === "ending") return go(state, { at: "ending", due: batch });
  if (connection === "connecting") return go(state, { at: launch ? "absent" : "idle", due: batch });
  const number = state.segment + 1;
  const exchange = state.exchanges + 1;
  const sent = { ...state, segment: number, exchanges: exchange, isLast: batch.isLast };
  const write = { do: "write-segment", number, exchange, batch, launch } as const;
  const report = toQueue({ type: "sent", isFirst: connection === "none" });
  if (connection === "none")
    return go({ ...sent, connection: "connecting" }, { at: "flying" }, write, report, connect(1, { withFlight: true }));
  return go(sent, { at: "sent" }, write, { do: "report-segment" }, { do: "transmit", what: "flight" }, report);
}

/** Sends everything that had to wait for the connection. */
function cameUp(state: Runner): TransitionResult<Runner> {
  const { phase, asked } = state;
  const blobs: readonly SessionEffect[] = asked.length > 0 ? [{ do: "send-blobs", names: asked }] : [];
  switch (phase.at) {
    case "absent":
      if (phase.due) return sendDue(state, phase.due);
      return stay(state, toQueue({ type: "lost" }), reportUp(state));
    case "idle":
      return phase.due ? sendDue(state, phase.due) : stay(state, ...blobs, reportUp(state));
    case "flying":
      return go(state, { at: "sent" }, { do: "report-segment" }, ...blobs);
    case "sent":
      // The segment was perhaps lost with the old connection. A runner ignores a segment that it already has.
      return stay(state, { do: "transmit", what: "segment" }, ...blobs);
    case "working":
    case "ending":
      return stay(state, ...blobs, reportUp(state));
    case "inherited":
      return stay(state, { do: "send-command", text: "stop\n" });
    case "finishing":
      return stay(state, ...sendFin(phase));
  }
}

/** Sends the waiting batch; after a stop, withholds the batch. */
function sendDue(state: Runner, due: Batch): TransitionResult<Runner> {
  if (!state.stopRequest) return send(state, due);
  return go(state, { at: state.phase.at === "absent" ? "absent" : "idle" }, toQueue({ type: "withheld" }));
}

function closed(state: Runner, mayReconnect: boolean): TransitionResult<Runner> {
  const { phase } = state;
  if (phase.at !== "finishing") return go(state, { at: "absent" });
  // Without `fin`, the runner would keep the lock until its lease ends.
  if (phase.after !== "finish" || phase.tries >= finTries || !mayReconnect) return ended(state, phase.after);
  const tries = phase.tries + 1;
  return go({ ...state, connection: "connecting" }, { ...phase, tries }, clearGoodbyeTimer, connect(tries));
}

function connect(attempt: number, { withFlight = false } = {}): SessionEvent {
  return toConnection({ type: "connect", withFlight, attempt });
}

function reportUp({ phase }: Runner): SessionEvent {
  return toQueue({ type: "up", hasRunner: phase.at === "idle" || phase.at === "working" });
}
