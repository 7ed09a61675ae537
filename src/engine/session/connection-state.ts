import type { Problem } from "#errors/problem.ts";
import type { SessionEffect, SessionEvent, TransitionResult } from "./session-events.ts";

/** How a lost connection is made again. */
export interface Reconnect {
  /** Milliseconds before each further attempt, varied at random. */
  readonly pauses: readonly number[];
  /** The node reboots: attempts are repeated until this time, in milliseconds since 1970. */
  readonly reboot: { readonly within: number; readonly until: number } | undefined;
}

export interface ConnectionRequest {
  readonly withFlight: boolean;
  readonly attempt: number;
  /** Set after a lost connection. */
  readonly retry?: Reconnect;
}

export type ConnectionPhase =
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
  /** Milliseconds that the reboot at the end of the running segment may take. */
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
