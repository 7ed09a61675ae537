import type { Outcome } from "#engine/events/event.ts";
import type { ActionModel, RunModel, StepModel } from "#engine/events/run-model.ts";

/** How the steps of a node, or of a run, ended. */
export interface Tally {
  readonly succeeded: number;
  readonly changed: number;
  readonly wouldChange: number;
  readonly failed: number;
  readonly skipped: number;
  readonly unknown: number;
  readonly interrupted: number;
  /** Steps that ran: all but the skipped ones and those whose turn did not come. */
  readonly run: number;
  /** Milliseconds that the steps took, one after the other. */
  readonly time: number;
}

/** Counts steps and actions; those that have not ended are not counted. */
export function tallyOf(ended: Iterable<Pick<StepModel | ActionModel, "outcome" | "duration">>): Tally {
  const counts: Record<Outcome, number> = {
    ok: 0,
    changed: 0,
    "would-change": 0,
    failed: 0,
    skipped: 0,
    unknown: 0,
    interrupted: 0,
  };
  let time = 0;
  for (const { outcome, duration = 0 } of ended) {
    if (outcome === undefined) continue;
    counts[outcome] += 1;
    time += duration;
  }
  const succeeded = counts.ok + counts.changed + counts["would-change"];
  return {
    succeeded,
    changed: counts.changed,
    wouldChange: counts["would-change"],
    failed: counts.failed,
    skipped: counts.skipped,
    unknown: counts.unknown,
    interrupted: counts.interrupted,
    run: succeeded + counts.failed + counts.interrupted,
    time,
  };
}

/** All actions of a run on the bastion that concern no single node. */
export function bastionActions(model: RunModel): readonly ActionModel[] {
  return model.stages.flatMap(({ actions }) =>
    actions.filter(({ item }) => item === undefined || !model.nodes.has(item)),
  );
}

/** The steps of a node and the actions taken for it. */
export function workOf(model: RunModel, node: string): readonly (StepModel | ActionModel)[] {
  const actions = model.stages.flatMap((stage) => stage.actions.filter(({ item }) => item === node));
  return [...(model.nodes.get(node)?.steps ?? []), ...actions];
}
