import type { Problem } from "#errors/problem.ts";
import type { Outcome } from "#engine/events/event.ts";
import type { ActionModel, NodeModel, RunModel, StepModel } from "#engine/events/run-model.ts";
import { bastionActions, tallyOfBastion, tallyOfNode, type Tally } from "../tally.ts";
import { defined } from "#optional/defined.ts";
import { actionsByNode } from "../work-item.ts";

/** A step of a node, or an action on the bastion that was taken for it. */
export interface Piece {
  readonly stage: string;
  readonly title: string;
  readonly kind: string;
  readonly outcome?: Outcome;
  readonly problem?: Problem;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  readonly step?: StepModel;
  readonly action?: ActionModel;
}

/** A row of the page: a node, or the bastion itself, with all its pieces in the order in which they began. */
export interface Lane {
  /** Its element's id. */
  readonly id: string;
  readonly name: string;
  readonly node?: NodeModel;
  readonly pieces: readonly Piece[];
  readonly tally: Tally;
  /** Of a row that goes on: when it would have begun without a pause. Else the tally has its time. */
  readonly since?: number;
}

/** All rows: what needs looking at first, then in the order of the run. */
export function lanesOf(model: RunModel): readonly Lane[] {
  const actions = actionsByNode(model);
  const nodes = [...model.nodes.values()].map((node, index) =>
    laneOf(model, { node, index, actions: actions.get(node.name) ?? [], end: model.lastAt }),
  );
  return byUrgency([...ownLane(model), ...nodes]);
}

/** The bastion's own row, where it acts for no single node. */
export function ownLane(model: RunModel, end = model.lastAt): readonly Lane[] {
  const own = bastionActions(model);
  if (own.length === 0) return [];
  const pieces = own.map((action) => pieceOfAction(model, action, end)).toSorted((a, b) => a.from - b.from);
  const since = busySince(pieces);
  return [{ id: "bastion", name: "bastion", tally: tallyOfBastion(model), pieces, ...defined({ since }) }];
}

/** A node's row; `end` is where pieces that still run end, for now. What is over is taken from the row as it was `before`. */
export function laneOf(
  model: RunModel,
  {
    node,
    index,
    actions,
    end,
    before,
  }: {
    readonly node: NodeModel;
    readonly index: number;
    readonly actions: readonly ActionModel[];
    readonly end: number;
    readonly before?: Lane | undefined;
  },
): Lane {
  const pieces = node.steps.map((step, at) => {
    const known = before?.pieces[at];
    return known?.step === step && step.outcome !== undefined ? known : pieceOfStep(step, end);
  });
  for (const action of actions) pieces.push(pieceOfAction(model, action, end));
  const { startedAt, endedAt, ranBefore = 0 } = node;
  const hasBegun = startedAt !== undefined && endedAt === undefined;
  const since = hasBegun && end === Infinity ? startedAt - ranBefore : busySince(pieces);
  return {
    id: `node-${index}`,
    name: node.name,
    node,
    tally: tallyOfNode(model, node),
    pieces: pieces.sort((a, b) => a.from - b.from),
    ...defined({ since }),
  };
}

/** When what goes on would have begun, had it come right behind what is over. */
function busySince(pieces: readonly Piece[]): number | undefined {
  const open = pieces.find(({ to }) => to === Infinity);
  const over = pieces.filter(({ to }) => to !== Infinity);
  return open && over.reduce((since, { from, to }) => since - (to - from), open.from);
}

/** What needs looking at first; else as they came. */
export function byUrgency(lanes: readonly Lane[]): readonly Lane[] {
  return lanes.toSorted((a, b) => rank(a) - rank(b));
}

/** How urgently a row wants to be seen; 0 is first. */
function rank({ node, tally }: Lane): number {
  if (tally.failed + tally.unreachable > 0) return 0;
  if (node?.outcome === "interrupted") return 1;
  return 2;
}

function pieceOfStep(step: StepModel, end: number): Piece {
  const { stage, title, module, outcome, problem, startedAt: from, duration } = step;
  const to = outcome === undefined ? end : from + (duration ?? 0);
  return { stage, title, kind: module, from, to, step, ...defined({ outcome, problem }) };
}

function pieceOfAction(model: RunModel, action: ActionModel, end: number): Piece {
  const { stage, action: kind, outcome, problem, startedAt: from, duration } = action;
  const title = model.stages.find(({ id }) => id === stage)?.title ?? stage;
  const to = outcome === undefined ? end : from + (duration ?? 0);
  return { stage, title, kind, from, to, action, ...defined({ outcome, problem }) };
}
