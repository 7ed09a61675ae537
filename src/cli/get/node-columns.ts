import { formatBinary, since, until } from "#base/units.ts";
import type { NodeView } from "#api/schemas.ts";
import { approvalWord, labelPairs, statusWord, taintText } from "#tui/fleet-labels.ts";
import type { Column } from "../terminal/columns.ts";

export const nodeColumns: readonly Column<NodeView>[] = [
  { title: "NAME", cell: ({ hostname }) => hostname },
  { title: "STATUS", cell: statusWord },
  { title: "APPROVAL", cell: approvalWord },
  { title: "ROLES", cell: ({ roles }) => roles.join(",") },
  { title: "DC", cell: ({ dc }) => dc },
  { title: "ADDRESS", cell: ({ address }) => address },
  { title: "VERSION", cell: ({ version }) => version },
  { title: "AGE", cell: ({ registered }, now) => since(registered, now) },
  { title: "SEEN", cell: ({ lastSeen }, now) => since(lastSeen, now) },
  { title: "CERT-EXPIRY", cell: ({ certificateExpires }, now) => until(certificateExpires, now) },
  { title: "CONFLICTS", cell: conflictsOf },
  { title: "CPU", wide: true, cell: ({ cpu }) => (cpu === 0 ? "" : String(cpu)) },
  { title: "MEMORY", wide: true, cell: ({ memory }) => (memory === 0 ? "" : formatBinary(memory)) },
  { title: "LABELS", wide: true, cell: ({ labels }) => labelPairs(labels).join(",") },
  { title: "TAINTS", wide: true, cell: ({ taints }) => taints.map(taintText).join(",") },
  { title: "ID", wide: true, cell: ({ id }) => id },
  { title: "REASON", wide: true, cell: ({ reason = "" }) => reason },
];

function conflictsOf({ conflicts, nameConflict }: NodeView): string {
  return [conflicts > 0 || !nameConflict ? String(conflicts) : "", nameConflict ? "name" : ""]
    .filter((part) => part !== "")
    .join("+");
}
