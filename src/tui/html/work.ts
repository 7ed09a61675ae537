import type { ActionModel, NodeModel, RunModel } from "#engine/events/run-model.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { tallyOfBastion, tallyOfNode, type Tally } from "../tally.ts";
import { actionsByNode, bastionActions, itemOf, type Work, type WorkItem } from "../work-item.ts";

/** A step of a node, or an action on the bastion. Times are milliseconds since the epoch. */
export interface Piece {
  readonly item: WorkItem;
  readonly title: string;
  readonly from: number;
  readonly to: number;
}

/** A row of the page: a node, or the bastion itself, with all its pieces in the order in which they began. */
export interface Lane {
  /** The id of the row's element. */
  readonly id: string;
  readonly name: string;
  readonly node?: NodeModel;
  readonly pieces: readonly Piece[];
  readonly tally: Tally;
  /** For a row with running work: now minus the time that its work took. The tally has the time of every other row. */
  readonly since?: number;
}

/** All rows: the most urgent first, then in the order of the run. */
export function lanesOf(model: RunModel): readonly Lane[] {
  const actions = actionsByNode(model);
  const nodes = [...model.nodes.values()].map((node, index) =>
    laneOf(model, { node, index, actions: actions.get(node.name) ?? [], end: model.lastAt }),
  );
  return byUrgency([...bastionLane(model), ...nodes]);
}

/** The row of the bastion's actions for no single node; empty without such actions. `end`: the end to draw for running ones. */
export function bastionLane(model: RunModel, end = model.lastAt): readonly Lane[] {
  const own = bastionActions(model);
  if (own.length === 0) return [];
  const pieces = own.map((action) => pieceOf(model, action, end)).toSorted((a, b) => a.from - b.from);
  const since = busySince(pieces);
  return [{ id: "bastion", name: "bastion", tally: tallyOfBastion(model), pieces, ...omitUndefined({ since }) }];
}

interface LaneParts {
  readonly node: NodeModel;
  readonly index: number;
  readonly actions: readonly ActionModel[];
  /** The end to draw for running pieces. */
  readonly end: number;
  /** The row as drawn before; its ended pieces stay the same objects. */
  readonly before?: Lane | undefined;
}

/** Makes a node's row. */
export function laneOf(model: RunModel, { node, index, actions, end, before }: LaneParts): Lane {
  const pieces = node.steps.map((step, at) => {
    const known = before?.pieces[at];
    return known?.item === itemOf(step) && step.outcome !== undefined ? known : pieceOf(model, step, end);
  });
  for (const action of actions) pieces.push(pieceOf(model, action, end));
  const { startedAt, endedAt, ranBefore = 0 } = node;
  const hasBegun = startedAt !== undefined && endedAt === undefined;
  const since = hasBegun && end === Infinity ? startedAt - ranBefore : busySince(pieces);
  return {
    id: `node-${index}`,
    name: node.name,
    node,
    tally: tallyOfNode(model, node),
    pieces: pieces.sort((a, b) => a.from - b.from),
    ...omitUndefined({ since }),
  };
}

/** The begin of the running piece, moved back by the time of all ended pieces. */
function busySince(pieces: readonly Piece[]): number | undefined {
  const open = pieces.find(({ to }) => to === Infinity);
  const over = pieces.filter(({ to }) => to !== Infinity);
  return open && over.reduce((since, { from, to }) => since - (to - from), open.from);
}

/** Failed and unreachable rows first, then interrupted rows; rows of one rank keep their order. */
export function byUrgency(lanes: readonly Lane[]): readonly Lane[] {
  return lanes.toSorted((a, b) => rank(a) - rank(b));
}

function rank({ node, tally }: Lane): number {
  if (tally.failed + tally.unreachable > 0) return 0;
  return node?.outcome === "interrupted" ? 1 : 2;
}

function pieceOf({ stages }: RunModel, work: Work, end: number): Piece {
  const item = itemOf(work);
  const { stage, outcome, startedAt: from, duration = 0 } = item;
  const title = "step" in work ? item.title : (stages.find(({ id }) => id === stage)?.title ?? stage);
  return { item, title, from, to: outcome === undefined ? end : from + duration };
}
