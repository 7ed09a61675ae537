import type { RunEvent } from "#engine/events/event.ts";

/**
 * For each node the steps that an earlier part of this run finished well; a step that failed, was interrupted or
 * skipped has its turn again.
 */
export function recordedSteps(earlier: readonly RunEvent[]): ReadonlyMap<string, ReadonlySet<string>> {
  const recorded = new Map<string, Set<string>>();
  for (const event of earlier) {
    if (event.type !== "step.finished" || (event.outcome !== "ok" && event.outcome !== "changed")) continue;
    const steps = recorded.get(event.node) ?? new Set<string>();
    steps.add(event.step);
    recorded.set(event.node, steps);
  }
  return recorded;
}
