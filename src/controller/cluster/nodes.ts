import { Rotation } from "#api/controller-schemas.ts";
import type {
  Expected,
  NodeDetail,
  NodeStatus,
  NodeView,
  Registration,
  HeartbeatReply,
  WriteResult,
} from "#api/schemas.ts";
import type { AcceptedBodyOf } from "#api/methods.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { limitRate } from "../server/rate.ts";
import { bringBackHint, Refused } from "./refused.ts";
import type { Certificates } from "./certificates.ts";
import { viewConflict } from "./conflicts.ts";
import type { Liveness } from "./node-lives.ts";
import {
  conflictsByNode,
  emptyParts,
  isShown,
  listNodes,
  hostnameOf,
  partsOf,
  nodeStatusOf,
  nodeViewOf,
  type NodeParts,
} from "./node-view.ts";
import type { NodeNames } from "./node-names.ts";
import type { Records, RegisterChange } from "./records.ts";
import { approvalOf, type ApprovalDecision, type Rejects } from "./rejects.ts";
import { keys } from "./registers.ts";

/** A node as its connection's certificate proves it. */
export interface Caller {
  readonly id: string;
  /** SHA-256 of the node's public key. */
  readonly key: string;
  readonly serial: string;
  readonly certificateExpiresAt: number;
}

/** The nodes of the cluster: their registrations, approvals, liveness, and the operators' settings of them. */
export type Nodes = ReturnType<typeof manageNodes>;

export interface NodesOptions {
  readonly records: Records;
  readonly certificates: Certificates;
  readonly rejects: Rejects;
  readonly liveness: Liveness;
  readonly names: NodeNames;
  readonly controllerId: string;
  /** Whether an undecided node has to wait: the strictest controller's setting. */
  readonly requiresManualApproval: () => boolean;
  /** Endpoints for the nodes' fail-over. */
  readonly endpoints: () => string[];
  readonly clock: () => number;
  readonly monotonic: () => number;
}

/** The nodes that this controller asks for a renewal, as `kcore rotate certs` wishes; the others wait for a later heartbeat. */
const renewalsAsked = { perSecond: 20, burst: 20 } as const;

export function manageNodes(options: NodesOptions) {
  const { records, certificates, rejects, liveness, names, controllerId } = options;
  const { requiresManualApproval, endpoints, clock, monotonic } = options;
  const mayRenew = limitRate(renewalsAsked, monotonic);
  const rotationFor = ({ reg }: NodeParts): Pick<HeartbeatReply, "renewEndingBefore"> => {
    const rotation = Rotation.safeParse(records.value("config", keys.config("rotation")));
    if (!rotation.success) return {};
    const { nodesEndingBefore: renewEndingBefore } = rotation.data;
    const isDone = reg !== undefined && Date.parse(reg.value.certificateExpires) >= Date.parse(renewEndingBefore);
    return isDone || !mayRenew("") ? {} : { renewEndingBefore };
  };
  const replyTo = (parts: NodeParts): HeartbeatReply => ({
    nodeId: parts.id,
    approval: approvalOf(parts),
    status: nodeStatusOf(parts, liveness.of(parts.id)),
    controllerId,
    controllers: endpoints(),
    ...rotationFor(parts),
  });
  /** @throws Refused NODE_UNKNOWN, NODE_REMOVED */
  const knownParts = (id: string): NodeParts => {
    const parts = partsOf(records, id);
    if (parts?.removed === true) throw refusalOfRemoved(id);
    if (parts && isShown(parts)) return parts;
    throw new Refused(404, "NODE_UNKNOWN", `no node ${id} has registered`, "kcore get nodes");
  };
  const view = (id: string): NodeView => {
    const parts = knownParts(id);
    return nodeViewOf(parts, {
      life: liveness.of(id),
      conflicts: conflictsByNode(records.replica.conflicts()).get(id) ?? 0,
      sharing: names.sharing(hostnameOf(parts)),
    });
  };
  /** The caller's registration and approval. @throws Refused NODE_UNKNOWN unless it registered with this key (S-10) */
  const ownParts = (caller: Caller): NodeParts => {
    // Two lookups and no iteration over keys: every heartbeat calls this.
    const of = keys.node(caller.id);
    const reg = records.get("reg", of.reg);
    const approval = records.get("approval", of.approval);
    if (reg?.value.key === caller.key)
      return { ...emptyParts(caller.id), reg, rejects: rejects.of(caller.id), ...omitUndefined({ approval }) };
    throw new Refused(404, "NODE_UNKNOWN", `node ${caller.id} has not registered with this key`);
  };
  const put = async (id: string, changes: readonly RegisterChange[]): Promise<NodeView> => {
    await records.put(changes);
    return view(id);
  };

  return {
    /** Writes a node's registration, which approves an undecided node unless approval is manual. @throws Refused KEY_UNREGISTERED */
    async register(caller: Caller, { nodeId: id, net, storage, ...facts }: Registration): Promise<HeartbeatReply> {
      const parts = partsOf(records, id);
      const before = parts?.reg?.value;
      if (!certificates.isOfNode(id, caller.key, before?.key)) {
        throw new Refused(
          403,
          "KEY_UNREGISTERED",
          `no record says that the key which node ${id} shows was issued to it`,
          "deploy the node: the bastion records what it issues",
        );
      }
      const { reg, approval, net: netKey, storage: storageKey } = keys.node(id);
      const changes: RegisterChange[] = [
        {
          key: reg,
          value: {
            ...facts,
            key: caller.key,
            serial: caller.serial,
            certificateExpires: new Date(caller.certificateExpiresAt).toISOString(),
            registeredAt: before?.registeredAt ?? new Date(clock()).toISOString(),
          },
        },
      ];
      if (net) changes.push({ key: netKey, value: net });
      if (storage) changes.push({ key: storageKey, value: storage });
      // The key of this registration is the node's only valid one: all its other keys are revoked.
      changes.push(...certificates.changesToSupersede(id, caller.key, `node ${id}`));
      // Equal on every controller, so that concurrent registrations at two controllers are no conflict.
      if (!parts?.approval && !requiresManualApproval())
        changes.push({ key: approval, value: { epoch: 1, state: "approved", by: "auto" } });
      await records.put(changes);
      liveness.hear(id);
      return replyTo(ownParts(caller));
    },
    heartbeat(caller: Caller, { usage, health }: AcceptedBodyOf<"heartbeat">): HeartbeatReply {
      const parts = ownParts(caller);
      liveness.hear(caller.id, { usage, health });
      return replyTo(parts);
    },
    goodbye(caller: Caller): HeartbeatReply {
      const parts = ownParts(caller);
      liveness.stopped(caller.id);
      return replyTo(parts);
    },
    /** All listed nodes, in the order of their names. */
    list: (): Iterable<NodeView> => listNodes(records, liveness, names),
    /** A part of that list: `LIMIT@NAME/ID`, so many nodes at most, after that node; or `LIMIT@`. @throws Refused API_INVALID */
    page(id: string): Iterable<NodeView> {
      const [, limit, after] = /^([1-9]\d{0,3})@(.*)$/s.exec(id) ?? [];
      if (limit === undefined) throw new Refused(400, "API_INVALID", `“${id.slice(0, 80)}” is no page of nodes`);
      return listNodes(records, liveness, names, after).take(Number(limit));
    },
    countByStatus(): ReadonlyMap<NodeStatus, number> {
      const counts = new Map<NodeStatus, number>();
      const add = (status: NodeStatus): void => void counts.set(status, (counts.get(status) ?? 0) + 1);
      for (const { id, admission } of names.all())
        add(admission !== "approved" ? admission : liveness.of(id).isReady ? "ready" : "not-ready");
      return counts;
    },
    /** The node that a word names. @throws Refused NODE_UNKNOWN, NODE_AMBIGUOUS */
    find: (word: string): NodeView => view(names.find(word)),
    get: (id: string): NodeDetail => detailOf(knownParts(id), view(id), options),
    async setApproval(id: string, decision: ApprovalDecision): Promise<NodeView> {
      knownParts(id);
      const changes = rejects.decide(id, decision);
      if (changes.length > 0) await records.write(changes);
      return view(id);
    },
    async setLabels(id: string, { set, remove }: AcceptedBodyOf<"setLabels">): Promise<NodeView> {
      const { reg } = knownParts(id);
      if ([...Object.keys(set), ...remove].includes("dc"))
        throw new Refused(
          400,
          "API_INVALID",
          "the label dc is the node's datacenter, and no other",
          "write dc: into its roster entry, then: kcore orchestrate deploy_node NODE",
        );
      const { label } = keys.node(id);
      const reported = reg?.value.labels ?? {};
      const written = Object.entries(set).map(([name, value]) => ({ key: label(name), value: { value } }));
      // A label that the node itself reports can only be hidden.
      const hidden = remove.map((name) => ({
        key: label(name),
        value: Object.hasOwn(reported, name) ? { value: null } : undefined,
      }));
      return put(id, [...written, ...hidden]);
    },
    async setTaints(id: string, { set, remove }: AcceptedBodyOf<"setTaints">): Promise<NodeView> {
      knownParts(id);
      const { taint } = keys.node(id);
      const written = set.map((value) => ({ key: taint(value.key), value }));
      return put(id, [...written, ...remove.map((name) => ({ key: taint(name), value: undefined }))]);
    },
    async setExpected(id: string, expected: Expected): Promise<WriteResult> {
      if (records.replica.stands(keys.node(id).removed)) throw refusalOfRemoved(id);
      return records.put([{ key: keys.node(id).expected, value: expected }]);
    },
    async remove(id: string, by: string, reason: string): Promise<WriteResult> {
      const parts = partsOf(records, id);
      if (parts?.removed === true) return records.put([]);
      const removal = { at: new Date(clock()).toISOString(), by, reason };
      // The approval stays: a deletion does not win over an approval, and a removed node's approval has no effect.
      const former = [...records.replica.entries(keys.node(id).all)]
        .filter(([key]) => key !== keys.node(id).approval)
        .map(([key]) => ({ key, value: undefined }));
      const changes = [
        { key: keys.node(id).removed, value: removal },
        ...former,
        ...certificates.changesToRevoke("node", id, [parts?.reg?.value.key], removal),
      ];
      const dot = await records.write(changes);
      return { result: parts && isShown(parts) ? "deleted" : "created", dot };
    },
  };
}

function detailOf(parts: NodeParts, view: NodeView, { records, certificates }: NodesOptions): NodeDetail {
  const { id, approval, expected, rejects } = parts;
  // The author and the reason are the newest reject's, or else the approval's.
  const decision = rejects.at(-1)?.value ?? approval?.value;
  const { all, net, storage } = keys.node(id);
  const network = records.value("net", net);
  const disks = records.value("storage", storage);
  return {
    ...view,
    ...(expected ? { expected: expected.value } : {}),
    approvalEpoch: approval?.value.epoch ?? 0,
    ...omitUndefined({ approvalBy: decision?.by, approvalReason: decision?.reason }),
    ...(network ? { net: network } : {}),
    ...(disks ? { storage: disks } : {}),
    certificates: [...certificates.list({ role: "node", id })],
    registers: [...records.all(all)],
    openConflicts: records.replica
      .conflicts()
      .filter(({ key }) => key.startsWith(all))
      .map((conflict) => viewConflict(conflict, { of: () => rejects })),
  };
}

export function refusalOfRemoved(id: string): Refused {
  return new Refused(403, "NODE_REMOVED", `node ${id} was removed, and its id is never used again`, bringBackHint);
}
