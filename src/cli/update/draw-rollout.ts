import { since } from "#base/units.ts";
import type { NodeUpdateView, UpdateView } from "#api/update-schemas.ts";
import { nodePhases } from "#rollout/records.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { drawTable, type Column } from "../terminal/columns.ts";
import { formatTable } from "../terminal/format-table.ts";
import { cut, doneOf, nodeColumns, ownerOf, troubleOf } from "./draw-update.ts";
import { nextOf } from "./transitions.ts";

/** So many nodes are shown one by one, whatever they do. */
const few = 12;

/** Phases in which nobody waits for a node: such nodes are counted where there are many. */
const quiet: ReadonlySet<NodeUpdateView["phase"]> = new Set(["pending", "succeeded", "cancelled", "rolled_back"]);

const columns: readonly Column<NodeUpdateView>[] = [
  ...nodeColumns.filter(({ title }) => ["NODE", "DC", "WAVE", "PHASE", "CURRENT", "TARGET", "SINCE"].includes(title)),
  { title: "WHY", cell: (node) => cut(whyOf(node), 100) },
];

/**
 * A rollout as it is watched at a terminal: how it stands, how far each datacenter is, and by name the nodes that are under way or have
 * failed; of few nodes all.
 */
export function drawRollout(view: UpdateView, now: number): readonly string[] {
  const { nodeStatus } = view;
  const isFew = nodeStatus.length <= few;
  const shown = isFew ? nodeStatus : named(nodeStatus);
  const table = shown.length === 0 ? [] : ["", ...linesOf(drawTable(columns, shown, { wide: false, now }))];
  return [...headOf(view, now), ...(isFew ? [] : ["", ...linesOf(drawDatacenters(nodeStatus))]), ...table];
}

function headOf(view: UpdateView, now: number): readonly string[] {
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

/** Nodes that somebody waits for, failed ones first. */
function named(nodes: readonly NodeUpdateView[]): readonly NodeUpdateView[] {
  const busy = nodes.filter(({ phase, hook }) => !quiet.has(phase) || hook !== undefined);
  return busy.toSorted((a, b) => Number(b.phase === "failed") - Number(a.phase === "failed"));
}

/** How many nodes of each datacenter are in which phase. */
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

function linesOf(table: string): readonly string[] {
  return table.trimEnd().split("\n");
}
