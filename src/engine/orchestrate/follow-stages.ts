import type { RunEventBody } from "#engine/events/event.ts";
import { isFinal } from "#engine/session/step-record.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { RunNode, SessionWatch } from "./run-node.ts";
import type { StageTracker } from "./stage-tracker.ts";

interface Followed {
  readonly id: string;
  /** Ids of steps that have not ended. */
  readonly open: Set<string>;
}

/**
 * Follows the stages that went to a node together: each begins with its first step and ends with its last one. A resumed run
 * does not wait for steps in its record, since the node does not report them again.
 */
export function followStages(
  tracker: StageTracker,
  node: RunNode,
  group: readonly { readonly stage: { readonly id: string }; readonly steps: readonly UnresolvedStep[] }[],
): SessionWatch {
  const isOpen = ({ id }: UnresolvedStep): boolean => !isFinal(node.recorded.get(id)?.at(-1));
  const stages = group.map(({ stage, steps }): Followed => {
    const open = new Set(steps.filter(isOpen).map(({ id }) => id));
    return { id: stage.id, open };
  });
  const stepsOf = (stage: string) => stages.find(({ id }) => id === stage)?.open;
  return {
    before: (event) => {
      if (!isOfStep(event) || !stepsOf(event.stage)) return;
      tracker.enter(event.stage);
      if (event.type === "step.started") stepsOf(event.stage)?.add(event.step);
    },
    after: (event) => {
      if (event.type !== "step.finished" || !isFinal(event.outcome)) return;
      stepsOf(event.stage)?.delete(event.step);
      for (const { id, open } of stages) {
        if (open.size > 0) return;
        tracker.leave(id, node.name, "ok");
      }
    },
  };
}

function isOfStep(event: RunEventBody): event is Extract<RunEventBody, { type: "step.started" | "step.finished" }> {
  return event.type === "step.started" || event.type === "step.finished";
}
