import type { ActionModel, NodeModel, RunModel, StageModel, StepModel } from "#engine/events/run-model.ts";
import type { Outcome } from "#engine/events/event.ts";

/** A step on a node or an action on the bastion, as views list them. */
export interface WorkItem extends Omit<StepModel, "step"> {
  /** Unique among the items of its node. */
  readonly key: string;
}

const ofWork = new WeakMap<Work, WorkItem>();

/** A step or an action as an item: the same item each time, so that drawings of it can be kept. */
export function itemOf(work: Work): WorkItem {
  let item = ofWork.get(work);
  if (!item) {
    item = "step" in work ? { ...work, key: `${work.stage}\n${work.step}` } : itemOfAction(work);
    ofWork.set(work, item);
  }
  return item;
}

function itemOfAction({ action: module, item: on = "", ...rest }: ActionModel): WorkItem {
  return { ...rest, key: `${rest.stage}\n!${module}\n${on}`, title: rest.stage, module, changes: [], always: false };
}

/** Actions by the node that they are taken for; the empty name has the actions for no node of the run. */
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

/** All actions of a run on the bastion that concern no single node. */
export function bastionActions(model: RunModel): readonly ActionModel[] {
  return actionsByNode(model).get("") ?? [];
}

/** A step or an action as the model has it. */
export type Work = StepModel | ActionModel;

/** The work for a node in the order in which it began: its steps and the actions taken for it. */
export function workOn(node: NodeModel, actions: readonly ActionModel[]): readonly Work[] {
  return actions.length === 0 ? node.steps : [...node.steps, ...actions].sort((a, b) => a.startedAt - b.startedAt);
}

/** The work of each node, then of the bastion (without a node). */
export function itemsByNode(
  model: RunModel,
): readonly { readonly node?: NodeModel; readonly items: readonly WorkItem[] }[] {
  const actions = actionsByNode(model);
  const itemsOf = (node: NodeModel) => workOn(node, actions.get(node.name) ?? []).map(itemOf);
  const nodes = [...model.nodes.values()].map((node) => ({ node, items: itemsOf(node) }));
  return [...nodes, { items: bastionActions(model).map(itemOf) }];
}

/** The results of `resultOf`: equal results once, with all their nodes. An item without a result is left out. */
export function groupAlike<Result extends object>(
  groups: ReturnType<typeof itemsByNode>,
  resultOf: (item: WorkItem) => Result | undefined,
): readonly (Result & { readonly nodes: readonly string[] })[] {
  const found = new Map<string, Result & { readonly nodes: string[] }>();
  for (const { node, items } of groups)
    for (const item of items) {
      const result = resultOf(item);
      if (!result) continue;
      const key = JSON.stringify(result);
      const known: Result & { readonly nodes: string[] } = found.get(key) ?? { ...result, nodes: [] };
      known.nodes.push(node?.name ?? "bastion");
      found.set(key, known);
    }
  return [...found.values()];
}

/** The model of an event's step; undefined for an unknown step. */
export function stepIn(
  model: RunModel,
  { node, step }: { readonly node: string; readonly step: string },
): StepModel | undefined {
  return model.nodes.get(node)?.steps.findLast((one) => one.step === step);
}

/** The model of an event's step or action; undefined for unknown work. */
export function workIn(
  model: RunModel,
  event: { readonly node: string; readonly step: string } | Pick<ActionModel, "stage" | "action" | "item">,
): Work | undefined {
  if ("step" in event) return stepIn(model, event);
  return model.stages
    .find(({ id }) => id === event.stage)
    ?.actions.findLast(({ action, item }) => action === event.action && item === event.item);
}

/** The work that stopped a node: the first failure, else the first interruption that has a problem. */
export function causeIn<One extends Partial<Pick<Work, "outcome" | "problem">>>(work: readonly One[]): One | undefined {
  return (
    work.find(({ outcome }) => outcome === "failed") ??
    work.find(({ outcome, problem }) => outcome === "interrupted" && problem !== undefined)
  );
}

/** The most important work: the first failure, else the running work, else the last. */
export function mostImportant<One extends Pick<Work, "outcome">>(work: readonly One[]): One | undefined {
  return (
    work.find(({ outcome }) => outcome === "failed") ??
    work.findLast(({ outcome }) => outcome === undefined) ??
    work.at(-1)
  );
}

/** A stage's name in its file: an id ends in `@2`, `@3` … from the second wave on, and for a state given twice. */
export function withoutWave(stage: string): string {
  return stage.replace(/@\d+$/, "");
}

/** The names of an item without waves, because a step is the same step in every wave. An action's title is its stage. */
export function itemNames({
  stage: id,
  title,
  module,
}: WorkItem): Readonly<Record<"stage" | "title" | "module", string>> {
  const stage = withoutWave(id);
  return { stage, title: title === id ? stage : title, module };
}

/** “stage: title  (module)”, without repeated parts. */
export function itemTitle({
  stage,
  title,
  module,
}: {
  readonly stage?: string | undefined;
  readonly title: string;
  readonly module?: string;
}): string {
  const kind = module === undefined || module === title ? "" : `  (${module})`;
  return `${stage === undefined || stage === title ? "" : `${stage}: `}${title}${kind}`;
}

/** The reason why a running step may need attention: slower than in earlier runs, or long without output. */
export type Quiet =
  { readonly kind: "slow"; readonly usual: number } | { readonly kind: "silent"; readonly since: number };

/** Milliseconds without output after which a running step counts as silent. */
export const silentAfter = 45_000;

/**
 * The reason why a running step may need attention; undefined: none. `usual`: milliseconds by `${module} ${title}` that nine of ten earlier
 * runs did not exceed. A step is slow after one and a half times as long, and at least two seconds more.
 */
export function quietOf(item: WorkItem, now: number, usual?: ReadonlyMap<string, number>): Quiet | undefined {
  if (item.outcome !== undefined) return undefined;
  const lastHeard = Math.max(item.startedAt, item.heardAt ?? 0);
  if (now - lastHeard >= silentAfter) return { kind: "silent", since: lastHeard };
  const before = usual?.get(`${item.module} ${item.title}`);
  if (before === undefined) return undefined;
  return now - item.startedAt > Math.max(before * 1.5, before + 2000) ? { kind: "slow", usual: before } : undefined;
}

/** The label of a step's outcome, the same in every view; undefined: the step still runs. `always`: the step has no probe. */
export function outcomeLabel(outcome: Outcome | undefined, always = false): string {
  switch (outcome) {
    case undefined:
      return "running";
    case "ok":
      return "in order";
    case "changed":
      return always ? "ran (always changes)" : "changed";
    case "would-change":
      return always ? "would run (always changes)" : "would change";
    case "failed":
    case "skipped":
    case "unknown":
    case "interrupted":
      return outcome;
  }
}
