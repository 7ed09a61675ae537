import type { Problem } from "#errors/problem.ts";
import type { NodeOutcome, Outcome, RunEventBody } from "#engine/events/event.ts";
import type { Frame } from "#engine/program/frames.ts";
import type { PlannedStep, Registered, StepDraft } from "#engine/states/planned-step.ts";

/** A step that waits for its turn. */
export interface QueuedStep {
  /** Its name on the node. */
  readonly key: string;
  readonly draft: StepDraft;
}

/** A step as it goes to the node. */
export interface ReadyStep {
  readonly key: string;
  readonly plan: PlannedStep;
  /** Keys of the steps that watch it. */
  readonly owes: readonly string[];
}

/** What goes to the node in one segment. */
export interface Batch {
  readonly steps: readonly ReadyStep[];
  /** The node's facts are gathered after the steps. */
  readonly facts: boolean;
  /** When it ends in order nothing follows: the runner ends by itself. */
  readonly isLast: boolean;
}

/** Why no further work can be done on the node. */
export interface Trouble {
  readonly problem: Problem;
  readonly outcome: NodeOutcome;
}

/**
 * What a connection is made for: a flight goes along with it and starts at once; a look only wants to be connected; who
 * attaches goes on when all was heard that happened on the node meanwhile.
 */
export type Purpose = "flight" | "look" | "attach";

export type ConnectionEvent =
  | { readonly type: "dial"; readonly purpose: Purpose; readonly attempt: number }
  /** The host took the connection; its shell is being started. */
  | { readonly type: "reached" }
  | { readonly type: "opened" }
  | { readonly type: "refused"; readonly problem: Problem }
  | { readonly type: "lost"; readonly said: string }
  /** Whether the host's connection ended with the channel. */
  | { readonly type: "judged"; readonly isHostGone: boolean }
  /** The pause before the next attempt is over. */
  | { readonly type: "waited" }
  | { readonly type: "hello"; readonly boot: string; readonly epoch: number }
  /** The follower has told the journal as it was when it came. */
  | { readonly type: "told" }
  /** The running segment ends with a reboot that may take so many milliseconds; undefined: it does not. */
  | { readonly type: "expect-reboot"; readonly within: number | undefined }
  /** A new one has to confirm a change, in so many seconds; then the node takes it back. */
  | { readonly type: "renew"; readonly within: number }
  | { readonly type: "stop" }
  /** When it ends nobody comes back. */
  | { readonly type: "let-go" }
  | { readonly type: "hang-up" };

export type RunnerEvent =
  | { readonly type: "work"; readonly batch: Batch }
  /** Somebody only wants to be connected. */
  | { readonly type: "look" }
  /** Somebody wants to know what an earlier process of this run left. */
  | { readonly type: "join" }
  /** What an earlier process left is ended. */
  | { readonly type: "take-over" }
  | { readonly type: "rest" }
  | { readonly type: "finish"; readonly outcome: NodeOutcome }
  | { readonly type: "stop"; readonly how: "stop" | "abort" }
  | { readonly type: "opened" }
  /** The connection can be used: all was heard that it has to tell. */
  | { readonly type: "up" }
  /** It broke; it is being made again. */
  | { readonly type: "down" }
  /** It ended for good. */
  | { readonly type: "cut" }
  /** It cannot be made. */
  | { readonly type: "unreachable" }
  /** A goodbye was not answered in time. */
  | { readonly type: "unanswered" }
  /** An abort was given in time to be over. */
  | { readonly type: "abort-late" }
  /** `offset`: bytes of the journal up to the end of this frame. */
  | { readonly type: "frame"; readonly frame: Frame; readonly offset: number }
  /** A step goes on: no question for blobs is open. */
  | { readonly type: "went-on" };

export type QueueEvent =
  | { readonly type: "perform"; readonly steps: readonly QueuedStep[]; readonly isLast: boolean }
  | { readonly type: "rest" }
  | { readonly type: "finish"; readonly outcome: NodeOutcome }
  | { readonly type: "stop" }
  /** What an earlier process of this run left is over. */
  | { readonly type: "joined" }
  | { readonly type: "up"; readonly hasRunner: boolean }
  | { readonly type: "hello"; readonly boot: string }
  | { readonly type: "ended" }
  /** The batch left; `isFirst`: along with a connection, which has not said hello yet. */
  | { readonly type: "sent"; readonly isFirst: boolean }
  /** The batch was not sent, because of a stop. */
  | { readonly type: "withheld" }
  /** The runner is not there any more: a reboot, or somebody killed it. */
  | { readonly type: "lost" }
  | { readonly type: "locked"; readonly problem: Problem }
  | ({ readonly type: "failed" } & Trouble)
  | { readonly type: "lock-waited" }
  /** The node, which reboots, could not be reached. */
  | { readonly type: "away"; readonly problem: Problem }
  | { readonly type: "reboot-late" };

/** What one machine tells another, or the world tells one of them. */
export type Message =
  | { readonly to: "connection"; readonly event: ConnectionEvent }
  | { readonly to: "runner"; readonly event: RunnerEvent }
  | { readonly to: "queue"; readonly event: QueueEvent };

export type Timer = "retry" | "goodbye" | "abort" | "lock" | "reboot";

/** What is to be done in the world. */
export type Effect =
  | { readonly do: "emit"; readonly event: RunEventBody }
  | { readonly do: "dial"; readonly attempt: number; readonly withFlight: boolean }
  /** Finds out whether the host's connection ended too. */
  | { readonly do: "judge" }
  | { readonly do: "start-beat" | "stop-beat" }
  /** Ends the follower's channel, or that and the connection. */
  | { readonly do: "end-link" | "hang-up" }
  | { readonly do: "wait"; readonly timer: Timer; readonly milliseconds: number }
  | { readonly do: "forget"; readonly timer: Timer }
  /** Makes a segment's text, and with `launch` the runner's. */
  | {
      readonly do: "write";
      readonly number: number;
      readonly exchange: number;
      readonly batch: Batch;
      readonly launch: boolean;
    }
  /** Tells that the segment written last went out. */
  | { readonly do: "announce" }
  /** Sends what was written last: all of it, or only its segment. */
  | { readonly do: "transmit"; readonly what: "flight" | "segment" }
  | { readonly do: "say"; readonly text: string }
  | { readonly do: "send-blobs"; readonly names: readonly string[] }
  | {
      readonly do: "end-step";
      readonly key: string;
      readonly outcome: Outcome;
      readonly reason?: string;
      readonly problem?: Problem;
    }
  /** The work that was asked for is over. */
  | { readonly do: "return"; readonly trouble: Trouble | undefined; readonly failed: Problem | undefined }
  | { readonly do: "rested" | "finished" };

/** What is known of the node's steps. */
export interface Heard {
  outcomeOf(key: string): Outcome | undefined;
  wasStarted(key: string): boolean;
  problemOf(key: string): Problem | undefined;
  registered(key: string): Registered | undefined;
  readonly facts: Readonly<Record<string, string>>;
}

/** What a transition rests on beside state and event. */
export interface Setting {
  readonly node: string;
  readonly runId: string;
  readonly retryDelays: readonly number[];
  readonly resumed: boolean;
  readonly waitForLock: boolean;
  readonly heard: Heard;
  /** The last lines on the node's console, where the bastion has a log of it. */
  readonly console?: () => string | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** A number from 0 to 1, drawn for this event. */
  readonly chance: number;
}

/** What an event makes of a state. */
export interface Next<State> {
  readonly state: State;
  readonly effects: readonly (Effect | Message)[];
}
