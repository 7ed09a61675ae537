import type { NodeUpdateView, UpdateView } from "#api/update-schemas.ts";
import { since } from "#base/units.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { nodePhases, hasEnded } from "#rollout/records.ts";
import type { Column } from "#tui/columns/column.ts";
import { drawTable, formatTable, tableLines } from "../terminal/format-table.ts";
import { cutText, doneOf, nodeUpdateColumns, ownerOf, troubleOf, logOf } from "./draw-update.ts";

/** A rollout of at most so many nodes is small: each node is listed, in every phase. */
const maxListed = 12;

/** Phases in which a node has no work; a large rollout only counts such nodes. */
const idlePhases: ReadonlySet<NodeUpdateView["phase"]> = new Set(["pending", "succeeded", "cancelled", "rolled_back"]);

const columns: readonly Column<NodeUpdateView>[] = [
  ...nodeUpdateColumns.filter(({ title }) =>
    ["NODE", "DC", "WAVE", "PHASE", "CURRENT", "TARGET", "SINCE"].includes(title),
  ),
  { title: "WHY", cell: (node) => cutText(whyOf(node), 100) },
];

/**
 * A rollout as lines for a terminal: its state, the counts of each datacenter, and the nodes under way or failed. A small
 * rollout lists all nodes instead.
 */
export function drawRollout(view: UpdateView, now: number): readonly string[] {
  const { nodeStatus } = view;
  const isSmall = nodeStatus.length <= maxListed;
  const shown = isSmall ? nodeStatus : busyNodes(nodeStatus);
  const table = shown.length === 0 ? [] : ["", ...tableLines(drawTable(columns, shown, { wide: false, now }))];
  return [...rolloutHead(view, now), ...(isSmall ? [] : ["", ...tableLines(drawDatacenters(nodeStatus))]), ...table];
}

function rolloutHead(view: UpdateView, now: number): readonly string[] {
  const { name, generation, phase, target, failed, reason, waits, owner } = view;
  const why = [reason, waits && `waits for ${waits}`, nextOf(view)].filter(Boolean).join("; ");
  const counts = `${doneOf(view)} done${failed > 0 ? `, ${failed} failed` : ""}`;
  const isHeard = owner.heard ? "" : ", which is not heard of";
  const lines = [
    `${name} (generation ${generation}): ${target}`,
    `${phase} for ${since(view.updatedAt, now)}: ${counts}; owner ${ownerOf(view)}${isHeard}`,
    ...(why === "" ? [] : [why]),
  ];
  return lines.map(cleanLine);
}

/** Nodes under way, failed ones first. */
function busyNodes(nodes: readonly NodeUpdateView[]): readonly NodeUpdateView[] {
  const busy = nodes.filter(({ phase, hook }) => !idlePhases.has(phase) || hook !== undefined);
  return busy.toSorted((a, b) => Number(b.phase === "failed") - Number(a.phase === "failed"));
}

/** The number of nodes in each phase, by datacenter. */
function drawDatacenters(nodes: readonly NodeUpdateView[]): string {
  const present = new Set(nodes.map(({ phase }) => phase));
  const phases = phaseOrder.filter((phase) => present.has(phase));
  const dcs = [...Map.groupBy(nodes, ({ dc }) => dc)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const count = (of: readonly NodeUpdateView[], phase: string): number =>
    of.filter((one) => one.phase === phase).length;
  return formatTable(
    ["DC", "NODES", ...phases.map((phase) => phase.toUpperCase())],
    dcs.map(([dc, all]) => [dc || "-", String(all.length), ...phases.map((phase) => String(count(all, phase)))]),
  );
}

const phaseOrder = [...new Set<NodeUpdateView["phase"]>(["succeeded", "failed", ...nodePhases.slice(1), "pending"])];

function whyOf(node: NodeUpdateView): string {
  const { hook, ready } = node;
  return troubleOf(node) || (hook === undefined ? (ready ? "" : "it is not ready") : `the bastion: ${hook}`);
}

/** A change of a rollout: of the update itself, or of one node. */
export type Transition =
  | ReturnType<typeof updateTransition>
  | { readonly type: "node"; readonly name: string; readonly generation: number; readonly node: NodeUpdateView };

/**
 * The changes since `before`: the update first, or last at its end. Without an earlier view of this generation, all
 * nodes but pending ones count as changed.
 */
export function transitionsOf(before: UpdateView | undefined, now: UpdateView): readonly Transition[] {
  const { name, generation } = now;
  const earlier = new Map(before?.nodeStatus.map((node) => [node.id, transitionKey(node)]));
  const isSame = before?.generation === generation;
  const nodes = now.nodeStatus.filter((node) =>
    isSame ? earlier.get(node.id) !== transitionKey(node) : node.phase !== "pending",
  );
  const [whole, formerly] = [updateTransition(now), before && updateTransition(before)];
  const wholes: readonly Transition[] = JSON.stringify(whole) === JSON.stringify(formerly) ? [] : [whole];
  const each = nodes.map((node): Transition => ({ type: "node", name, generation, node }));
  return hasEnded(now.phase) ? [...each, ...wholes] : [...wholes, ...each];
}

function updateTransition({
  name,
  generation,
  phase,
  approvalStatus,
  nodes,
  done,
  failed,
  waits,
  reason,
  owner,
}: UpdateView) {
  const counts = { nodes, done, failed };
  const by = owner.endpoint ?? owner.id;
  return { type: "update", name, generation, phase, approvalStatus, ...counts, waits, reason, owner: by } as const;
}

/** The fields of a node whose change is a transition. */
function transitionKey({ phase, failure, hook }: NodeUpdateView): string {
  return JSON.stringify([phase, failure, hook]);
}

/** A transition as one line; for a failed node, its log is indented below. */
export function drawTransition(transition: Transition): string {
  const log = transition.type === "node" ? logOf(transition.node) : [];
  return [cleanLine(lineOf(transition)), ...log].join("\n");
}

function lineOf(transition: Transition): string {
  if (transition.type === "node") {
    const { hostname, dc, phase, hook } = transition.node;
    const more =
      troubleOf(transition.node) || (hook === undefined ? arrivalOf(transition.node) : `the bastion: ${hook}`);
    return `${hostname} (${dc}) ${phase}${more === "" ? "" : `: ${more}`}`;
  }
  const { name, phase, generation, nodes, failed, done, waits, reason } = transition;
  const counts = `${doneOf({ done, nodes })} done${failed > 0 ? `, ${failed} failed` : ""}`;
  const why = [reason, waits && `waits for ${waits}`, nextOf(transition)].filter(Boolean).join("; ");
  return `${name} ${phase}, generation ${generation}, ${counts}${why === "" ? "" : `: ${why}`}`;
}

function arrivalOf({ phase, currentVersion, targetVersion }: NodeUpdateView): string {
  return phase === "succeeded" && targetVersion !== "" ? `runs ${currentVersion}` : "";
}

/** The command that the rollout waits for, if an operator has to type one. */
export function nextOf({
  name,
  phase,
  waits,
}: Pick<UpdateView, "name" | "phase"> & { readonly waits?: string | undefined }): string | undefined {
  if (waits !== undefined && /(?:^|; )approval/.test(waits)) return `kcore update cluster approve ${name}`;
  if (phase === "rolling_out" && waits?.startsWith("promotion")) return `kcore update cluster promote ${name}`;
  return undefined;
}
