import type { NodeOutcome, Outcome, RunEventBody } from "#engine/events/event.ts";
import type { Problem } from "#errors/problem.ts";

/** The work of one call of a node's session, as it travels. */
export interface NodeCall {
  /** Counts from 1 in a session. */
  readonly call: number;
  /** Each with a hash over the ids of its steps: a worker whose steps differ refuses the call. */
  readonly stages: readonly { readonly id: string; readonly steps: string }[];
  readonly isLast: boolean;
  /** JSON of `StageOutputs.usedBy`. */
  readonly outputs: unknown;
}

/** A message from the coordinator to the worker that has a node. */
export type Command =
  /** The answer to `hello`: the worker may speak to the node. */
  | {
      readonly do: "open";
      /** The node refuses workers with a lower number. */
      readonly attempt: number;
      /** By step id, the outcomes that the run's record has. */
      readonly recorded: readonly (readonly [string, readonly Outcome[]])[];
      /** The run spoke to the node before. */
      readonly resumed: boolean;
      /** The calls that have ended well: their steps are made again, and the node's journal has their ends. */
      readonly done: readonly NodeCall[];
      /** The looks that found the node in order; absent: none is sent. */
      readonly looks?: readonly string[];
    }
  | ({ readonly do: "perform" } & NodeCall)
  | { readonly do: "stop"; readonly how: "stop" | "abort" }
  | { readonly do: "rest" }
  | { readonly do: "finish"; readonly outcome: NodeOutcome; readonly problem?: Problem }
  | {
      readonly do: "answer";
      readonly request: number;
      readonly value?: unknown;
      readonly problems?: readonly Problem[];
    }
  /** Nothing is left to do here. */
  | { readonly do: "drop" };

/** A call of a worker to the coordinator: a question to an operator, or a step of a save of a disk's tables. */
export type RequestMethod = "ask" | "table.open" | "table.add" | "table.keep" | "table.forget" | "table.drop";

/** A message from the worker that has a node. */
export type Report =
  | { readonly tell: "events"; readonly events: readonly RunEventBody[] }
  /** `result`: JSON of the session's `WorkResult`. */
  | { readonly tell: "result"; readonly call: number; readonly result: unknown }
  /** The worker cannot do the node's work, and has not spoken to the node. */
  | { readonly tell: "refused"; readonly problem: Problem }
  | { readonly tell: "looks"; readonly hashes: readonly string[] }
  | { readonly tell: "request"; readonly request: number; readonly method: RequestMethod; readonly args: unknown }
  /** The session gave connection and lock back, or finished. */
  | { readonly tell: "ended" };

/** A run, as its workers need it once: encrypted to them and signed by the coordinator. */
export interface RunPackage {
  /** kcore's version: another one would render other steps. */
  readonly version: string;
  readonly runId: string;
  /** Counts the processes that drove the run, from 1. */
  readonly part: number;
  readonly nonce: string;
  readonly who: string;
  /** When the run began, in milliseconds since the epoch. */
  readonly began: number;
  readonly revision?: string;
  readonly dirty?: boolean;
  /** JSON of the request: with secret parameters that an operator typed. */
  readonly request: unknown;
  /** SHA-256 of the project's archive. */
  readonly project: string;
  /** The decisions of the run about targets with `fact:`. */
  readonly factTerms?: string;
  /** Encrypts jobs and messages: 32 bytes in base64. */
  readonly key: string;
}

/** The data of a job in the queue, encrypted by the run's key. */
export interface Ticket {
  readonly node: string;
}
