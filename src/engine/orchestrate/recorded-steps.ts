import type { Outcome, RunEvent } from "#engine/events/event.ts";

/** For each node how its steps ended in the earlier parts of this run, one outcome for each time, in that order. */
export function recordedSteps(
  earlier: readonly RunEvent[],
): ReadonlyMap<string, ReadonlyMap<string, readonly Outcome[]>> {
  const recorded = new Map<string, Map<string, Outcome[]>>();
  for (const event of earlier) {
    if (event.type !== "step.finished") continue;
    const steps = recorded.get(event.node) ?? new Map<string, Outcome[]>();
    steps.set(event.step, [...(steps.get(event.step) ?? []), event.outcome]);
    recorded.set(event.node, steps);
  }
  return recorded;
}
