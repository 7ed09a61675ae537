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
  const isStale = (node: NodeRecord): boolean => clock() - Math.max(node.lastSeenAt, startedAt) > rules.staleAfterMs;

  const statusOf = (node: NodeRecord): NodeStatus => {
    if (node.approval !== "approved") return node.approval;
    return node.alive && !isStale(node) ? "ready" : "not-ready";
  };
  const standing = (node: NodeRecord): Standing => ({
    nodeId: node.id,
    approval: node.approval,
    status: statusOf(node),
    controllerId: rules.controllerId,
  });
  const view = (node: NodeRecord): NodeView => ({
    id: node.id,
    hostname: node.hostname,
    address: node.address,
    dc: node.dc,
    roles: node.roles,
    labels: node.labels,
    cpu: node.cpu,
    memory: node.memory,
    version: node.version,
    approval: node.approval,
    status: statusOf(node),
    ...reasonOf(node, isStale(node)),
    registered: new Date(node.registeredAt).toISOString(),
    lastSeen: new Date(node.lastSeenAt).toISOString(),
    certificateExpires: new Date(node.certificateExpiresAt).toISOString(),
    key: node.key,
  });

  const find = (id: string): NodeRecord => {
    const node = store.nodes.get(id);
    if (!node) throw new Refused(404, "NODE_UNKNOWN", `no node ${id} has registered`);
    return node;
  };
  const findCaller = (caller: Caller): NodeRecord => {
    const node = find(caller.id);
    if (node.approval === "rejected") throw rejected(caller.id);
    // Another key than the registered one: it has to register first, which records the key (S-10).
    if (node.key !== caller.key)
      throw new Refused(404, "NODE_UNKNOWN", `node ${caller.id} has not registered with this key`);
    return node;
  };

  return {
    async register(caller, registration) {
      const before = store.nodes.get(caller.id);
      if (before?.approval === "rejected") throw rejected(caller.id);
      const { nodeId: _, ...facts } = registration;
      const node: NodeRecord = {
        ...facts,
        id: caller.id,
        approval: before?.approval ?? (rules.requireManualApproval ? "pending" : "approved"),
        alive: true,
        registeredAt: before?.registeredAt ?? clock(),
        lastSeenAt: clock(),
        certificateExpiresAt: caller.certificateExpiresAt,
        key: caller.key,
      };
      store.nodes.set(node.id, node);
      await store.save();
      return standing(node);
    },
    async heartbeat(caller) {
      const node = findCaller(caller);
      node.lastSeenAt = clock();
      if (!node.alive) {
        node.alive = true;
        delete node.reason;
        await store.save();
      }
      return standing(node);
    },
    async goodbye(caller) {
      const node = findCaller(caller);
      node.lastSeenAt = clock();
      node.alive = false;
      node.reason = "its agent was stopped";
      await store.save();
      return standing(node);
    },
    list: () => [...store.nodes.values()].map(view),
    get: (id) => view(find(id)),
    async setApproval(id, approval) {
      const node = find(id);
      if (node.approval !== approval) {
        node.approval = approval;
        await store.save();
      }
      return view(node);
    },
    async sweep() {
      const silent = [...store.nodes.values()].filter((node) => node.alive && isStale(node));
      for (const node of silent) {
        node.alive = false;
        node.reason = silence(node);
      }
      if (silent.length > 0) await store.save();
      return silent.map(({ id }) => id);
    },
  };
}

function rejected(id: string): Refused {
  return new Refused(403, "NODE_REJECTED", `node ${id} was rejected`, "kcore node approve lets it in again");
}

function silence(node: NodeRecord): string {
  return `no heartbeat since ${new Date(node.lastSeenAt).toISOString()}`;
}

function reasonOf(node: NodeRecord, isStale: boolean): { reason?: string } {
  if (node.alive && isStale) return { reason: silence(node) };
  return node.alive || node.reason === undefined ? {} : { reason: node.reason };
}
