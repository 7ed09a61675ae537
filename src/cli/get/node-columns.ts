import type { NodeView } from "#api/schemas.ts";
import { since, until } from "#tui/age.ts";
import type { Column } from "../terminal/columns.ts";

const statusWords = {
  pending: "Pending",
  ready: "Ready",
  "not-ready": "NotReady",
  rejected: "Rejected",
  unknown: "Unknown",
} as const;

/** A node's status as tables show it. */
export function statusWord({ status }: Pick<NodeView, "status">): string {
  return statusWords[status];
}

export const nodeColumns: readonly Column<NodeView>[] = [
  { title: "NAME", cell: ({ hostname }) => hostname },
  { title: "STATUS", cell: statusWord },
  { title: "APPROVAL", cell: ({ approval, status }) => (status === "unknown" ? "-" : approval) },
  { title: "ROLES", cell: ({ roles }) => roles.join(",") },
  { title: "DC", cell: ({ dc }) => dc },
  { title: "ADDRESS", cell: ({ address }) => address },
  { title: "VERSION", cell: ({ version }) => version },
  { title: "AGE", cell: ({ registered }, now) => since(registered, now) },
  { title: "SEEN", cell: ({ lastSeen }, now) => since(lastSeen, now) },
  { title: "CERT-EXPIRY", cell: ({ certificateExpires }, now) => until(certificateExpires, now) },
  { title: "CONFLICTS", cell: conflictsOf },
  { title: "CPU", wide: true, cell: ({ cpu }) => (cpu === 0 ? "" : String(cpu)) },
  { title: "MEMORY", wide: true, cell: ({ memory }) => (memory === 0 ? "" : gibibytes(memory)) },
  { title: "LABELS", wide: true, cell: ({ labels }) => pairs(labels) },
  { title: "TAINTS", wide: true, cell: ({ taints }) => taints.map(formatTaint).join(",") },
  { title: "ID", wide: true, cell: ({ id }) => id },
  { title: "REASON", wide: true, cell: ({ reason = "" }) => reason },
];

function conflictsOf({ conflicts, nameConflict }: NodeView): string {
  return [conflicts > 0 || !nameConflict ? String(conflicts) : "", nameConflict ? "name" : ""]
    .filter((part) => part !== "")
    .join("+");
}

export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

export function pairs(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}

/** `KEY=VALUE:EFFECT`, as `kcore node taint` reads it. */
export function formatTaint({ key, value, effect }: NodeView["taints"][number]): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}
