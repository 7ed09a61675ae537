import type { NodeStatus, NodeView, Registration, Standing } from "#api/schemas.ts";
import { Refused } from "./refused.ts";
import type { NodeRecord, Store } from "./store.ts";

/** What the connection's certificate proves. */
export interface Caller {
  readonly id: string;
  /** SHA-256 of its public key. */
  readonly key: string;
  readonly certificateExpiresAt: number;
}

/** The nodes of the cluster: who registered, who is approved, who is alive. */
export interface Nodes {
  readonly register: (caller: Caller, registration: Registration) => Promise<Standing>;
  readonly heartbeat: (caller: Caller) => Promise<Standing>;
  readonly goodbye: (caller: Caller) => Promise<Standing>;
  readonly list: () => readonly NodeView[];
  readonly get: (id: string) => NodeView;
  readonly setApproval: (id: string, approval: "approved" | "rejected") => Promise<NodeView>;
  /** Marks the nodes that have been silent for too long; gives their ids. */
  readonly sweep: () => Promise<readonly string[]>;
}

export interface NodeRules {
  readonly controllerId: string;
  readonly requireManualApproval: boolean;
  readonly staleAfterMs: number;
}

export function watchNodes(store: Store, rules: NodeRules, clock: () => number): Nodes {
  // Silence is counted from our own start at the earliest: while we were down nobody could reach us.
  const startedAt = clock();
  // Heartbeats are soft state: they never cost a write of their own.
  const heard = new Map<string, number>();
  const lastSeenOf = (node: NodeRecord): number => heard.get(node.id) ?? node.lastSeenAt;
  const isStale = (node: NodeRecord): boolean => clock() - Math.max(lastSeenOf(node), startedAt) > rules.staleAfterMs;

  const statusOf = (node: NodeRecord): NodeStatus => {
    if (node.approval !== "approved") return node.approval;
    return node.alive && !isStale(node) ? "ready" : "not-ready";
  };
  const standing = (node: NodeRecord): Standing => ({
    nodeId: node.id,
    approval: node.approval,
    status: statusOf(node),
    controllerId: rules.controllerId,
    controllers: [],
  });
  const reasonOf = (node: NodeRecord): { reason?: string } => {
    if (node.alive && isStale(node)) return { reason: silence(lastSeenOf(node)) };
    return node.alive || node.reason === undefined ? {} : { reason: node.reason };
  };
  const view = (node: NodeRecord): NodeView => ({
    id: node.id,
    hostname: node.hostname,
    address: node.address,
    dc: node.dc,
    roles: node.roles,
    labels: node.labels,
    taints: [],
    conflicts: 0,
    cpu: node.cpu,
    memory: node.memory,
    version: node.version,
    approval: node.approval,
    status: statusOf(node),
    ...reasonOf(node),
    registered: new Date(node.registeredAt).toISOString(),
    lastSeen: new Date(lastSeenOf(node)).toISOString(),
    certificateExpires: new Date(node.certificateExpiresAt).toISOString(),
    key: node.key,
  });

  const change = (id: string, make: (before: NodeRecord | undefined) => NodeRecord): Promise<NodeRecord> =>
    store.update(id, (before) => {
      const node = make(before);
      return { ...node, lastSeenAt: lastSeenOf(node) };
    });
  const hear = (node: NodeRecord): void => {
    heard.set(node.id, clock());
  };

  return {
    async register(caller, { nodeId: id, ...facts }) {
      const node = await change(id, (before) => {
        if (before?.approval === "rejected") throw rejected(id);
        heard.set(id, clock());
        return {
          ...facts,
          id,
          approval: before?.approval ?? (rules.requireManualApproval ? "pending" : "approved"),
          alive: true,
          registeredAt: before?.registeredAt ?? clock(),
          lastSeenAt: clock(),
          certificateExpiresAt: caller.certificateExpiresAt,
          key: caller.key,
        };
      });
      return standing(node);
    },
    async heartbeat(caller) {
      const node = ownRecord(store.get(caller.id), caller);
      hear(node);
      if (node.alive) return standing(node);
      return standing(
        await change(caller.id, (before) => withoutReason({ ...ownRecord(before, caller), alive: true })),
      );
    },
    async goodbye(caller) {
      hear(ownRecord(store.get(caller.id), caller));
      const stopped = { alive: false, reason: "its agent was stopped" };
      return standing(await change(caller.id, (before) => ({ ...ownRecord(before, caller), ...stopped })));
    },
    list: () => store.list().map(view),
    get: (id) => view(known(store.get(id), id)),
    async setApproval(id, approval) {
      return view(await change(id, (before) => ({ ...known(before, id), approval })));
    },
    async sweep() {
      const silent = store.list().filter((node) => node.alive && isStale(node));
      const mark = (before: NodeRecord | undefined, id: string): NodeRecord => {
        const node = known(before, id);
        return isStale(node) ? { ...node, alive: false, reason: silence(lastSeenOf(node)) } : node;
      };
      await Promise.all(silent.map(({ id }) => change(id, (before) => mark(before, id))));
      return silent.map(({ id }) => id);
    },
  };
}

function known(node: NodeRecord | undefined, id: string): NodeRecord {
  if (node) return node;
  throw new Refused(404, "NODE_UNKNOWN", `no node ${id} has registered`);
}

/** The caller's record, if it is not rejected and has registered with this key; else it has to register first (S-10). */
function ownRecord(before: NodeRecord | undefined, caller: Caller): NodeRecord {
  const node = known(before, caller.id);
  if (node.approval === "rejected") throw rejected(caller.id);
  if (node.key === caller.key) return node;
  throw new Refused(404, "NODE_UNKNOWN", `node ${caller.id} has not registered with this key`);
}

function rejected(id: string): Refused {
  return new Refused(403, "NODE_REJECTED", `node ${id} was rejected`, "kcore node approve lets it in again");
}

function silence(since: number): string {
  return `no heartbeat since ${new Date(since).toISOString()}`;
}

function withoutReason(node: NodeRecord): NodeRecord {
  const { reason, ...rest } = node;
  return reason === undefined ? node : rest;
}
