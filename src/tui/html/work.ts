import type { Outcome } from "#engine/events/event.ts";
import type { ActionModel, NodeModel, RunModel, StepModel } from "#engine/events/run-model.ts";
import { bastionActions, tallyOf, type Tally } from "../tally.ts";
import { actionsByNode } from "../work-item.ts";

/** A step of a node, or an action on the bastion that was taken for it. */
export interface Piece {
  readonly stage: string;
  readonly title: string;
  readonly kind: string;
  readonly outcome?: Outcome;
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
  readonly from: number;
  readonly to: number;
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
  return [
    laneFrom({
      id: "bastion",
      name: "bastion",
      began: model.startedAt,
      pieces: own.map((action) => pieceOfAction(model, action, end)),
    }),
  ];
}

/** A node's row; `end` is where pieces that still run end, for now. */
export function laneOf(
  model: RunModel,
  {
    node,
    index,
    actions,
    end,
  }: {
    readonly node: NodeModel;
    readonly index: number;
    readonly actions: readonly ActionModel[];
    readonly end: number;
  },
): Lane {
  const pieces = [
    ...node.steps.map((step) => pieceOfStep(step, end)),
    ...actions.map((action) => pieceOfAction(model, action, end)),
  ];
  return laneFrom({ id: `node-${index}`, name: node.name, node, began: model.startedAt, pieces });
}

function laneFrom({
  pieces: unsorted,
  began,
  ...row
}: Pick<Lane, "id" | "name" | "node" | "pieces"> & { readonly began: number }): Lane {
  const pieces = unsorted.toSorted((a, b) => a.from - b.from);
  const from = Math.min(...pieces.map((piece) => piece.from), row.node?.startedAt ?? Infinity);
  const to = Math.max(...pieces.map((piece) => piece.to), row.node?.endedAt ?? 0);
  return {
    ...row,
    pieces,
    tally: tallyOf(pieces.map((piece) => piece.step ?? piece.action ?? {})),
    from: Number.isFinite(from) ? from : began,
    to: to === 0 ? began : to,
  };
}

/** What needs looking at first; else as they came. */
export function byUrgency(lanes: readonly Lane[]): readonly Lane[] {
  return lanes.toSorted((a, b) => rank(a) - rank(b));
}

/** How urgently a row wants to be seen; 0 is first. */
function rank({ node, tally }: Lane): number {
  if (tally.failed > 0 || node?.outcome === "failed" || node?.outcome === "unreachable") return 0;
  if (node?.outcome === "interrupted") return 1;
  return 2;
}

function pieceOfStep(step: StepModel, end: number): Piece {
  const { stage, title, module, outcome, startedAt: from, duration } = step;
  const to = outcome === undefined ? end : from + (duration ?? 0);
  return { stage, title, kind: module, from, to, step, ...(outcome && { outcome }) };
}

function pieceOfAction(model: RunModel, action: ActionModel, end: number): Piece {
  const { stage, action: kind, outcome, startedAt: from, duration } = action;
  const title = model.stages.find(({ id }) => id === stage)?.title ?? stage;
  const to = outcome === undefined ? end : from + (duration ?? 0);
  return { stage, title, kind, from, to, action, ...(outcome && { outcome }) };
}
