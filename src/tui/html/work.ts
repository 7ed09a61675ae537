import type { Outcome } from "#engine/events/event.ts";
import type { ActionModel, NodeModel, RunModel, StepModel } from "#engine/events/run-model.ts";
import { bastionActions, tallyOf, type Tally } from "../tally.ts";

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
  const byNode = new Map<string, ActionModel[]>();
  for (const { actions } of model.stages)
    for (const action of actions)
      if (action.item !== undefined && model.nodes.has(action.item)) {
        const known = byNode.get(action.item);
        if (known) known.push(action);
        else byNode.set(action.item, [action]);
      }
  const own = bastionActions(model);
  const rows: readonly { readonly name: string; readonly node?: NodeModel; readonly pieces: readonly Piece[] }[] = [
    ...(own.length > 0 ? [{ name: "bastion", pieces: own.map((action) => pieceOfAction(model, action)) }] : []),
    ...[...model.nodes.values()].map((node) => ({
      name: node.name,
      node,
      pieces: [
        ...node.steps.map((step) => pieceOfStep(model, step)),
        ...(byNode.get(node.name) ?? []).map((action) => pieceOfAction(model, action)),
      ],
    })),
  ];
  return rows
    .map((row, index): Lane => {
      const pieces = row.pieces.toSorted((a, b) => a.from - b.from);
      const from = Math.min(...pieces.map((piece) => piece.from), row.node?.startedAt ?? Infinity);
      const to = Math.max(...pieces.map((piece) => piece.to), row.node?.endedAt ?? 0);
      return {
        ...row,
        id: `node-${index}`,
        pieces,
        tally: tallyOf(pieces.map((piece) => piece.step ?? piece.action ?? {})),
        from: Number.isFinite(from) ? from : model.startedAt,
        to: to === 0 ? model.startedAt : to,
      };
    })
    .toSorted((a, b) => rank(a) - rank(b));
}

/** How urgently a row wants to be seen; 0 is first. */
function rank({ node, tally }: Lane): number {
  if (tally.failed > 0 || node?.outcome === "failed" || node?.outcome === "unreachable") return 0;
  if (node?.outcome === "interrupted") return 1;
  return 2;
}

function pieceOfStep(model: RunModel, step: StepModel): Piece {
  const { stage, title, module, outcome, startedAt: from, duration } = step;
  const to = outcome === undefined ? model.lastAt : from + (duration ?? 0);
  return { stage, title, kind: module, from, to, step, ...(outcome && { outcome }) };
}

function pieceOfAction(model: RunModel, action: ActionModel): Piece {
  const { stage, action: kind, outcome, startedAt: from, duration } = action;
  const title = model.stages.find(({ id }) => id === stage)?.title ?? stage;
  const to = outcome === undefined ? model.lastAt : from + (duration ?? 0);
  return { stage, title, kind, from, to, action, ...(outcome && { outcome }) };
}
