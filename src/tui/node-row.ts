import type { ActionModel, NodeModel, RunModel } from "#engine/events/run-model.ts";
import type { Problem } from "#errors/problem.ts";
import { busyTime, ownEnd, tallyOf, timeOfNode } from "./tally.ts";
import { sendingText } from "./describe-event.ts";
import { plansOf, nodeProgress, type NodePlan } from "./progress.ts";
import { actionsByNode, itemOf, mostImportant, workOn, type WorkItem } from "./work-item.ts";

/** Each state of a row with its rank: failed nodes come first and stay there; then running, waiting, ended nodes. */
const ranks = {
  failed: 0,
  unreachable: 0,
  running: 1,
  connecting: 1,
  waiting: 1,
  asking: 1,
  lost: 1,
  rebooting: 1,
  idle: 2,
  pending: 2,
  done: 3,
  interrupted: 3,
  unfinished: 3,
  "not-started": 3,
} as const;

export type RowState = keyof typeof ranks;
/** A row's place among others: rows of rank 0 come first. */
export type Rank = (typeof ranks)[RowState];

/** A node as a row of a view; the bastion has a row, too, if it has actions for no single node. */
export interface NodeRow {
  readonly name: string;
  readonly isBastion: boolean;
  /** The roles in the roster; empty where the record has none. */
  readonly roles: readonly string[];
  readonly dc: string;
  readonly state: RowState;
  readonly rank: Rank;
  readonly items: readonly WorkItem[];
  /** The most important item of the node now (`mostImportant`). */
  readonly item?: WorkItem | undefined;
  /** The reason why the node waits, was lost, or failed without a failed step; or its open question. */
  readonly reason?: string | undefined;
  /** The problem of the node, if no step has reported it. */
  readonly problem?: Problem | undefined;
  readonly milestone?: string | undefined;
  /** The disks whose table was saved, before a wipe or before an earlier table is put back. */
  readonly saved?: string | undefined;
  /** The content that the bastion is sending. */
  readonly sending?: string | undefined;
  /** Steps and actions that have ended. */
  readonly ended: number;
  readonly planned: number;
  /** Whether more steps may come than are planned. */
  readonly isOpen: boolean;
  /** Changed steps, or in a dry run steps that would change. */
  readonly changed: number;
  /** In a dry run: steps whose outcome is unknown before earlier steps are applied. */
  readonly unknown: number;
  /** `changed` counts steps that would change, as in a dry run. */
  readonly isForeseen: boolean;
  readonly failed: number;
  /** The done share of the node's planned work, 0 to 1. */
  readonly progress: number;
  /** Milliseconds that the node took by `now`; undefined: the node has not begun. */
  readonly time: (now: number) => number | undefined;
}

/** The name of the bastion's row. */
export const bastion = "bastion";

/** All rows in the order of the run, the bastion first. Rows of nodes that did not change are the same objects. */
export function nodeRows(model: RunModel): readonly NodeRow[] {
  const known = rowsByModel.get(model);
  if (known) return known;
  const actions = actionsByNode(model);
  const rows: NodeRow[] = [];
  const own = actions.get("") ?? [];
  if (own.length > 0) rows.push(bastionRow(model, own));
  const plans = plansOf(model);
  const isOver = model.state === "finished";
  for (const node of model.nodes.values())
    rows.push(rowOf(node, actions.get(node.name) ?? noActions, plans.get(node.name) ?? [], isOver));
  const all = model.questions.length > 0 ? rows.map((row) => askedRow(row, model)) : rows;
  rowsByModel.set(model, all);
  return all;
}

/** The row with its open question as its state; a failed row stays as it is. */
function askedRow(row: NodeRow, { questions, state }: RunModel): NodeRow {
  const asker = row.isBastion ? undefined : row.name;
  const question = state === "finished" ? undefined : questions.find(({ node }) => node === asker);
  if (!question || row.rank === 0) return row;
  return { ...row, state: "asking", rank: 1, reason: `asks: ${question.text}` };
}

const noActions: readonly ActionModel[] = [];
const noRoles: readonly string[] = [];
const rowsByModel = new WeakMap<RunModel, readonly NodeRow[]>();
const rowByNode = new WeakMap<
  NodeModel,
  { readonly actions: readonly ActionModel[]; readonly over: boolean; readonly row: NodeRow }
>();

function rowOf(node: NodeModel, actions: readonly ActionModel[], plan: NodePlan, over: boolean): NodeRow {
  const known = rowByNode.get(node);
  if (known && known.over === over && hasSameItems(known.actions, actions)) return known.row;
  const work = workOn(node, actions);
  const { ended, planned, isOpen, share } = nodeProgress(plan, work, node.planned);
  const running = work.filter(({ outcome }) => outcome === undefined).length;
  const end = ownEnd(node, work);
  const { changed, wouldChange, unknown, failed } = tallyOf(work, 0, end ? [end] : []);
  // A failed step shows the cause.
  const hasFailed = failed > 0 && end !== "failed";
  const state = stateOf(node, running, failed, work.length, over);
  const isDone = state === "done";
  const reason = hasFailed ? undefined : (node.problem?.message ?? node.reason);
  let items: readonly WorkItem[] | undefined;
  const row: NodeRow = {
    name: node.name,
    isBastion: false,
    roles: node.roles ?? noRoles,
    dc: node.dc ?? "",
    state,
    rank: ranks[state],
    // Made on demand: a view opens one node of a thousand.
    get items() {
      return (items ??= work.map(itemOf));
    },
    get item() {
      const first = mostImportant(work);
      return first && itemOf(first);
    },
    // No spreads: a thousand of these may be made in each frame.
    reason,
    problem: hasFailed ? undefined : node.problem,
    milestone: node.milestone,
    saved: node.saved?.map(({ device }) => device).join(", "),
    sending: node.sending && sendingText(node.sending),
    ended,
    planned: isDone ? ended : planned,
    isOpen: isOpen && !isDone,
    changed: changed + wouldChange,
    unknown,
    isForeseen: wouldChange > 0,
    failed,
    progress: isDone ? 1 : share,
    time: (now) => timeOfNode(node, work, now),
  };
  rowByNode.set(node, { actions, over, row });
  return row;
}

function bastionRow(model: RunModel, actions: readonly ActionModel[]): NodeRow {
  const items = actions.map(itemOf);
  const item = mostImportant(items);
  const ended = items.filter(({ outcome }) => outcome !== undefined).length;
  const { changed, wouldChange, unknown, failed } = tallyOf(actions, 0);
  const planned = Math.max(
    items.length,
    model.stages.filter(({ action, nodes }) => action && nodes.length === 0).length,
  );
  const isRunning = items.some(({ outcome }) => outcome === undefined);
  const state: RowState =
    failed > 0
      ? "failed"
      : isRunning
        ? "running"
        : items.some(({ outcome }) => outcome === "interrupted")
          ? "interrupted"
          : ended >= planned || model.state === "finished"
            ? "done"
            : "idle";
  return {
    name: bastion,
    isBastion: true,
    roles: noRoles,
    dc: "",
    state,
    rank: ranks[state],
    items,
    ...(item ? { item } : {}),
    ended,
    planned: state === "done" ? ended : planned,
    isOpen: false,
    changed: changed + wouldChange,
    unknown,
    isForeseen: wouldChange > 0,
    failed,
    progress: state === "done" || planned === 0 ? 1 : ended / planned,
    time: (now) => busyTime(items, now),
  };
}

function hasSameItems(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a === b || (a.length === b.length && a.every((one, index) => one === b[index]));
}

function stateOf(node: NodeModel, running: number, failed: number, all: number, over: boolean): RowState {
  if (node.outcome === "unreachable") return "unreachable";
  if (node.outcome === "failed" || failed > 0) return "failed";
  if (node.outcome !== undefined) return node.outcome;
  if (over) return "unfinished";
  switch (node.state) {
    case "connecting":
      return "connecting";
    case "disconnected":
      return "lost";
    case "rebooting":
      return "rebooting";
    case "waiting":
      return "waiting";
    case "pending":
    case "connected":
    case "finished":
      if (running > 0 || node.sending) return "running";
      return node.state === "pending" && all === 0 ? "pending" : "idle";
  }
}

/** The reason why a node waits before its first or its next stage; undefined without a further stage, or after the node's end. */
export function waitsFor(model: RunModel, name: string): string | undefined {
  const node = model.nodes.get(name);
  if (!node || node.outcome !== undefined || model.state === "finished") return undefined;
  if (model.questions.some((question) => question.node === undefined || question.node === name))
    return "waits for your answer";
  const { stages } = model;
  const begun = new Set(node.steps.map(({ stage }) => stage));
  const last = stages.findLastIndex(({ id }) => begun.has(id));
  const isOpen = ({ state }: (typeof stages)[number]) => state === "pending" || state === "running";
  const next = stages.findIndex((stage, index) => index > last && isOpen(stage) && setOf(stage.nodes).has(name));
  if (next === -1) return undefined;
  const before = stages.slice(0, next).filter(isOpen);
  const blocking = before.find(({ state }) => state === "running") ?? before[0];
  return blocking ? `waits for ${blocking.title}` : `waits for its turn: ${stages[next]?.title ?? ""}`;
}

const nodeSets = new WeakMap<readonly string[], ReadonlySet<string>>();

/** The nodes of a stage as a set. Cached, because every frame looks up each of perhaps a thousand nodes. */
function setOf(nodes: readonly string[]): ReadonlySet<string> {
  const names = nodeSets.get(nodes) ?? new Set(nodes);
  nodeSets.set(nodes, names);
  return names;
}
