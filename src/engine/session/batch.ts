import type { Problem } from "#errors/problem.ts";
import { timeoutOf } from "#engine/program/compile-step.ts";
import { shapeFacts } from "#engine/facts/shape.ts";
import type { Batch, SessionEffect, StepResults, QueuedStep, TransitionContext } from "./session-events.ts";
import type { StepInputs } from "./next-batch.ts";

/** Milliseconds that the reboot may take with which the batch ends, if it does. */
export function rebootOf({ steps }: Batch): number | undefined {
  const last = steps.at(-1)?.plan;
  return last?.step.ends === "boot" ? timeoutOf(last) * 1_000 : undefined;
}

/** Whether the batch ends with a reboot, and that was begun. */
export function isRebooting(batch: Batch, heard: StepResults): boolean {
  const last = batch.steps.at(-1);
  return rebootOf(batch) !== undefined && last !== undefined && heard.outcomeOf(last.key) === "changed";
}

/** What is known when a batch is over. */
export function settle(
  known: StepInputs,
  { steps, facts }: Batch,
  { heard, node }: TransitionContext,
): { readonly known: Pick<StepInputs, "registered" | "facts">; readonly effects: readonly SessionEffect[] } {
  const registered = new Map(known.registered);
  for (const { key, plan } of steps)
    if (plan.register !== undefined && heard.outcomeOf(key) !== undefined)
      registered.set(plan.register, heard.registered(key));
  if (!facts || Object.keys(heard.facts).length === 0) return { known: { ...known, registered }, effects: [] };
  const shaped = shapeFacts(heard.facts);
  const effects = [{ do: "emit", event: { type: "node.facts", node, facts: shaped } } as const];
  return { known: { registered, facts: shaped }, effects };
}

export function firstFailure({ steps }: Batch, heard: StepResults): Problem | undefined {
  const failed = steps.find(({ key }) => heard.outcomeOf(key) === "failed");
  if (!failed) return undefined;
  const { key, plan } = failed;
  return heard.problemOf(key) ?? { code: "STEP_FAILED", message: `“${plan.title}” failed`, at: plan.at };
}

/** Of the steps that wait, those that answer a failure in the batch. */
export function answering(rest: readonly QueuedStep[], { steps }: Batch, heard: StepResults): readonly QueuedStep[] {
  const failed = new Set(steps.filter(({ key }) => heard.outcomeOf(key) === "failed").map(({ plan }) => plan.id));
  return rest.filter(({ draft }) => draft.answers.some((id) => failed.has(id)));
}

/** What a new runner is to be given of the batch, and what is said of the steps that were begun. */
export function leftOf(
  batch: Batch,
  { heard, node }: TransitionContext,
): { readonly left: Batch; readonly notes: readonly SessionEffect[] } {
  // After a failure nothing goes on; the new runner only ends what the old one left.
  const steps = firstFailure(batch, heard) ? [] : batch.steps.filter(({ key }) => heard.outcomeOf(key) === undefined);
  const text = "it was interrupted; it is looked at again";
  const notes = steps
    .filter(({ key }) => heard.wasStarted(key))
    .map(({ plan }): SessionEffect => ({ do: "emit", event: { type: "step.note", node, step: plan.id, text } }));
  // The run's end is told by the runner itself only where all went well.
  return { left: { ...batch, steps, isLast: batch.isLast && !firstFailure(batch, heard) }, notes };
}
