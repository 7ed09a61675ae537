import type { RunEventBody } from "#engine/events/event.ts";
import { isFinal } from "#engine/session/step-record.ts";
import type { StepDraft } from "#engine/states/planned-step.ts";
import type { RunNode, Watch } from "./run-node.ts";
import type { StageTracker } from "./stage-tracker.ts";

interface Followed {
  readonly id: string;
  /** Steps that are not over. */
  readonly open: Set<string>;
}

/**
 * Tells from a node's events which of the stages that went to it together has begun there, and which is over: when its last
 * step is. Steps that the record of a resumed run holds are not told again, and are not waited for.
 */
export function followStages(
  tracker: StageTracker,
  node: RunNode,
  group: readonly { readonly stage: { readonly id: string }; readonly drafts: readonly StepDraft[] }[],
): Watch {
  const isOpen = ({ id }: StepDraft): boolean => !isFinal(node.recorded.get(id)?.at(-1));
  const stages = group.map(({ stage, drafts }): Followed => {
    const open = new Set(drafts.filter(isOpen).map(({ id }) => id));
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
