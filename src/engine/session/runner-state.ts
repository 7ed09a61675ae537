import type { NodeOutcome } from "#engine/events/event.ts";
import type { Batch, ConnectionEvent, Effect, Message, Next, QueueEvent } from "./session-events.ts";

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
  | { readonly at: "parting"; readonly due?: Batch }
  /** It is at a segment that an earlier process of this run sent, and was told to stop. */
  | { readonly at: "inherited" }
  /** It was asked to end, or will be as soon as there is a connection; its last word is awaited. */
  | {
      readonly at: "leaving";
      readonly after: "rest" | "join" | "finish";
      readonly outcome: NodeOutcome;
      readonly tries: number;
    };

/** The runner on the node, as far as it is known, and what was sent to it. */
export interface Runner {
  readonly phase: Phase;
  /** Of the connection; `down` while it is being made. */
  readonly line: "none" | "down" | "up";
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
  line: "none",
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
export function leave(state: Runner, after: "rest" | "join" | "finish", outcome: NodeOutcome): Next<Runner> {
  const phase = { at: "leaving", after, outcome, tries: 1 } as const;
  return go(state, phase, ...(state.line === "up" ? goodbye(phase) : []));
}

export function goodbye({ after, outcome }: { after: "rest" | "join" | "finish"; outcome: NodeOutcome }) {
  return [
    ...(after === "finish" ? [tellConnection({ type: "let-go" })] : []),
    { do: "say", text: `fin ${outcome}\n` } as const,
    awaitGoodbye,
  ];
}

/** Its last word comes without being asked for. */
export function awaitBye(state: Runner, outcome: NodeOutcome): Next<Runner> {
  const phase = { at: "leaving", after: "finish", outcome, tries: 1 } as const;
  return go(state, phase, tellConnection({ type: "let-go" }), awaitGoodbye);
}

/** It is gone, and the connection ends. */
export function part(state: Runner, after: "rest" | "join" | "finish"): Next<Runner> {
  return go(
    { ...state, line: "none", asked: [] },
    { at: "absent" },
    forgetGoodbye,
    { do: "forget", timer: "abort" },
    tellConnection({ type: "hang-up" }),
    after === "join" ? tellQueue({ type: "joined" }) : { do: after === "rest" ? "rested" : "finished" },
  );
}

const awaitGoodbye: Effect = { do: "wait", timer: "goodbye", milliseconds: goodbyePatience };

export const forgetGoodbye: Effect = { do: "forget", timer: "goodbye" };

export function tellConnection(event: ConnectionEvent): Message {
  return { to: "connection", event };
}

export function tellQueue(event: QueueEvent): Message {
  return { to: "queue", event };
}

export function next(state: Runner, ...effects: readonly (Effect | Message)[]): Next<Runner> {
  return { state, effects };
}

export function go(state: Runner, phase: Phase, ...effects: readonly (Effect | Message)[]): Next<Runner> {
  return { state: { ...state, phase }, effects };
}
