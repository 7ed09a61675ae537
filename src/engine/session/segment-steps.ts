import type { Problem } from "#errors/problem.ts";
import { timeoutOf } from "#engine/program/compile-step.ts";
import { shapeFacts } from "#engine/facts/shape.ts";
import type { StepInputs } from "./next-segment.ts";
import type { Batch, QueuedStep, SessionEffect, StepResults, TransitionContext } from "./session-events.ts";

/** Milliseconds that the reboot at the end of the batch may take; undefined: the batch does not end with a reboot. */
export function rebootLimit({ steps }: Batch): number | undefined {
  const last = steps.at(-1)?.plan;
  return last?.step.ends === "boot" ? timeoutOf(last) * 1_000 : undefined;
}

/** Whether the batch ends with a reboot that has begun. */
export function isRebooting(batch: Batch, results: StepResults): boolean {
  const last = batch.steps.at(-1);
  return rebootLimit(batch) !== undefined && last !== undefined && results.outcomeOf(last.key) === "changed";
}

/** The values that an ended batch has for later steps, and the event for its facts. */
export function batchResults(
  inputs: StepInputs,
  { steps, facts }: Batch,
  { results, node }: TransitionContext,
): { readonly inputs: Pick<StepInputs, "registered" | "facts">; readonly effects: readonly SessionEffect[] } {
  const registered = new Map(inputs.registered);
  for (const { key, plan } of steps)
    if (plan.register !== undefined && results.outcomeOf(key) !== undefined)
      registered.set(plan.register, results.registered(key));
  if (!facts || Object.keys(results.facts).length === 0) return { inputs: { ...inputs, registered }, effects: [] };
  const shaped = shapeFacts(results.facts);
  const effects = [{ do: "emit", event: { type: "node.facts", node, facts: shaped } } as const];
  return { inputs: { registered, facts: shaped }, effects };
}

export function firstFailure({ steps }: Batch, results: StepResults): Problem | undefined {
  const failed = steps.find(({ key }) => results.outcomeOf(key) === "failed");
  if (!failed) return undefined;
  const { key, plan } = failed;
  return results.problemOf(key) ?? { code: "STEP_FAILED", message: `“${plan.title}” failed`, at: plan.at };
}

/** The waiting steps that follow a failure in the batch: those that react to it (`onFailure`), and behind failed checks the checks. */
export function failureHandlers(
  rest: readonly QueuedStep[],
  { steps }: Batch,
  results: StepResults,
): readonly QueuedStep[] {
  const failed = steps.filter(({ key }) => results.outcomeOf(key) === "failed").map(({ plan }) => plan);
  const ids = new Set(failed.map(({ id }) => id));
  const isHeld = failed.every(({ severity }) => severity !== undefined);
  return rest.filter(({ draft }) => draft.answers.some((id) => ids.has(id)) || (isHeld && draft.isCheck === true));
}

/** The part of the batch for a new runner, and effects that note which steps the lost runner had started. */
export function remainingBatch(
  batch: Batch,
  { results, node }: TransitionContext,
): { readonly remaining: Batch; readonly notes: readonly SessionEffect[] } {
  const hasFailed = firstFailure(batch, results) !== undefined;
  // After a failure no step is sent; the new runner only cleans up.
  const steps = hasFailed ? [] : batch.steps.filter(({ key }) => results.outcomeOf(key) === undefined);
  const text = "it was interrupted; it is looked at again";
  const notes = steps
    .filter(({ key }) => results.wasStarted(key))
    .map(({ plan }): SessionEffect => ({ do: "emit", event: { type: "step.note", node, step: plan.id, text } }));
  // A runner ends without being asked only if every step succeeded.
  return { remaining: { ...batch, steps, isLast: batch.isLast && !hasFailed }, notes };
}
