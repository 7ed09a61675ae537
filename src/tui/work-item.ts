import type { ActionModel, NodeModel, RunModel, StageModel, StepModel } from "#engine/events/run-model.ts";

/** A step on a node or an action on the bastion, as views list them. */
export interface WorkItem extends Omit<StepModel, "step"> {
  /** Unique among the items of its node. */
  readonly key: string;
}

const ofSteps = new WeakMap<StepModel, WorkItem>();
const ofActions = new WeakMap<ActionModel, WorkItem>();

/** The same item for the same step, so that what is drawn from it can be kept. */
function itemOfStep(step: StepModel): WorkItem {
  const known = ofSteps.get(step);
  if (known) return known;
  const item: WorkItem = { ...step, key: `${step.stage}\n${step.step}` };
  ofSteps.set(step, item);
  return item;
}

/** An action as an item. */
export function itemOfAction(action: ActionModel): WorkItem {
  const known = ofActions.get(action);
  if (known) return known;
  const { action: module, item: on, ...rest } = action;
  const item: WorkItem = {
    ...rest,
    key: `${action.stage}\n!${module}\n${on ?? ""}`,
    title: action.stage,
    module,
    changes: [],
    always: false,
  };
  ofActions.set(action, item);
  return item;
}

/** Actions by the node that they are taken for; those that concern no node of the run by the empty name. */
export function actionsByNode(model: RunModel): ReadonlyMap<string, readonly ActionModel[]> {
  const known = byStages.get(model.stages);
  if (known && known.count === model.nodes.size) return known.map;
  const map = new Map<string, ActionModel[]>();
  for (const { actions } of model.stages)
    for (const action of actions) {
      const node = action.item !== undefined && model.nodes.has(action.item) ? action.item : "";
      const list = map.get(node);
      if (list) list.push(action);
      else map.set(node, [action]);
    }
  byStages.set(model.stages, { map, count: model.nodes.size });
  return map;
}

const byStages = new WeakMap<
  readonly StageModel[],
  { readonly map: ReadonlyMap<string, readonly ActionModel[]>; readonly count: number }
>();

/** A step or an action as the model has it. */
export type Work = StepModel | ActionModel;

/** What was done for a node, in the order in which it began: its steps and the actions taken for it. */
export function workOn(node: NodeModel, actions: readonly ActionModel[]): readonly Work[] {
  return actions.length === 0 ? node.steps : [...node.steps, ...actions].sort((a, b) => a.startedAt - b.startedAt);
}

/** The same as items. */
export function itemsOf(node: NodeModel, actions: readonly ActionModel[]): readonly WorkItem[] {
  return workOn(node, actions).map(itemOf);
}

export function itemOf(work: Work): WorkItem {
  return "step" in work ? itemOfStep(work) : itemOfAction(work);
}

/** What stopped a node: what failed first, else what was broken off and says why. */
export function causeIn<One extends Partial<Pick<Work, "outcome" | "problem">>>(work: readonly One[]): One | undefined {
  return (
    work.find(({ outcome }) => outcome === "failed") ??
    work.find(({ outcome, problem }) => outcome === "interrupted" && problem !== undefined)
  );
}

/** What tells most: what failed first, else what runs, else what came last. */
export function telling<One extends Pick<Work, "outcome">>(work: readonly One[]): One | undefined {
  return (
    work.find(({ outcome }) => outcome === "failed") ??
    work.findLast(({ outcome }) => outcome === undefined) ??
    work.at(-1)
  );
}
