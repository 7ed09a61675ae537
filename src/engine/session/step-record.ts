import type { Problem } from "#errors/problem.ts";
import type { Outcome } from "#engine/events/event.ts";
import type { PlannedStep, UnresolvedStep } from "#engine/states/planned-step.ts";

/** What is known of one step of the node while its frames come in. */
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
  /** In a dry run: how it ended was told with a condition. */
  isConditional?: boolean;
  startedAt?: number;
  /** Its apply began, and did not come to an end yet: what is in order after that was brought about by this run. */
  applying?: boolean;
  errors: string;
  /** It was begun, and its end was not told yet. */
  isOpen?: boolean;
  /** How often it was begun. */
  starts: number;
  /** Characters of what the node said that are kept here. */
  kept: number;
}

/** How a runner calls them. */
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

/** Nobody tries again what ended so (take.ts). */
export function isFinal(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && outcome !== "failed" && outcome !== "interrupted";
}
