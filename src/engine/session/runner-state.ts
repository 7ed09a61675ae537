import type { NodeOutcome } from "#engine/events/event.ts";
import type { Batch, ConnectionEvent, SessionEffect, SessionEvent, TransitionResult, QueueEvent } from "./session-events.ts";

type Phase =
  /** None is known to live: the next segment takes one along. `due`: to be sent when the connection is back. */
  | { readonly at: "absent"; readonly due?: Batch }
  /** It lives and waits for a segment. */
  | { readonly at: "idle"; readonly due?: Batch }
  /** It was sent, with a segment, along with the connection that is being made. */
  | { readonly at: "flying" }
  /** A segment was sent to it, of which nothing was heard yet. */
  | { readonly at: "sent" }
  | { readonly at: "working" }
  /** Its last segment ended in order: it ends without being asked. `due`: for the next one. */
  | { readonly at: "ending"; readonly due?: Batch }
  /** It is at a segment that an earlier process of this run sent, and was told to stop. */
  | { readonly at: "inherited" }
  /** It was asked to end, or will be as soon as there is a connection; its last word is awaited. */
  | {
      readonly at: "finishing";
      readonly after: "rest" | "join" | "finish";
      readonly outcome: NodeOutcome;
      readonly tries: number;
    };

/** The runner on the node, as far as it is known, and what was sent to it. */
export interface Runner {
  readonly phase: Phase;
  /** Of the connection; `down` while it is being made. */
  readonly connection: "none" | "down" | "up";
  /** Number of the segment that was sent last, or that an earlier process sent. */
  readonly segment: number;
  /** That segment is its last if it ends in order. */
  readonly isLast: boolean;
  /** Bytes of the journal that earlier runners wrote. */
  readonly history: number;
  /** The step whose change a connection made from now on confirms. */
  readonly trial: string | undefined;
  /** Blobs that it waits for. */
  readonly asked: readonly string[];
  /** What somebody wants it to do before its time. */
  readonly wish: "stop" | "abort" | undefined;
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
  wish: undefined,
  exchanges: 0,
};

/** Milliseconds for its last word. */
const goodbyePatience = 15_000;

/** Asks it to end. */
export function leave(state: Runner, after: "rest" | "join" | "finish", outcome: NodeOutcome): TransitionResult<Runner> {
  const phase = { at: "finishing", after, outcome, tries: 1 } as const;
  return go(state, phase, ...(state.connection === "up" ? goodbye(phase) : []));
}

export function goodbye({ after, outcome }: { after: "rest" | "join" | "finish"; outcome: NodeOutcome }) {
  return [
    ...(after === "finish" ? [tellConnection({ type: "stop-reconnecting" })] : []),
    { do: "send-command", text: `fin ${outcome}\n` } as const,
    awaitGoodbye,
  ];
}

/** Its last word comes without being asked for. */
export function awaitBye(state: Runner, outcome: NodeOutcome): TransitionResult<Runner> {
  const phase = { at: "finishing", after: "finish", outcome, tries: 1 } as const;
  return go(state, phase, tellConnection({ type: "stop-reconnecting" }), awaitGoodbye);
}

/** It is gone, and the connection ends. */
export function part(state: Runner, after: "rest" | "join" | "finish"): TransitionResult<Runner> {
  return go(
    { ...state, connection: "none", asked: [] },
    { at: "absent" },
    forgetGoodbye,
    { do: "clear-timer", timer: "abort" },
    tellConnection({ type: "disconnect" }),
    after === "join" ? tellQueue({ type: "joined" }) : { do: after === "rest" ? "rested" : "finished" },
  );
}

const awaitGoodbye: SessionEffect = { do: "start-timer", timer: "goodbye", milliseconds: goodbyePatience };

export const forgetGoodbye: SessionEffect = { do: "clear-timer", timer: "goodbye" };

export function tellConnection(event: ConnectionEvent): SessionEvent {
  return { to: "connection", event };
}

export function tellQueue(event: QueueEvent): SessionEvent {
  return { to: "queue", event };
}

export function next(state: Runner, ...effects: readonly (SessionEffect | SessionEvent)[]): TransitionResult<Runner> {
  return { state, effects };
}

export function go(state: Runner, phase: Phase, ...effects: readonly (SessionEffect | SessionEvent)[]): TransitionResult<Runner> {
  return { state: { ...state, phase }, effects };
}
