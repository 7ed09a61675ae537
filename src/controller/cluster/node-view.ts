import type { ConflictView, Expected, NodeStatus, NodeView, Taint } from "#api/schemas.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { Life, Liveness } from "./node-lives.ts";
import type { ParsedRegister, Records } from "./records.ts";
import { approvalOf, readReject } from "./rejects.ts";
import { keys, registerKindOf, type ApprovalRecord, type RegistrationRecord, type RejectRecord } from "./registers.ts";

/** The registers of one node, by kind, without its network and disks. */
export interface NodeParts {
  readonly id: string;
  reg?: ParsedRegister<RegistrationRecord>;
  approval?: ParsedRegister<ApprovalRecord>;
  /** The rejects that no approve has deleted, the newest last; one suffices. */
  rejects: readonly ParsedRegister<RejectRecord>[];
  expected?: ParsedRegister<Expected>;
  removed: boolean;
  /** The operators' labels; null hides a label that the node registered with. */
  readonly labels: Map<string, string | null>;
  readonly taints: Map<string, Taint>;
}

/** The registers of the nodes below a prefix (`node/` or `node/ID/`), by id; removed nodes are among them. */
export function gatherNodes(records: Records, prefix = "node/"): ReadonlyMap<string, NodeParts> {
  const nodes = new Map<string, NodeParts>();
  const gather = (key: string): void => {
    const [, id = "", , name = ""] = splitKey(key);
    let parts = nodes.get(id);
    if (!parts) nodes.set(id, (parts = emptyParts(id)));
    addRegister(records, parts, key, name);
  };
  for (const [key] of records.replica.entries(prefix)) gather(key);
  // The key alone shows that a node is rejected or removed: a newer version may have written the value.
  for (const key of records.replica.unreadable(prefix))
    if (["reject", "nodeRemoved"].includes(registerKindOf(key) ?? "")) gather(key);
  return nodes;
}

export function emptyParts(id: string): NodeParts {
  return { id, rejects: [], removed: false, labels: new Map(), taints: new Map() };
}

function addRegister(records: Records, parts: NodeParts, key: string, name: string): void {
  switch (registerKindOf(key)) {
    case "reg":
      parts.reg = records.get("reg", key) ?? parts.reg!;
      break;
    case "approval":
      parts.approval = records.get("approval", key) ?? parts.approval!;
      break;
    case "reject":
      parts.rejects = [...parts.rejects, readReject(records, key)].toSorted((a, b) => (a.at < b.at ? -1 : 1));
      break;
    case "expected":
      parts.expected = records.get("expected", key) ?? parts.expected!;
      break;
    case "nodeRemoved":
      parts.removed = true;
      break;
    case "label":
      parts.labels.set(name, records.value("label", key)?.value ?? null);
      break;
    case "taint": {
      const taint = records.value("taint", key);
      if (taint) parts.taints.set(name, taint);
      break;
    }
    default:
  }
}

/** `node/ID/label/a/b` → node, ID, label, `a/b`: label keys may hold slashes. */
function splitKey(key: string): readonly string[] {
  const [kind = "", id = "", group = "", ...rest] = key.split("/");
  return [kind, id, group, rest.join("/")];
}

export function nodeStatusOf(parts: NodeParts, life: Life): NodeStatus {
  const admission = admissionOf(parts);
  if (admission !== "approved") return admission;
  return life.isReady ? "ready" : "not-ready";
}

/** The node's host name; before it registers the name that the bastion expects, or its id. */
export function hostnameOf({ reg, expected, id }: NodeParts): string {
  return reg?.value.hostname ?? expected?.value.name ?? id;
}

export function nodeViewOf(
  parts: NodeParts,
  context: {
    readonly life: Life;
    readonly conflicts: number;
    /** All nodes with this node's name; the first one keeps the name. */
    readonly sharing: readonly string[];
  },
): NodeView {
  const { id, reg, expected } = parts;
  const { life, conflicts, sharing } = context;
  const nameConflict = nameConflictOf(id, sharing);
  const status = nodeStatusOf(parts, life);
  const registered = reg?.value;
  return {
    id,
    hostname: hostnameOf(parts),
    address: registered?.address ?? expected?.value.address ?? "",
    dc: registered?.dc ?? expected?.value.dc ?? "",
    roles: rolesOf(parts),
    labels: labelsOf(parts),
    taints: [...parts.taints.values()],
    cpu: registered?.cpu ?? 0,
    memory: registered?.memory ?? 0,
    version: registered?.version ?? "",
    approval: approvalOf(parts),
    status,
    ...(status === "not-ready" && life.reason !== undefined ? { reason: life.reason } : {}),
    registered: registered?.registeredAt ?? "",
    lastSeen: life.lastSeenAt > 0 ? new Date(life.lastSeenAt).toISOString() : (reg?.at ?? ""),
    ...omitUndefined({ usage: life.usage }),
    certificateExpires: registered?.certificateExpires ?? "",
    key: registered?.key ?? "",
    conflicts,
    ...(nameConflict ? { nameConflict } : {}),
  };
}

export function rolesOf({ reg, expected }: NodeParts): string[] {
  return [...new Set([...(reg?.value.roles ?? []), ...(expected?.value.roles ?? [])])];
}

export function labelsOf({ reg, labels }: NodeParts): Record<string, string> {
  const all = new Map(Object.entries(reg?.value.labels ?? {}));
  for (const [key, value] of labels) {
    // Earlier versions accepted this label, which is the datacenter's own field.
    if (key === "dc") continue;
    if (value === null) all.delete(key);
    else all.set(key, value);
  }
  return Object.fromEntries(all);
}

/** The time of a node's first registration, or of its expected record, ISO 8601. Of nodes that share a name the earliest keeps it. */
export function sinceOf({ reg, expected }: NodeParts): string {
  return reg?.value.registeredAt ?? expected?.at ?? "";
}

/** The number of open conflicts of each node. */
export function conflictsByNode(conflicts: readonly Pick<ConflictView, "key">[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { key } of conflicts) {
    const [kind, id = ""] = key.split("/");
    if (kind === "node") counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** The nodes in the order of their names, as a generator: many nodes take long, and the caller may pause. */
export function* listNodes(
  records: Records,
  lives: Pick<Liveness, "of">,
  names: {
    readonly all: (after?: string) => Iterable<{ readonly id: string }>;
    readonly shared: () => ReadonlyMap<string, readonly string[]>;
  },
  after?: string,
): Generator<NodeView> {
  const shared = names.shared();
  const conflicts = conflictsByNode(records.replica.conflicts());
  for (const { id } of names.all(after)) {
    const parts = partsOf(records, id);
    if (!parts || !isShown(parts)) continue;
    yield nodeViewOf(parts, {
      life: lives.of(id),
      conflicts: conflicts.get(id) ?? 0,
      sharing: shared.get(hostnameOf(parts).toLowerCase()) ?? [],
    });
  }
}

/** The decision about a node, independent of its liveness; `unknown` until the node registers, unless it is rejected. */
export type NodeAdmission = "unknown" | "pending" | "rejected" | "approved";

export function admissionOf(parts: NodeParts): NodeAdmission {
  const approval = approvalOf(parts);
  if (approval === "rejected") return "rejected";
  return parts.reg ? approval : "unknown";
}

/** Whether the node is listed: it is not removed, and more than labels and taints are known of it. */
export function isShown({ removed, reg, expected, approval, rejects }: NodeParts): boolean {
  return !removed && (reg !== undefined || expected !== undefined || approval !== undefined || rejects.length > 0);
}

/** The maximum number of nodes that a name conflict names: an answer must have room for a fleet of clones with one name. */
const namedInConflict = 8;

function nameConflictOf(id: string, sharing: readonly string[]): NodeView["nameConflict"] {
  if (sharing.length < 2) return undefined;
  const others = sharing.slice(0, namedInConflict + 1).filter((other) => other !== id);
  return { with: others.slice(0, namedInConflict), keepsName: sharing[0] === id };
}

/** One node's registers; undefined if there are none. */
export function partsOf(records: Records, id: string): NodeParts | undefined {
  return gatherNodes(records, keys.node(id).all).get(id);
}
