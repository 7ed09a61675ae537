import { omitUndefined } from "#base/omit-undefined.ts";
import type { Outcome, RunEvent } from "./event.ts";
import {
  emptyRun,
  nodeTime,
  runTime,
  TAIL,
  type ActionModel,
  type Changed,
  type NodeModel,
  type RunModel,
  type StageModel,
  type StepModel,
} from "./run-model.ts";
import { lastLines } from "./whole-lines.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;
type NodeEvent = Extract<RunEvent, { type: `node.${string}` }>;
type StepEvent = Extract<RunEvent, { type: `step.${string}` }>;
type ActionEvent = Extract<RunEvent, { type: `action.${string}` }>;

/**
 * The run after one more event. The only place that knows the order of events; an event that was seen already (its
 * `seq` is not beyond the last one) changes nothing.
 */
export function reduceRun(model: RunModel, event: RunEvent): RunModel {
  return reduce(model, event, copies);
}

/** The model that a list of events leads to; the cost does not depend on how many nodes there are. */
export function reduceEvents(events: Iterable<RunEvent>, model: RunModel = emptyRun): RunModel {
  const fold = new RunFold(model);
  for (const event of events) fold.add(event);
  return fold.model;
}

/**
 * A run that goes on, event by event. `reduceRun` copies the map of nodes and the list of a node's steps each time, which
 * is dear with a thousand of them; this class copies them only after a reader took `model`.
 */
export class RunFold {
  #model: RunModel;
  /** The map of nodes that no reader has seen. */
  #own: ReadonlyMap<string, NodeModel> | undefined;
  /** The lists of steps that no reader has seen. */
  #ownSteps = new WeakSet<readonly StepModel[]>();

  constructor(model: RunModel = emptyRun) {
    this.#model = model;
  }

  add(event: RunEvent): void {
    this.#model = reduce(this.#model, event, this.#owner);
  }

  readonly #owner: Owner = {
    nodes: (nodes) => {
      if (nodes === this.#own) return nodes as Map<string, NodeModel>;
      const own = new Map(nodes);
      this.#own = own;
      return own;
    },
    steps: (steps) => {
      if (this.#ownSteps.has(steps)) return steps as StepModel[];
      const own = [...steps];
      this.#ownSteps.add(own);
      return own;
    },
  };

  /** The run as it is now, never changed afterwards. */
  get model(): RunModel {
    this.#own = undefined;
    this.#ownSteps = new WeakSet();
    return this.#model;
  }

  /** The same without a copy at the next event: right only until then. */
  get fleeting(): RunModel {
    return this.#model;
  }
}

/** Gives a map or a list that may be written to, with these entries. */
interface Owner {
  readonly nodes: (nodes: ReadonlyMap<string, NodeModel>) => Map<string, NodeModel>;
  readonly steps: (steps: readonly StepModel[]) => StepModel[];
}

const copies: Owner = { nodes: (nodes) => new Map(nodes), steps: (steps) => [...steps] };

function reduce(model: RunModel, event: RunEvent, own: Owner): RunModel {
  if (event.seq <= model.lastSeq) return model;
  return { ...apply(model, event, own), lastSeq: event.seq, lastAt: event.at };
}

function apply(model: RunModel, event: RunEvent, own: Owner): RunModel {
  switch (event.type) {
    case "run.started":
      return startRun(model, event, own);
    case "run.stopping":
      return { ...model, state: "stopping", stopping: { how: event.how, by: event.by } };
    case "run.finished": {
      const problems = event.problems ?? (event.problem ? [event.problem] : []);
      const { outcome, exitCode } = event;
      const startedAt = model.startedAt || event.at;
      const partAt = model.partAt || event.at;
      // Of a run that was over already only the end is new: it was refused to go on.
      const endedAt = model.endedAt ?? event.at;
      const nodes = withoutBegun(model.nodes, own);
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
        ...(reason === undefined ? {} : { reason }),
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
      // An event of a later kcore: the known state of the run stands.
      event satisfies never;
      return model;
  }
}

/** Nodes that the end of the run (a full disk on the bastion) came to before anything was done on them. */
function withoutBegun(nodes: ReadonlyMap<string, NodeModel>, own: Owner): ReadonlyMap<string, NodeModel> {
  const idle = [...nodes.values()].filter(
    ({ outcome, startedAt, ranBefore, steps }) => (outcome ?? startedAt ?? ranBefore ?? steps[0]) === undefined,
  );
  if (idle.length === 0) return nodes;
  const all = own.nodes(nodes);
  for (const node of idle) all.set(node.name, { ...node, outcome: "not-started" });
  return all;
}

/** A resumed run keeps the results of its earlier part. */
function startRun(model: RunModel, event: EventOf<"run.started">, own: Owner): RunModel {
  const { runId, title, command, who, dryRun, revision, dirty = false, resumed = false } = event;
  const stages = event.stages.map((outline): StageModel => {
    const earlier = model.stages.find(({ id }) => id === outline.id);
    return { ...outline, state: earlier?.state === "ok" ? "ok" : "pending", actions: earlier?.actions ?? [] };
  });
  const nodes = own.nodes(model.nodes);
  for (const [place, name] of event.nodes.entries()) {
    const before = { ...(nodes.get(name) ?? newNode(name)), ...kindsOf(event, place) };
    const ranBefore = nodeTime(before, model.lastAt);
    const { outcome: _, problem: __, reason: ___, startedAt: ____, endedAt: _____, ...earlier } = before;
    nodes.set(name, { ...earlier, state: "pending", ...(ranBefore === undefined ? {} : { ranBefore }) });
  }
  const { outcome: _, exitCode: __, revision: ___, stopping: ____, endedAt: _____, ...rest } = model;
  return {
    ...rest,
    ...(revision === undefined ? {} : { revision }),
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

function kindsOf(
  { roles = {}, dcs = {}, places = [] }: EventOf<"run.started">,
  place: number,
): Pick<NodeModel, "roles" | "dc" | "place"> {
  const way = places[place];
  const own = Object.keys(roles).filter((role) => roles[role]?.includes(place));
  const dc = Object.keys(dcs).find((name) => dcs[name]?.includes(place));
  return {
    ...(own.length > 0 && { roles: own }),
    ...(dc !== undefined && { dc }),
    ...(way !== undefined && { place: way }),
  };
}

function changeStage(model: RunModel, id: string, change: (stage: StageModel) => StageModel): RunModel {
  const known = model.stages.some((stage) => stage.id === id);
  const stages = known
    ? model.stages
    : [...model.stages, { id, title: id, nodes: [], state: "pending" as const, actions: [] }];
  return { ...model, stages: stages.map((stage) => (stage.id === id ? change(stage) : stage)) };
}

function changeNode(model: RunModel, name: string, own: Owner, change: (node: NodeModel) => NodeModel): RunModel {
  const nodes = own.nodes(model.nodes);
  nodes.set(name, change(nodes.get(name) ?? newNode(name)));
  return { ...model, nodes };
}

function newNode(name: string): NodeModel {
  return { name, state: "pending", exchanges: 0, steps: [] };
}

/** The awaited thing of a step is there, such as a content that other nodes had to bring. */
function goingOn(node: NodeModel): NodeModel {
  if (node.state !== "waiting") return node;
  const { reason: _, ...rest } = node;
  return { ...rest, state: "connected" };
}

function changeNodeState(node: NodeModel, event: NodeEvent): NodeModel {
  // Contents that were on their way when the connection went, or the node's run ended, come anew or never.
  const { reason: _, sending: _sending, ...rest } = node;
  switch (event.type) {
    case "node.connecting":
      return { ...rest, state: "connecting", startedAt: node.startedAt ?? event.at };
    case "node.connected":
      return { ...rest, state: "connected", fingerprint: event.fingerprint };
    case "node.disconnected":
      return { ...rest, state: "disconnected", reason: event.reason };
    case "node.waiting":
      return { ...rest, state: "waiting", reason: event.reason };
    case "node.rebooted":
      return { ...rest, state: "rebooting" };
    case "node.segment":
      return {
        ...rest,
        state: "connected",
        exchanges: event.exchange,
        // Steps that were cut off come again in the next segment: only ended steps count from before.
        planned: node.steps.filter(({ outcome }) => outcome !== undefined).length + event.steps,
      };
    case "node.saved": {
      const { device, save, before } = event;
      return { ...node, saved: [...(node.saved ?? []), { device, save, before }] };
    }
    case "node.unsaved": {
      const saved = node.saved?.filter(({ save }) => save !== event.save) ?? [];
      const { saved: _, ...rest } = node;
      return saved.length > 0 ? { ...rest, saved } : rest;
    }
    case "node.sending": {
      const { name, sent, total, rate, from } = event;
      const { name: before, since } = node.sending ?? {};
      const begun = since !== undefined && before === name ? since : event.at;
      // A step that waits for the content is not silent: each report of progress counts as heard.
      const steps = node.steps.map((step) => (step.outcome === undefined ? { ...step, heardAt: event.at } : step));
      return {
        ...goingOn(node),
        steps,
        sending: { name, sent, total, since: begun, ...omitUndefined({ rate, from }) },
      };
    }
    case "node.sent": {
      const { sending: __, ...arrived } = goingOn(node);
      const { name, bytes, duration, from } = event;
      return { ...arrived, sent: [...(node.sent ?? []), { name, bytes, duration, ...omitUndefined({ from }) }] };
    }
    case "node.milestone":
      return { ...node, milestone: event.milestone };
    case "node.facts":
      return { ...node, facts: event.facts };
    case "node.finished":
      return {
        ...rest,
        state: "finished",
        outcome: event.outcome,
        endedAt: event.at,
        ...(event.problem ? { problem: event.problem } : {}),
      };
  }
}

/** The output of a step or an action, with one more piece: the tail begins where a line does. */
function printed(
  { tail, above = 0, streams }: Pick<StepModel, "tail" | "above" | "streams">,
  { text, at, stream }: EventOf<"step.output" | "action.output">,
): Partial<StepModel> {
  const whole = tail + text;
  const kept = lastLines(whole, TAIL);
  const told = kept === whole ? {} : { above: above + whole.slice(0, -kept.length).split("\n").length - 1 };
  if (streams === undefined && stream === "out") return { tail: kept, heardAt: at, ...told };
  const before = streams ?? "o".repeat(linesIn(tail));
  const letters = before + (stream === "out" ? "o" : "e").repeat(linesIn(whole) - linesIn(tail));
  return { tail: kept, heardAt: at, ...told, streams: letters.slice(letters.length - linesIn(kept)) };
}

/** Also one that has not ended. */
function linesIn(text: string): number {
  return text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

/** Changes the list that it is given. */
function changeStep(steps: StepModel[], event: StepEvent): readonly StepModel[] {
  const index = steps.findLastIndex(
    ({ step, stage }) => step === event.step && (!("stage" in event) || stage === event.stage),
  );
  const found = steps[index];
  // A step that comes again (after a reboot, in a resumed run) takes the place of its interrupted self.
  const changed = changeOneStep(found ?? newStep(event), event);
  steps[found === undefined ? steps.length : index] = changed;
  return steps;
}

function newStep(event: StepEvent): StepModel {
  const { stage = "", title = event.step, module = "" } = event as Partial<EventOf<"step.started">>;
  return { stage, step: event.step, title, module, startedAt: event.at, changes: [], always: false, tail: "" };
}

function changeOneStep(step: StepModel, event: StepEvent): StepModel {
  switch (event.type) {
    case "step.started": {
      const { stage, title, module } = event;
      const fresh = {
        stage,
        step: event.step,
        title,
        module,
        startedAt: event.at,
        changes: [],
        always: false,
        tail: "",
      };
      return { ...fresh, ...againOf(step), ...beforeOf(step) };
    }
    case "step.note":
      return { ...step, note: event.text, heardAt: event.at };
    case "step.output":
      return { ...step, ...printed(step, event) };
    case "step.finished": {
      const { seq: _, at: __, type: ___, node: ____, changes = [], always = false, ...rest } = event;
      return { ...step, ...rest, changes, always, ...stillChanged(step, rest.outcome) };
    }
  }
}

interface Changing {
  readonly outcome?: Outcome;
  readonly before?: Changed;
}

/** The change of a step's or an action's earlier attempt, for its next attempt. */
function beforeOf(one: Changing & Partial<Changed>): { readonly before?: Changed } {
  if (one.outcome !== "changed") return one.before ? { before: one.before } : {};
  return { before: { ...omitUndefined({ changes: one.changes, diff: one.diff }) } };
}

/** A step that an earlier attempt changed stays `changed`, even if a later attempt finds it in order or skips it. */
function stillChanged(one: Changing & Partial<Changed>, outcome: Outcome) {
  const { before } = beforeOf(one);
  return before && (outcome === "ok" || outcome === "skipped") ? ({ ...before, outcome: "changed" } as const) : {};
}

function againOf({ outcome, again }: StepModel | ActionModel): { readonly again?: true } {
  return outcome !== undefined || again ? { again: true } : {};
}

function changeAction(actions: readonly ActionModel[], event: ActionEvent): readonly ActionModel[] {
  const { stage, action, item } = event;
  const index = actions.findLastIndex((one) => one.action === action && one.item === item);
  const before = actions[index];
  const fresh: ActionModel = {
    stage,
    action,
    startedAt: event.at,
    tail: "",
    ...(item === undefined ? {} : { item }),
    ...(before && againOf(before)),
    ...(before && beforeOf(before)),
  };
  const found = event.type === "action.started" ? fresh : (before ?? fresh);
  const changed = changeOneAction(found, event);
  return index < 0 ? [...actions, changed] : actions.with(index, changed);
}

function changeOneAction(action: ActionModel, event: ActionEvent): ActionModel {
  if (event.type === "action.started") return action;
  if (event.type === "action.note") return { ...action, note: event.text, heardAt: event.at };
  if (event.type === "action.output") return { ...action, ...printed(action, event) };
  const { outcome, reason, problem, position, duration } = event;
  return {
    ...action,
    outcome,
    ...stillChanged(action, outcome),
    ...(reason === undefined ? {} : { reason }),
    ...(problem === undefined ? {} : { problem }),
    ...(position === undefined ? {} : { position }),
    ...(duration === undefined ? {} : { duration }),
  };
}
