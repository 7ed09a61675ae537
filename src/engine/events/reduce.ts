import { omitUndefined } from "#base/omit-undefined.ts";
import type { RunEvent } from "./event.ts";
import { changeNodeState, goingOn, newNode } from "./reduce-nodes.ts";
import { changeAction, changeStep } from "./reduce-steps.ts";
import {
  emptyRun,
  nodeTime,
  runTime,
  type NodeModel,
  type RunModel,
  type StageModel,
  type StepModel,
} from "./run-model.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

/** The model after a list of events; the map of nodes is copied once, not for each event. */
export function reduceEvents(events: Iterable<RunEvent>, model: RunModel = emptyRun): RunModel {
  const fold = new RunFold(model);
  for (const event of events) fold.add(event);
  return fold.model;
}

/**
 * Folds a run's events into its model, one by one. An event that was folded before (its `seq` is not above the last one's) changes nothing.
 */
export class RunFold {
  #model: RunModel;
  readonly #own = new OwnCopies();

  constructor(model: RunModel = emptyRun) {
    this.#model = model;
  }

  add(event: RunEvent): void {
    this.#model = reduce(this.#model, event, this.#own);
  }

  /** The run as it is now, never changed afterwards. */
  get model(): RunModel {
    this.#own.release();
    return this.#model;
  }

  /** The model, valid only until the next event, which may change it in place and so need no copy. */
  get borrowedModel(): RunModel {
    return this.#model;
  }
}

/**
 * The map of nodes and the lists of steps that no reader holds. These are changed in place; others are copied first. A copy at each event
 * would be expensive with a thousand nodes.
 */
class OwnCopies {
  #nodes: ReadonlyMap<string, NodeModel> | undefined;
  #steps = new WeakSet<readonly StepModel[]>();

  nodes(nodes: ReadonlyMap<string, NodeModel>): Map<string, NodeModel> {
    if (nodes === this.#nodes) return nodes as Map<string, NodeModel>;
    const own = new Map(nodes);
    this.#nodes = own;
    return own;
  }

  steps(steps: readonly StepModel[]): StepModel[] {
    if (this.#steps.has(steps)) return steps as StepModel[];
    const own = [...steps];
    this.#steps.add(own);
    return own;
  }

  /** A reader now holds all copies, so the next change copies again. */
  release(): void {
    this.#nodes = undefined;
    this.#steps = new WeakSet();
  }
}

function reduce(model: RunModel, event: RunEvent, own: OwnCopies): RunModel {
  if (event.seq <= model.lastSeq) return model;
  return { ...apply(model, event, own), lastSeq: event.seq, lastAt: event.at };
}

function apply(model: RunModel, event: RunEvent, own: OwnCopies): RunModel {
  switch (event.type) {
    case "run.started":
      return beginRun(model, event, own);
    case "run.stopping":
      return { ...model, state: "stopping", stopping: { how: event.how, by: event.by } };
    case "run.finished": {
      const problems = event.problems ?? (event.problem ? [event.problem] : []);
      const { outcome, exitCode } = event;
      const startedAt = model.startedAt || event.at;
      const partAt = model.partAt || event.at;
      // A resume that was refused adds only this event: the run keeps the time at which it ended.
      const endedAt = model.endedAt ?? event.at;
      const nodes = markNotStarted(model.nodes, own);
      const end = { state: "finished", outcome, exitCode, problems, questions: [] } as const;
      return { ...model, nodes, startedAt, partAt, endedAt, ...end };
    }
    case "stage.started":
      return changeStage(model, event.stage, (stage) => {
        const { endedAt: _, ...rest } = stage;
        return { ...rest, state: "running", startedAt: stage.startedAt ?? event.at };
      });
    case "stage.finished": {
      const { outcome: state, reason } = event;
      return changeStage(model, event.stage, (stage) => ({
        ...stage,
        state,
        ...(stage.startedAt === undefined ? {} : { endedAt: event.at }),
        ...omitUndefined({ reason }),
      }));
    }
    case "question.asked":
      return { ...model, questions: [...model.questions.filter(({ id }) => id !== event.question.id), event.question] };
    case "question.answered":
      return { ...model, questions: model.questions.filter(({ id }) => id !== event.id) };
    case "warning": {
      const { node, text } = event;
      return { ...model, warnings: [...model.warnings, { ...(node === undefined ? {} : { node }), text }] };
    }
    case "action.started":
    case "action.note":
    case "action.output":
    case "action.finished":
      return changeStage(model, event.stage, (stage) => ({ ...stage, actions: changeAction(stage.actions, event) }));
    case "step.started":
    case "step.note":
    case "step.output":
    case "step.finished":
      return changeNode(model, event.node, own, (node) => ({
        ...goingOn(node),
        steps: changeStep(own.steps(node.steps), event),
      }));
    case "node.connecting":
    case "node.connected":
    case "node.disconnected":
    case "node.waiting":
    case "node.rebooted":
    case "node.segment":
    case "node.saved":
    case "node.unsaved":
    case "node.sending":
    case "node.sent":
    case "node.milestone":
    case "node.facts":
    case "node.finished":
      return changeNode(model, event.node, own, (node) => changeNodeState(node, event));
    default:
      // An event of a later version of kcore changes nothing.
      event satisfies never;
      return model;
  }
}

/** The nodes; those on which nothing was done before the run ended, as by a full disk on the bastion, get the outcome `not-started`. */
function markNotStarted(nodes: ReadonlyMap<string, NodeModel>, own: OwnCopies): ReadonlyMap<string, NodeModel> {
  const idle = [...nodes.values()].filter(
    ({ outcome, startedAt, ranBefore, steps }) => (outcome ?? startedAt ?? ranBefore ?? steps[0]) === undefined,
  );
  if (idle.length === 0) return nodes;
  const all = own.nodes(nodes);
  for (const node of idle) all.set(node.name, { ...node, outcome: "not-started" });
  return all;
}

/** A resumed run keeps the results of its earlier part. */
function beginRun(model: RunModel, event: EventOf<"run.started">, own: OwnCopies): RunModel {
  const { runId, title, command, who, dryRun, leftOut, revision, dirty = false, resumed = false } = event;
  const stages = event.stages.map((outline): StageModel => {
    const earlier = model.stages.find(({ id }) => id === outline.id);
    return { ...outline, state: earlier?.state === "ok" ? "ok" : "pending", actions: earlier?.actions ?? [] };
  });
  const nodes = own.nodes(model.nodes);
  for (const [index, name] of event.nodes.entries()) {
    const before = { ...(nodes.get(name) ?? newNode(name)), ...rosterFields(event, index) };
    const ranBefore = nodeTime(before, model.lastAt);
    const { outcome: _, problem: __, reason: ___, startedAt: ____, endedAt: _____, ...earlier } = before;
    nodes.set(name, { ...earlier, state: "pending", ...(ranBefore === undefined ? {} : { ranBefore }) });
  }
  const { outcome: _, exitCode: __, revision: ___, stopping: ____, endedAt: _____, ...rest } = model;
  return {
    ...rest,
    ...omitUndefined({ revision, leftOut }),
    runId,
    title,
    command,
    who,
    dryRun,
    dirty,
    resumed,
    stages,
    nodes,
    state: "running",
    startedAt: model.startedAt || event.at,
    partAt: event.at,
    ranBefore: runTime(model),
    problems: [],
    questions: [],
  };
}

function rosterFields(
  { roles = {}, dcs = {}, places = [] }: EventOf<"run.started">,
  index: number,
): Pick<NodeModel, "roles" | "dc" | "place"> {
  const at = places[index];
  const own = Object.keys(roles).filter((role) => roles[role]?.includes(index));
  const dc = Object.keys(dcs).find((name) => dcs[name]?.includes(index));
  return {
    ...(own.length > 0 && { roles: own }),
    ...(dc !== undefined && { dc }),
    ...(at !== undefined && { place: at }),
  };
}

function changeStage(model: RunModel, id: string, change: (stage: StageModel) => StageModel): RunModel {
  const known = model.stages.some((stage) => stage.id === id);
  const stages = known
    ? model.stages
    : [...model.stages, { id, title: id, nodes: [], state: "pending" as const, actions: [] }];
  return { ...model, stages: stages.map((stage) => (stage.id === id ? change(stage) : stage)) };
}

function changeNode(model: RunModel, name: string, own: OwnCopies, change: (node: NodeModel) => NodeModel): RunModel {
  const nodes = own.nodes(model.nodes);
  nodes.set(name, change(nodes.get(name) ?? newNode(name)));
  return { ...model, nodes };
}
