import type { NodeOutcome } from "#engine/events/event.ts";
import { go, toConnection, toQueue, type Batch, type SessionEffect, type TransitionResult } from "./session-events.ts";

/**
 * The reason for ending a runner. `rest`: the session gives connection and lock back until the next work. `finish`: the node's part of the run
 * is over. `join`: an earlier process of this run started the runner, and this process goes on with a runner of its own.
 */
type EndReason = "rest" | "join" | "finish";

type RunnerPhase =
  /** No runner is known to live, so the next segment brings one along. `due`: the batch to send once there is a connection. */
  | { readonly at: "absent"; readonly due?: Batch }
  /** The runner waits for a segment. */
  | { readonly at: "idle"; readonly due?: Batch }
  /** A runner and its segment were sent along with a connection that is being made. */
  | { readonly at: "flying" }
  /** A segment was sent, and the runner has not begun it yet. */
  | { readonly at: "sent" }
  | { readonly at: "working" }
  /** The last segment succeeded, and the runner ends without being asked. `due`: the batch for a new runner. */
  | { readonly at: "ending"; readonly due?: Batch }
  /** The runner works on a segment of an earlier process of this run, and was sent `stop`. */
  | { readonly at: "inherited" }
  /** The runner's `bye` is awaited. `fin` was sent, or will be sent once there is a connection. */
  | {
      readonly at: "finishing";
      readonly after: EndReason;
      readonly outcome: NodeOutcome;
      readonly tries: number;
    };

/** The runner on the node, as far as the bastion knows. */
export interface Runner {
  readonly phase: RunnerPhase;
  readonly connection: "none" | "connecting" | "up";
  /** Number of the last segment, also one that an earlier process of this run sent. */
  readonly segment: number;
  /** After this segment the runner ends without being asked, if every step succeeds. */
  readonly isLast: boolean;
  /** Bytes of the journal that earlier runners wrote. */
  readonly history: number;
  /** The step with a change on trial; the next connection confirms the change. */
  readonly trial: string | undefined;
  /** Names of the blobs that the runner waits for. */
  readonly asked: readonly string[];
  /** The operator's request, kept for a runner that cannot be reached yet. */
  readonly stopRequest: "stop" | "abort" | undefined;
  readonly exchanges: number;
}

export const noRunner: Runner = {
  phase: { at: "absent" },
  connection: "none",
  segment: 0,
  isLast: false,
  history: 0,
  trial: undefined,
  asked: [],
  stopRequest: undefined,
  exchanges: 0,
};

export function requestEnd(state: Runner, after: EndReason, outcome: NodeOutcome): TransitionResult<Runner> {
  const phase = { at: "finishing", after, outcome, tries: 1 } as const;
  return go(state, phase, ...(state.connection === "up" ? sendFin(phase) : []));
}

/** The effects that send `fin` and wait for the runner's `bye`. */
export function sendFin({ after, outcome }: { after: EndReason; outcome: NodeOutcome }) {
  return [
    ...(after === "finish" ? [toConnection({ type: "stop-reconnecting" })] : []),
    { do: "send-command", text: `fin ${outcome}\n` } as const,
    startGoodbyeTimer,
  ];
}

/** Waits for the `bye` of a runner that ends without being asked. */
export function awaitBye(state: Runner, outcome: NodeOutcome): TransitionResult<Runner> {
  const phase = { at: "finishing", after: "finish", outcome, tries: 1 } as const;
  return go(state, phase, toConnection({ type: "stop-reconnecting" }), startGoodbyeTimer);
}

/** The runner is gone: closes the connection and reports the end. */
export function ended(state: Runner, after: EndReason): TransitionResult<Runner> {
  return go(
    { ...state, connection: "none", asked: [] },
    { at: "absent" },
    clearGoodbyeTimer,
    { do: "clear-timer", timer: "abort" },
    toConnection({ type: "disconnect" }),
    after === "join" ? toQueue({ type: "joined" }) : { do: after === "rest" ? "rested" : "finished" },
  );
}

const startGoodbyeTimer: SessionEffect = { do: "start-timer", timer: "goodbye", milliseconds: 15_000 };

export const clearGoodbyeTimer: SessionEffect = { do: "clear-timer", timer: "goodbye" };
