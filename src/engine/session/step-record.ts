import type { Problem } from "#errors/problem.ts";
import type { Outcome } from "#engine/events/event.ts";
import type { PlannedStep, UnresolvedStep } from "#engine/states/planned-step.ts";

/** One step of the node, as its frames describe it so far. */
export interface StepRecord {
  readonly draft: UnresolvedStep;
  readonly stage: string;
  plan?: PlannedStep | undefined;
  outcome?: Outcome;
  have: Record<string, string>;
  now: Record<string, string>;
  shown?: string;
  stdout: string;
  rc: number;
  problem?: Problem;
  cause?: Problem;
  why?: string;
  /** The outcome in a dry run depends on another step (`unless KEY …`). */
  isConditional?: boolean;
  startedAt?: number;
  /** The apply began and has not ended. If the step is found in order later, this run has changed it. */
  applying?: boolean;
  errors: string;
  /** The step was started and has not ended. */
  isOpen?: boolean;
  /** Number of starts. */
  starts: number;
  /** Characters of the node's frames that this record keeps. */
  kept: number;
}

/** By the runner's word for them. */
export const outcomes: ReadonlyMap<string, Outcome> = new Map([
  ["ok", "ok"],
  ["changed", "changed"],
  ["would", "would-change"],
  ["skipped", "skipped"],
  ["unknown", "unknown"],
  ["failed", "failed"],
  ["interrupted", "interrupted"],
]);

export function newRecord(draft: UnresolvedStep, stage: string): StepRecord {
  return { draft, stage, have: {}, now: {}, stdout: "", rc: 0, errors: "", starts: 0, kept: 0 };
}

/** Whether a step with this outcome is not sent again (next-batch.ts). */
export function isFinal(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && outcome !== "failed" && outcome !== "interrupted";
}
