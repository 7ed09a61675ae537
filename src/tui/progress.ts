import type { RunModel, StageModel } from "#engine/events/run-model.ts";
import type { Work } from "./work-item.ts";

/** The progress of a node; numbers are steps and actions. */
export interface NodeProgress {
  readonly ended: number;
  readonly planned: number;
  /** Whether results of an earlier stage, or a loop over unknown values, may bring more steps. */
  readonly isOpen: boolean;
  /** The done share of the work, 0 to 1; never decreases while a run goes on. */
  readonly share: number;
}

/** The stages of a node, in order, with the number of steps that were planned when the run began. */
export type NodePlan = readonly StagePlan[];

const plansByStage = new WeakMap<readonly unknown[], ReadonlyMap<string, NodePlan>>();

/** The plans of all nodes that a stage concerns. */
export function plansOf({ stages }: RunModel): ReadonlyMap<string, NodePlan> {
  const outlined = stages.filter(({ nodes }) => nodes.length > 0);
  const key = outlined[0]?.nodes;
  const before = key && plansByStage.get(key);
  if (before) return before;
  const plans = new Map<string, StagePlan[]>();
  for (const stage of outlined)
    for (const [index, node] of stage.nodes.entries()) {
      const plan = plans.get(node);
      if (plan) plan.push(stagePlan(stage, index));
      else plans.set(node, [stagePlan(stage, index)]);
    }
  if (key) plansByStage.set(key, plans);
  return plans;
}

interface StagePlan {
  readonly id: string;
  readonly planned: number;
  readonly isOpen: boolean;
}

/** The plan of a stage on one node. A record of an older build has no plan: its stages are open, with 0 planned steps. */
function stagePlan({ id, planned, open }: StageModel, index: number): StagePlan {
  return {
    id,
    planned: typeof planned === "number" ? planned : (planned?.[index] ?? 0),
    isOpen: open ?? planned === undefined,
  };
}

/** Whether the work has ended at least once; a reboot or a resumed run repeats it. */
function hasEnded({ outcome, again }: Work): boolean {
  return outcome !== undefined || again === true;
}

/** The progress of the node in its plan. `announced`: the number of steps that the bastion has sent to the node so far. */
export function nodeProgress(plan: NodePlan, work: readonly Work[], announced = 0): NodeProgress {
  const begun = plan.map(() => 0);
  const over = plan.map(() => 0);
  let [ended, unplanned, last] = [0, 0, -1];
  for (const one of work) {
    const index = plan.findIndex(({ id }) => id === one.stage);
    if (hasEnded(one)) ended += 1;
    // Steps after a failure are in no plan.
    if (index < 0) unplanned += 1;
    else {
      last = Math.max(last, index);
      begun[index] = (begun[index] ?? 0) + 1;
      if (hasEnded(one)) over[index] = (over[index] ?? 0) + 1;
    }
  }
  let [planned, isOpen, done, all] = [unplanned, false, 0, 0];
  for (const [index, stage] of plan.entries()) {
    const isPast = index < last;
    const [came = 0, finished = 0] = [begun[index], over[index]];
    planned += isPast && stage.isOpen ? came : Math.max(stage.planned, came);
    if (stage.isOpen && !isPast) isOpen = true;
    // Weighted by the first plan: steps that become known later must not move the bar back.
    const weight = Math.max(1, stage.planned);
    all += weight;
    done += weight * (isPast ? 1 : stageShare(stage, finished));
  }
  return { ended, planned: isOpen ? Math.max(planned, announced) : planned, isOpen, share: all === 0 ? 0 : done / all };
}

/** The done share of a stage, 0 to 1; below 1 for a stage that may grow. */
function stageShare({ planned, isOpen }: StagePlan, ended: number): number {
  if (!isOpen && planned > 0) return Math.min(1, ended / planned);
  return ended / (Math.max(planned, ended) + 1);
}
