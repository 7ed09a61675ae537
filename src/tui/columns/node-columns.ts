import { formatBinary } from "#base/units.ts";
import { approvalWord, labelPairs, statusWord, taintText } from "../fleet-words.ts";
import type { FleetNode, FleetUsage } from "../ink/fleet/snapshot.ts";
import type { TextRole } from "../ink/theme.ts";
import { ageColumn, coarseSince, expiryColumn, type Column } from "./column.ts";

/** Two missed heartbeats: an agent sends a heartbeat every 15 s, and other controllers get it up to 15 s later. */
const missedMs = 45_000;

/** The used share at which a disk is nearly full. */
const diskTight = 0.85;
/** The used share at which a disk counts as full. */
export const diskFull = 0.95;

export const nodeColumns: readonly Column<FleetNode>[] = [
  { title: "NAME", cell: ({ hostname }) => hostname, room: { width: 12, grow: 3, max: 36, drop: 0 } },
  { title: "STATUS", cell: statusWord, role: statusRole, room: { width: 8, drop: 0 } },
  { title: "APPROVAL", cell: approvalWord },
  { title: "ROLES", cell: ({ roles }) => roles.join(","), room: { width: 10, grow: 1, max: 24, drop: 9 } },
  { title: "DC", cell: ({ dc }) => dc, room: { width: 5, grow: 1, max: 14, drop: 4 } },
  { title: "ADDRESS", cell: ({ address }) => address, role: "muted", room: { width: 15, grow: 1, max: 24, drop: 11 } },
  { title: "VERSION", cell: ({ version }) => version, role: "muted", room: { width: 8, grow: 1, max: 16, drop: 10 } },
  ageColumn("AGE", ({ registered }) => registered),
  ageColumn("SEEN", ({ lastSeen }) => lastSeen, { role: seenRole, room: { width: 4, drop: 1 } }),
  {
    title: "LOAD",
    live: true,
    cell: loadText,
    role: ({ cpu, usage }) => (cpu > 0 && (usage?.load ?? 0) > cpu ? "warning" : "plain"),
    graph: ({ trend }) => trend?.load ?? [],
    room: { width: 11, align: "right", drop: 5 },
  },
  {
    title: "MEM",
    live: true,
    cell: (node) => percent(memoryShare(node)),
    role: (node) => ((memoryShare(node) ?? 0) >= 0.9 ? "warning" : "plain"),
    graph: ({ trend }) => trend?.memory ?? [],
    room: { width: 11, align: "right", drop: 6 },
  },
  {
    title: "DISK",
    live: true,
    cell: ({ usage }) => percent(diskShare(usage)),
    role: diskRole,
    room: { width: 4, align: "right", drop: 3 },
  },
  expiryColumn("CERT-EXPIRY", ({ certificateExpires }) => certificateExpires, { short: "CERT", width: 7, drop: 2 }),
  {
    title: "CONFLICTS",
    cell: conflictCount,
    role: (node) => (conflictCount(node) === "0" ? "muted" : "warning"),
    room: { short: "CONFL", width: 6, align: "right", drop: 7 },
  },
  { title: "CPU", wide: true, cell: ({ cpu }) => (cpu === 0 ? "" : String(cpu)) },
  { title: "MEMORY", wide: true, cell: ({ memory }) => (memory === 0 ? "" : formatBinary(memory)) },
  { title: "LABELS", wide: true, cell: ({ labels }) => labelPairs(labels).join(",") },
  { title: "TAINTS", wide: true, cell: ({ taints }) => taints.map(taintText).join(",") },
  {
    title: "REVISION",
    wide: true,
    ifAny: true,
    cell: ({ revision = "" }) => revision,
    role: ({ revision = "" }) => (revision.includes("+") ? "warning" : "muted"),
    room: { width: 12, grow: 1, max: 22, drop: 12 },
  },
  { title: "ID", wide: true, cell: ({ id }) => id },
  {
    title: "REASON",
    wide: true,
    cell: ({ reason = "" }) => reason,
    onScreen: reasonOnScreen,
    role: "muted",
    room: { width: 18, grow: 4, drop: 8 },
  },
];

function seenRole({ lastSeen }: FleetNode, now: number): TextRole {
  return lastSeen !== "" && now - Date.parse(lastSeen) > missedMs ? "warning" : "muted";
}

export function statusRole({ status }: Pick<FleetNode, "status">): TextRole {
  const roles = {
    ready: "ok",
    "not-ready": "failed",
    pending: "warning",
    rejected: "muted",
    unknown: "muted",
  } as const;
  return roles[status];
}

function conflictCount({ conflicts, nameConflict }: FleetNode): string {
  return [conflicts > 0 || !nameConflict ? String(conflicts) : "", nameConflict ? "name" : ""]
    .filter((part) => part !== "")
    .join("+");
}

/** The reason of a node's status, the approval that it waits for, or its full disk; empty without any of these. */
export function nodeReason({ reason, status, approval, usage }: FleetNode): string {
  if (reason !== undefined) return reason;
  if (status === "pending" && approval === "pending") return "waits for kcore node approve";
  const share = diskShare(usage) ?? 0;
  return share >= diskFull ? `a disk is ${percent(share)} full` : "";
}

/** The reason in a row of the dashboard: a missing heartbeat with its age instead of its date. */
function reasonOnScreen(node: FleetNode, now: number): string {
  const reason = nodeReason(node);
  return reason.startsWith("no heartbeat since ") ? `no heartbeat for ${coarseSince(node.lastSeen, now)}` : reason;
}

/** The used share of the node's fuller disk, 0 to 1; undefined before a report. */
export function diskShare({ diskUsed = 0, diskSize = 0 }: FleetUsage = {}): number | undefined {
  return diskSize > 0 ? Math.min(1, Math.max(0, diskUsed / diskSize)) : undefined;
}

function diskRole({ usage }: FleetNode): TextRole {
  const share = diskShare(usage) ?? 0;
  return share >= diskFull ? "failed" : share >= diskTight ? "warning" : "plain";
}

function memoryShare({ memory, usage }: FleetNode): number | undefined {
  if (usage?.memoryUsed === undefined || memory <= 0) return undefined;
  return Math.min(1, Math.max(0, usage.memoryUsed / memory));
}

function loadText({ usage }: FleetNode): string {
  if (usage?.load === undefined) return "";
  return usage.load >= 99.95 ? String(Math.round(usage.load)) : usage.load.toFixed(1);
}

/** A share of 0 to 1 as `85%`; empty without a share. */
export function percent(share: number | undefined): string {
  return share === undefined ? "" : `${Math.round(share * 100)}%`;
}
