import type { Problem } from "#errors/problem.ts";
import type { SessionEffect, SessionEvent, TransitionResult, Purpose } from "./session-events.ts";

/** How a lost connection is made again. */
export interface Retry {
  /** Milliseconds, about, before each further attempt. */
  readonly pauses: readonly number[];
  /** While the node boots: again and again, until its time is over. */
  readonly reboot: { readonly within: number; readonly until: number } | undefined;
}

/** A connection that is to be made. */
export interface Wanted {
  readonly purpose: Purpose;
  readonly attempt: number;
  /** After a drop. */
  readonly retry?: Retry;
}

export type ConnectionPhase =
  | { readonly at: "none" }
  /** The host is being reached; then its shell is started. */
  | ({
      readonly at: "connecting" | "starting";
      /** The follower told all before its link was handed over: a login that is not root waits for its first word. */
      readonly isCaughtUp?: boolean;
    } & Wanted)
  /** It is being made, and nobody wants it any more; the next one may be wanted already. */
  | { readonly at: "cancelling"; readonly next?: Wanted }
  /** There is one; it tells what happened meanwhile. */
  | { readonly at: "attaching" }
  | { readonly at: "open" }
  /** There is one; when it ends nobody comes back. */
  | { readonly at: "closing" }
  /** It ended before the node said a word: does the shell refuse us, or did the connection break? */
  | { readonly at: "checking-host"; readonly problem: Problem }
  | { readonly at: "pausing"; readonly problem: Problem; readonly attempt: number; readonly retry: Retry };

/** The connection to the node: made when wanted, made again when it breaks, until it is let go. */
export interface Connection {
  readonly phase: ConnectionPhase;
  /** Of the node's present boot, once it said hello. */
  readonly boot: string | undefined;
  /** Connections made since the last one over which the node's shell answered. */
  readonly unanswered: number;
  /** Milliseconds since 1970 when the host was last reached. */
  readonly reachedAt: number;
  /** How long the reboot may take with which the running segment ends. */
  readonly reboot: number | undefined;
  readonly isStopped: boolean;
}

export const noConnection: Connection = {
  phase: { at: "none" },
  boot: undefined,
  unanswered: 0,
  reachedAt: 0,
  reboot: undefined,
  isStopped: false,
};

export function tellRunner(type: "opened" | "up" | "down" | "closed" | "unreachable"): SessionEvent {
  return { to: "runner", event: { type } };
}

export function stay(state: Connection): TransitionResult<Connection> {
  return { state, effects: [] };
}

export function go(
  state: Connection,
  phase: ConnectionPhase,
  ...effects: readonly (SessionEffect | SessionEvent)[]
): TransitionResult<Connection> {
  return { state: { ...state, phase }, effects };
}
