import { formatBinary, since } from "#base/units.ts";
import type { PlannedNode, UpdatePlan } from "#api/update-schemas.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { attendantOf } from "#rollout/hooks.ts";
import { blockerTexts } from "./submit-update.ts";
import type { Column } from "#tui/columns/column.ts";
import { drawTable } from "../terminal/format-table.ts";

const columns: readonly Column<PlannedNode>[] = [
  { title: "NODE", cell: ({ hostname }) => hostname },
  { title: "DC", cell: ({ dc }) => dc },
  { title: "WAVE", cell: ({ wave }) => String(wave ?? "") },
  { title: "CHANGE", cell: ({ change }) => change },
  {
    title: "REBOOT",
    cell: ({ reboots, rebootReasons }) =>
      rebootReasons.length === 0 ? reboots : `${reboots}: ${rebootReasons.join(", ")}`,
  },
  { title: "BLOCKED", cell: ({ blockers }) => (blockers.length > 0 ? "yes" : "no") },
  { title: "READY", cell: ({ ready }) => (ready ? "yes" : "no") },
  { title: "APPROVAL", cell: ({ approval }) => approval },
  { title: "CURRENT", cell: ({ currentVersion }) => currentVersion },
  { title: "GENERATION", cell: ({ currentGeneration }) => String(currentGeneration ?? "") },
  { title: "ROOM", cell: roomCell },
  { title: "SEEN", cell: ({ lastSeen }, now) => since(lastSeen, now) },
  { title: "REPLICATION", cell: ({ replication = "" }) => replication },
  { title: "ROLES", wide: true, cell: ({ roles }) => roles.join(",") },
  { title: "ID", wide: true, cell: ({ id }) => id },
];

/** A plan as text: each node's change, blockers and warnings. `isRefused`: without blockers, which follow as problems. */
export function drawUpdatePlan(
  plan: UpdatePlan,
  { wide, now, isRefused = false }: { readonly wide: boolean; readonly now: number; readonly isRefused?: boolean },
): string {
  const { nodes } = plan;
  return [
    planHead(plan),
    nodes.length === 0 ? "" : `\n${drawTable(columns, nodes, { wide, now })}`,
    lines("blocked", isRefused ? [] : blockerTexts(plan)),
    lines("warning", [
      ...plan.warnings,
      ...nodes.flatMap((node) => node.warnings.map((text) => `${node.hostname}: ${text}`)),
    ]),
  ].join("");
}

/** A plan as text without its nodes, for a confirmation. `would` replaces the plan's own result, for example by “approved”. */
export function drawPlanBriefly(
  plan: UpdatePlan,
  { would, isRefused = false }: { readonly would?: string; readonly isRefused?: boolean } = {},
): string {
  const { nodes, warnings } = plan;
  const count = (test: (node: PlannedNode) => boolean): number => nodes.filter(test).length;
  const changed = count(({ change }) => change !== "none");
  const reboots = [
    `${count((node) => node.reboots === "yes")} reboot`,
    ...(nodes.some((node) => node.reboots === "unknown") ? ["others may, which is known when they are built"] : []),
  ];
  const down = count(({ ready }) => !ready);
  return [
    planHead(plan, would),
    `  ${nodes.length} nodes in ${plan.waves.length} waves: ${changed} change, ${reboots.join(", ")}; ${down} not ready\n`,
    lines("blocked", isRefused ? [] : blockerTexts(plan)),
    lines("warning", warnings),
  ].join("");
}

function planHead(
  { name, result, generation, hash, viable, target, strategy, approval, nodes, attendance }: UpdatePlan,
  would: string = result,
): string {
  const verdict = viable ? "viable" : "not viable";
  const becomes = would === "unchanged" ? would : `would be ${would}`;
  return [
    cleanLine(`${name} ${becomes}: generation ${generation}, hash ${shortHash(hash)}, ${verdict}`),
    cleanLine(`  ${target}; ${strategy}; approval ${approval}; ${nodes.length} nodes`),
    ...(attendance ? [cleanLine(`  attended by ${attendantOf(attendance)}`)] : []),
    "",
  ].join("\n");
}

/** The first 12 digits of a hash, as texts show it and `--hash` takes it. */
export function shortHash(hash: string): string {
  return hash.slice(0, 12);
}

function lines(title: string, texts: readonly string[]): string {
  return texts.length === 0 ? "" : `\n${texts.map((text) => `${cleanLine(`${title}: ${text}`)}\n`).join("")}`;
}

function roomCell({ room }: PlannedNode): string {
  if (!room) return "";
  const { needed, free } = room;
  return free === undefined ? formatBinary(needed) : `${formatBinary(needed)} of ${formatBinary(free)}`;
}
