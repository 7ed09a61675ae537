import { since } from "#base/units.ts";
import type { NodeUpdateView, UpdateSummary, UpdateView } from "#api/update-schemas.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { attendantOf, bastionHooks } from "#rollout/hooks.ts";
import { hasEnded } from "#rollout/records.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import type { Column } from "#tui/columns/column.ts";
import { drawTable, formatTitled, type TitledValue } from "../terminal/format-table.ts";
import { shortHash } from "./draw-plan.ts";

export const updateColumns: readonly Column<UpdateSummary>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "GENERATION", cell: ({ generation }) => String(generation) },
  { title: "PHASE", cell: ({ phase }) => phase },
  { title: "APPROVAL", cell: ({ approvalStatus }) => approvalStatus },
  { title: "TARGET", cell: ({ target }) => target },
  { title: "STRATEGY", cell: ({ strategy }) => strategy },
  { title: "DONE", cell: doneOf },
  { title: "OWNER", cell: ownerOf },
  { title: "AGE", cell: ({ createdAt }, now) => since(createdAt, now) },
  { title: "EPOCH", wide: true, cell: ({ owner }) => String(owner.epoch) },
  { title: "CHANGED", wide: true, cell: ({ updatedAt }, now) => since(updatedAt, now) },
  { title: "WAITS-FOR", wide: true, cell: ({ waits = "" }) => waits },
  { title: "REASON", wide: true, cell: ({ reason = "" }) => reason },
];

/** The most characters of an error in a table; `-o wide` has the whole first line. */
const maxErrorLength = 80;

export const nodeUpdateColumns: readonly Column<NodeUpdateView>[] = [
  { title: "NODE", cell: ({ hostname }) => hostname },
  { title: "DC", cell: ({ dc }) => dc },
  { title: "WAVE", cell: ({ wave }) => String(wave ?? "") },
  { title: "PHASE", cell: ({ phase }) => phase },
  { title: "CURRENT", cell: ({ currentVersion }) => currentVersion },
  { title: "TARGET", cell: ({ targetVersion }) => targetVersion },
  { title: "GENERATION", cell: generationCell },
  {
    title: "REBOOT",
    cell: ({ requiresReboot }) => (requiresReboot === undefined ? "" : requiresReboot ? "yes" : "no"),
  },
  { title: "SINCE", cell: (node, now) => since(node.since, now) },
  { title: "LAST-ERROR", cell: (node) => cutText(troubleOf(node), maxErrorLength) },
];
const wideColumns: readonly Column<NodeUpdateView>[] = [
  ...nodeUpdateColumns.slice(0, -1),
  { title: "REBOOT-REASONS", cell: ({ rebootReasons = [] }) => cleanLine(rebootReasons.join("; ")) },
  { title: "READY", cell: ({ ready }) => (ready ? "yes" : "no") },
  { title: "HOOK", cell: ({ hook = "" }) => hook },
  { title: "ROLES", cell: ({ roles }) => roles.join(",") },
  { title: "ID", cell: ({ id }) => id },
  { title: "LAST-ERROR", cell: troubleOf },
];

type UnsignedView = Omit<UpdateView, "signed">;

/** An update with all its nodes, as text. */
export function drawUpdate(
  view: UnsignedView,
  { wide, now }: { readonly wide: boolean; readonly now: number },
): string {
  const { nodeStatus } = view;
  const table = drawTable(wide ? wideColumns : nodeUpdateColumns, nodeStatus, { wide, now });
  const logs = nodeStatus.flatMap((node) => {
    const lines = logOf(node);
    return lines.length === 0 ? [] : ["", cleanLine(`${node.hostname}: ${troubleOf(node)}`), ...lines];
  });
  const ends = logs.map((line) => `${line}\n`).join("");
  return `${formatTitled(updateHead(view, now), 12)}\n${nodeStatus.length === 0 ? "the selector means no node\n" : table}${ends}`;
}

function updateHead(view: UnsignedView, now: number): readonly TitledValue[] {
  const { name, generation, hash, phase, waits, reason, approvalPolicy, approvalStatus, approvedBy, owner } = view;
  const approval = approvedBy ? `${approvalStatus} by ${approvedBy}` : approvalStatus;
  return [
    ["Name:", name],
    ["Generation:", `${generation}, hash ${shortHash(hash)}`],
    ["Phase:", `${phase} for ${since(view.updatedAt, now)}`],
    ["Reason:", reason],
    ["Asked by:", view.rolledBackBy],
    ["Waits for:", waits],
    ["Attended:", view.attendance && `by ${attendantOf(view.attendance)}`],
    ["Approval:", `${approvalPolicy}: ${approval}`],
    ["Target:", view.target],
    ["Strategy:", `${view.strategy}, at most ${view.spec.strategy.maxUnavailable} down`],
    ["Done:", `${doneOf(view)}${view.failed > 0 ? `, ${view.failed} failed` : ""}`],
    [
      "Owner:",
      `${ownerOf(view)}, epoch ${owner.epoch}${owner.heard ? "" : `, not heard of: kcore update cluster takeover ${name}`}`,
    ],
    ["Created:", `${view.createdAt} (${since(view.createdAt, now)} ago)`],
  ];
}

/** The nodes that are done, of all: `3/10`. */
export function doneOf({ done, nodes }: Pick<UpdateSummary, "done" | "nodes">): string {
  return `${done}/${nodes}`;
}

/** The owner's address, else its id. */
export function ownerOf({ owner }: Pick<UpdateSummary, "owner">): string {
  return owner.endpoint ?? owner.id;
}

/** Phases in which a node does not go on to its target. */
const turnedBack: ReadonlySet<NodeUpdateView["phase"]> = new Set([
  "failed",
  "cancelled",
  "rolling_back",
  "rolled_back",
]);

/** A node's present generation, and its next one if it goes on to its target: `12->13`. */
function generationCell({ phase, currentGeneration, targetGeneration }: NodeUpdateView): string {
  const next = turnedBack.has(phase) ? undefined : targetGeneration;
  const texts = [currentGeneration, next].filter((one) => one !== undefined);
  return [...new Set(texts)].join("->");
}

/** The kind and the first line of a node's failure; empty without one. */
export function troubleOf({ failure }: Pick<NodeUpdateView, "failure">): string {
  return failure ? `${failure.kind}: ${failure.message.split("\n", 1)[0]}` : "";
}

/** The lines after the first of a node's failure: the end of a unit's log, or of a gate's output. */
export function logOf({ failure }: Pick<NodeUpdateView, "failure">): readonly string[] {
  const [, ...lines] = failure?.message.split("\n") ?? [];
  return lines.map((line) => `    ${cleanLine(line)}`);
}

/** The text, cut to `length` characters with an ellipsis at the end. */
export function cutText(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** The operator's next steps after an apply: approve the update, run its hooks if `spec` has some, or apply it again after its end. */
export function nextSteps({
  name,
  phase,
  approvalStatus,
  spec,
  attendance,
}: Pick<UpdateSummary, "name" | "phase" | "approvalStatus" | "attendance"> & {
  readonly spec?: UpdateSpec | undefined;
}): readonly string[] {
  if (phase === "succeeded") return [];
  if (hasEnded(phase))
    return [`it is ${phase}, and stays so; to try it again: kcore update cluster apply -f FILE --again`];
  const hooks = spec ? bastionHooks(spec).map((hook) => hook.name) : [];
  return [
    ...(approvalStatus === "awaiting_approval" ? [`next: kcore update cluster approve ${name}`] : []),
    ...(hooks.length > 0
      ? [
          `it waits for the bastion (${hooks.join(", ")})${attendance ? `, attended by ${attendantOf(attendance)}` : `: kcore update cluster run-hooks ${name}`}`,
        ]
      : []),
  ];
}
