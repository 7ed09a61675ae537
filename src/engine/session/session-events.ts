import type { Problem } from "#errors/problem.ts";
import type { NodeOutcome, Outcome, RunEventBody } from "#engine/events/event.ts";
import type { Frame } from "#engine/program/frames.ts";
import type { PlannedStep, Registered, UnresolvedStep } from "#engine/states/planned-step.ts";

/** A step that waits for its turn. */
export interface QueuedStep {
  /** The step's name on the node. */
  readonly key: string;
  readonly draft: UnresolvedStep;
}

/** A rendered step, ready to be sent to the node. */
export interface ReadyStep {
  readonly key: string;
  readonly plan: PlannedStep;
  /** Keys of the steps that watch this step. */
  readonly owes: readonly string[];
}

/** Steps that are sent together in one segment. If the runner is lost, the unfinished steps follow in another segment. */
export interface Batch {
  readonly steps: readonly ReadyStep[];
  /** The node's facts are gathered after the steps. */
  readonly facts: boolean;
  /** The session's last batch: if every step succeeds, the runner ends without being asked. */
  readonly isLast: boolean;
}

/** Why no further work can be done on the node. */
export interface NodeFailure {
  readonly problem: Problem;
  readonly outcome: NodeOutcome;
}

export type ConnectionEvent =
  /** `withFlight`: a segment is sent together with the follower's text. Otherwise the journal is read up to the present first. */
  | { readonly type: "connect"; readonly withFlight: boolean; readonly attempt: number }
  /** The SSH connection is there; its shell is being started. */
  | { readonly type: "reached" }
  | { readonly type: "opened" }
  | { readonly type: "refused"; readonly problem: Problem }
  | { readonly type: "lost"; readonly output: string }
  /** The connection of a look has ended before its time. */
  | { readonly type: "look-lost" }
  /** Whether the SSH connection ended together with the follower's channel. */
  | { readonly type: "host-checked"; readonly isHostGone: boolean }
  /** The pause before the next attempt is over. */
  | { readonly type: "retry-due" }
  | { readonly type: "hello"; readonly boot: string; readonly epoch: number }
  /** The follower has sent the journal as it was when the connection began. */
  | { readonly type: "caught-up" }
  /** The running segment ends with a reboot that may take this many milliseconds; undefined: without a reboot. */
  | { readonly type: "expect-reboot"; readonly within: number | undefined }
  /** A new connection must confirm a change within this many seconds; otherwise the node reverts the change. */
  | { readonly type: "renew"; readonly within: number }
  | { readonly type: "stop" }
  /** A connection that ends from now on is not made again. */
  | { readonly type: "stop-reconnecting" }
  | { readonly type: "disconnect" };

export type RunnerEvent =
  | { readonly type: "work"; readonly batch: Batch }
  /** The queue needs a connection, and no work done. */
  | { readonly type: "connect-only" }
  /** The queue needs to know which steps an earlier process of this run left on the node. */
  | { readonly type: "join" }
  /** The runner of an earlier process of this run is to end. */
  | { readonly type: "take-over" }
  | { readonly type: "rest" }
  | { readonly type: "finish"; readonly outcome: NodeOutcome }
  /** The run is over here, whether the runner answers or not. */
  | { readonly type: "give-up"; readonly outcome: NodeOutcome }
  | { readonly type: "stop"; readonly how: "stop" | "abort" }
  | { readonly type: "opened" }
  /** The connection can be used, and the journal has been read up to the present. */
  | { readonly type: "up" }
  /** The connection broke and is being made again. */
  | { readonly type: "down" }
  /** The connection ended for good. */
  | { readonly type: "closed" }
  | { readonly type: "unreachable" }
  /** The runner did not answer `fin` in time. */
  | { readonly type: "goodbye-timeout" }
  /** The running step did not end in time after an abort. */
  | { readonly type: "abort-timeout" }
  /** `offset`: bytes of the journal up to the end of this frame. */
  | { readonly type: "frame"; readonly frame: Frame; readonly offset: number }
  /** A step continues, so the runner waits for no blobs. */
  | { readonly type: "blob-request-closed" };

export type QueueEvent =
  | { readonly type: "perform"; readonly steps: readonly QueuedStep[]; readonly isLast: boolean }
  /** A look has shown these steps in order. */
  | {
      readonly type: "looked";
      readonly steps: readonly QueuedStep[];
      readonly registered: ReadonlyMap<string, Registered | undefined>;
    }
  | { readonly type: "rest" }
  | { readonly type: "finish"; readonly outcome: NodeOutcome }
  | { readonly type: "stop" }
  /** The runner of an earlier process of this run has ended, or there was none. */
  | { readonly type: "joined" }
  | { readonly type: "up"; readonly hasRunner: boolean }
  | { readonly type: "hello"; readonly boot: string }
  /** The segment has ended. */
  | { readonly type: "ended" }
  /** The batch was sent. `isFirst`: together with a new connection, before the node's hello. */
  | { readonly type: "sent"; readonly isFirst: boolean }
  /** A stop came before the batch was sent. */
  | { readonly type: "withheld" }
  /** The runner is gone: the node rebooted, or the runner was killed. */
  | { readonly type: "lost" }
  | { readonly type: "locked"; readonly problem: Problem }
  | ({ readonly type: "failed" } & NodeFailure)
  | { readonly type: "lock-retry-due" }
  /** The rebooting node could not be reached yet. */
  | { readonly type: "reconnect-failed"; readonly problem: Problem }
  | { readonly type: "reboot-timeout" };

/** An event, addressed to one of the session's three state machines. */
export type SessionEvent =
  | { readonly to: "connection"; readonly event: ConnectionEvent }
  | { readonly to: "runner"; readonly event: RunnerEvent }
  | { readonly to: "queue"; readonly event: QueueEvent };

export function toConnection(event: ConnectionEvent): SessionEvent {
  return { to: "connection", event };
}

export function toRunner(event: RunnerEvent): SessionEvent {
  return { to: "runner", event };
}

export function toQueue(event: QueueEvent): SessionEvent {
  return { to: "queue", event };
}

export type Timer = "retry" | "goodbye" | "abort" | "lock" | "reboot";

/** An effect of a transition on the outside world. */
export type SessionEffect =
  | { readonly do: "emit"; readonly event: RunEventBody }
  | { readonly do: "connect"; readonly attempt: number; readonly withFlight: boolean }
  /** Finds out whether the SSH connection ended too. */
  | { readonly do: "check-host" }
  | { readonly do: "start-beat" | "stop-beat" }
  /** Closes the follower's channel; `disconnect` closes the SSH connection as well. */
  | { readonly do: "close-channel" | "disconnect" }
  | { readonly do: "start-timer"; readonly timer: Timer; readonly milliseconds: number }
  | { readonly do: "clear-timer"; readonly timer: Timer }
  /** Writes a segment's text. `launch`: with a new runner in front of the segment. */
  | {
      readonly do: "write-segment";
      readonly number: number;
      readonly exchange: number;
      readonly batch: Batch;
      readonly launch: boolean;
    }
  /** Emits the event for the segment that was written last. */
  | { readonly do: "report-segment" }
  /** Sends the last written text: with its runner (`flight`), or the segment alone. */
  | { readonly do: "transmit"; readonly what: "flight" | "segment" }
  | { readonly do: "send-command"; readonly text: string }
  | { readonly do: "send-blobs"; readonly names: readonly string[] }
  | {
      readonly do: "end-step";
      readonly key: string;
      readonly outcome: Outcome;
      readonly reason?: string;
      readonly problem?: Problem;
    }
  /** Ends the call of `perform`. `failed`: why its first failed step failed. */
  | { readonly do: "return"; readonly nodeFailure: NodeFailure | undefined; readonly failed: Problem | undefined }
  | { readonly do: "rested" | "finished" };

/** The present results of the node's steps. */
export interface StepResults {
  outcomeOf(key: string): Outcome | undefined;
  wasStarted(key: string): boolean;
  problemOf(key: string): Problem | undefined;
  registered(key: string): Registered | undefined;
  readonly facts: Readonly<Record<string, string>>;
}

/** The inputs of a transition beside state and event. */
export interface TransitionContext {
  readonly node: string;
  readonly runId: string;
  readonly retryDelays: readonly number[];
  readonly resumed: boolean;
  readonly waitForLock: boolean;
  readonly results: StepResults;
  /** The last lines on the node's console, if the bastion has a log of the console. */
  readonly console?: () => string | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** A random number from 0 to 1, new for each event. */
  readonly chance: number;
}

/** A transition's next state, with effects, and events for the other state machines. */
export interface TransitionResult<State> {
  readonly state: State;
  readonly effects: readonly (SessionEffect | SessionEvent)[];
}

/** The transition that leaves the phase as it is. */
export function stay<State>(
  state: State,
  ...effects: readonly (SessionEffect | SessionEvent)[]
): TransitionResult<State> {
  return { state, effects };
}

/** The transition to this phase. */
export function go<State extends { readonly phase: unknown }>(
  state: State,
  phase: State["phase"],
  ...effects: readonly (SessionEffect | SessionEvent)[]
): TransitionResult<State> {
  return { state: { ...state, phase }, effects };
}
