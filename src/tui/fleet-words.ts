/** Words for nodes, certificates, conflicts, labels and taints: the same in tables, descriptions and the dashboard. */

const statusWords = {
  pending: "Pending",
  ready: "Ready",
  "not-ready": "NotReady",
  rejected: "Rejected",
  unknown: "Unknown",
} as const;

export type NodeStatusName = keyof typeof statusWords;

export function statusWord({ status }: { readonly status: NodeStatusName }): string {
  return statusWords[status];
}

/** The approval of a node; `-` for a node that has never registered. */
export function approvalWord({
  approval,
  status,
}: {
  readonly approval: string;
  readonly status: NodeStatusName;
}): string {
  return status === "unknown" ? "-" : approval;
}

/** A certificate's status; “in use” marks the certificate that its holder presents. */
export function certificateWord({ status, current }: { readonly status: string; readonly current: boolean }): string {
  return current ? `${status}, in use` : status;
}

/** A value of a conflict as JSON; `(deleted)` for a deletion. */
export function valueText(value: unknown): string {
  return value === null || value === undefined ? "(deleted)" : JSON.stringify(value);
}

/** Labels as `key=value`, sorted by key. */
export function labelPairs(labels: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(labels)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`);
}

/** `KEY=VALUE:EFFECT`, as `kcore node taint` reads it. */
export function taintText({ key, value, effect }: Readonly<Record<"key" | "value" | "effect", string>>): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}
