import {
  Rotation,
  type Expected,
  type NodeDetail,
  type NodeStatus,
  type NodeView,
  type Registration,
  type Standing,
  type Taint,
  type Written,
} from "#api/schemas.ts";
import type { AcceptedBodyOf } from "#api/methods.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { comesBack, Refused } from "./refused.ts";
import type { Certificates } from "./certificates.ts";
import { viewConflict } from "./conflicts.ts";
import type { Liveness } from "./node-lives.ts";
import {
  conflictsByNode,
  emptyParts,
  isShown,
  listNodes,
  nameOf,
  partsOf,
  statusOf,
  viewOf,
  type NodeParts,
} from "./node-view.ts";
import type { NodeNames } from "./node-names.ts";
import type { Records, Wish } from "./records.ts";
import { approvalOf, type Rejects } from "./rejects.ts";
import { keys } from "./registers.ts";

/** The caller, as the connection's certificate proves it. */
export interface Caller {
  readonly id: string;
  /** SHA-256 of its public key. */
  readonly key: string;
  readonly serial: string;
  readonly certificateExpiresAt: number;
}

/** The nodes of the cluster: their registrations, approvals, liveness, and the operators' settings of them. */
export interface Nodes {
  readonly register: (caller: Caller, registration: Registration) => Promise<Standing>;
  readonly heartbeat: (caller: Caller, body: AcceptedBodyOf<"heartbeat">) => Standing;
  readonly goodbye: (caller: Caller) => Standing;
  /** All that are not removed, by name. */
  readonly list: () => Iterable<NodeView>;
  readonly countByStatus: () => ReadonlyMap<NodeStatus, number>;
  readonly get: (id: string) => NodeDetail;
  /** The node that a word names. @throws Refused NODE_UNKNOWN, NODE_AMBIGUOUS */
  readonly find: (word: string) => NodeView;
  readonly setApproval: (
    id: string,
    change: {
      readonly state: "approved" | "rejected";
      readonly by: string;
      readonly reason?: string;
      readonly ifMatch?: string;
    },
  ) => Promise<NodeView>;
  readonly setLabels: (id: string, change: AcceptedBodyOf<"setLabels">) => Promise<NodeView>;
  readonly setTaints: (id: string, change: AcceptedBodyOf<"setTaints">) => Promise<NodeView>;
  readonly setRoles: (id: string, change: AcceptedBodyOf<"setRoles">) => Promise<NodeView>;
  readonly setExpected: (id: string, expected: Expected, ifMatch?: string) => Promise<Written>;
  readonly remove: (id: string, by: string, reason: string) => Promise<Written>;
}

export interface NodesOptions {
  readonly records: Records;
  readonly certificates: Certificates;
  readonly rejects: Rejects;
  readonly liveness: Liveness;
  readonly names: NodeNames;
  readonly controllerId: string;
  /** Whether an undecided node has to wait: the strictest controller's setting. */
  readonly isManual: () => boolean;
  /** Endpoints for the nodes' fail-over. */
  readonly endpoints: () => string[];
  readonly clock: () => number;
}

export function manageNodes(options: NodesOptions): Nodes {
  const { records, certificates, rejects, liveness, names, controllerId, isManual, endpoints, clock } = options;
  const standing = (parts: NodeParts): Standing => ({
    nodeId: parts.id,
    approval: approvalOf(parts),
    status: statusOf(parts, liveness.of(parts.id)),
    controllerId,
    controllers: endpoints(),
    ...rotationOf(records),
  });
  const known = (id: string): NodeParts => {
    const parts = partsOf(records, id);
    if (parts?.removed === true) throw removed(id);
    if (parts && isShown(parts)) return parts;
    throw new Refused(404, "NODE_UNKNOWN", `no node ${id} has registered`, "kcore get nodes");
  };
  const view = (id: string): NodeView => {
    const parts = known(id);
    return viewOf(parts, {
      life: liveness.of(id),
      conflicts: conflictsByNode(records.replica.conflicts()).get(id) ?? 0,
      sharing: names.sharing(nameOf(parts)),
    });
  };
  /** The caller's own registers, if it may still use the key that it registered with (S-10). */
  const own = (caller: Caller): NodeParts => {
    // Two lookups without a walk over keys, because every heartbeat comes here.
    const of = keys.node(caller.id);
    const reg = records.get("reg", of.reg);
    const approval = records.get("approval", of.approval);
    if (reg?.value.key === caller.key)
      return { ...emptyParts(caller.id), reg, rejects: rejects.of(caller.id), ...omitUndefined({ approval }) };
    throw new Refused(404, "NODE_UNKNOWN", `node ${caller.id} has not registered with this key`);
  };

  return {
    async register(caller, { nodeId: id, net, storage, ...facts }) {
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
      const wishes: Wish[] = [
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
      if (net) wishes.push({ key: netKey, value: net });
      if (storage) wishes.push({ key: storageKey, value: storage });
      // The node's new key is the only valid one: former and unused keys are worthless now.
      wishes.push(...certificates.wishesToSupersede(id, caller.key, `node ${id}`));
      // The same text from every controller, so that two registrations at once are no conflict.
      if (!parts?.approval && !isManual())
        wishes.push({ key: approval, value: { epoch: 1, state: "approved", by: "auto" } });
      await records.put(wishes);
      liveness.hear(id);
      return standing(own(caller));
    },
    heartbeat(caller, { usage, health }) {
      const parts = own(caller);
      liveness.hear(caller.id, { usage, health });
      return standing(parts);
    },
    goodbye(caller) {
      const parts = own(caller);
      liveness.bury(caller.id);
      return standing(parts);
    },
    list: () => listNodes(records, liveness, names),
    countByStatus() {
      const counts = new Map<NodeStatus, number>();
      const add = (status: NodeStatus): void => void counts.set(status, (counts.get(status) ?? 0) + 1);
      for (const { id, standing: stands } of names.all())
        add(stands !== "approved" ? stands : liveness.of(id).isReady ? "ready" : "not-ready");
      return counts;
    },
    find: (word) => view(names.find(word)),
    get: (id) => detailOf(known(id), view(id), options),
    async setApproval(id, { state, by, reason, ifMatch }) {
      known(id);
      const wishes = rejects.decide(id, { state, by, ...omitUndefined({ reason }) });
      if (wishes.length > 0) await records.write(wishes, ifMatch);
      return view(id);
    },
    async setLabels(id, { set, remove, ifMatch }) {
      const { reg } = known(id);
      if ([...Object.keys(set), ...remove].includes("dc"))
        throw new Refused(
          400,
          "API_INVALID",
          "the label dc is the node's datacenter, and no other",
          "write dc: into its roster entry, then: kcore orchestrate deploy_node NODE",
        );
      const { label } = keys.node(id);
      const told = reg?.value.labels ?? {};
      await records.put(
        [
          ...Object.entries(set).map(([name, value]) => ({ key: label(name), value: { value } })),
          // A label that the node itself reports can only be hidden.
          ...remove.map((name) => ({
            key: label(name),
            value: Object.hasOwn(told, name) ? { value: null } : undefined,
          })),
        ],
        ifMatch,
      );
      return view(id);
    },
    async setTaints(id, { set, remove, ifMatch }) {
      known(id);
      const { taint } = keys.node(id);
      await records.put(
        [
          ...set.map((value: Taint) => ({ key: taint(value.key), value })),
          ...remove.map((name) => ({ key: taint(name), value: undefined })),
        ],
        ifMatch,
      );
      return view(id);
    },
    async setRoles(id, { add, remove, ifMatch }) {
      known(id);
      const { role } = keys.node(id);
      await records.put(
        [
          ...add.map((name) => ({ key: role(name), value: { present: true } })),
          ...remove.map((name) => ({ key: role(name), value: { present: false } })),
        ],
        ifMatch,
      );
      return view(id);
    },
    async setExpected(id, expected, ifMatch) {
      if (records.replica.stands(keys.node(id).removed)) throw removed(id);
      return records.put([{ key: keys.node(id).expected, value: expected }], ifMatch);
    },
    async remove(id, by, reason) {
      const parts = partsOf(records, id);
      if (parts?.removed === true) return records.put([]);
      const gone = { at: new Date(clock()).toISOString(), by, reason };
      // All but the approval, which only ever rises, and means nothing for a removed node.
      const former = [...records.replica.entries(keys.node(id).all)]
        .filter(([key]) => key !== keys.node(id).approval)
        .map(([key]) => ({ key, value: undefined }));
      const wishes = [
        { key: keys.node(id).removed, value: gone },
        ...former,
        ...certificates.wishesToRevoke("node", id, [parts?.reg?.value.key], gone),
      ];
      const dot = await records.write(wishes);
      return { result: parts && isShown(parts) ? "deleted" : "created", dot };
    },
  };
}

/** The last request of `kcore rotate certs`. */
function rotationOf(records: Records): Pick<Standing, "renewEndingBefore"> {
  const rotation = Rotation.safeParse(records.value("config", keys.config("rotation")));
  return rotation.success ? { renewEndingBefore: rotation.data.nodesEndingBefore } : {};
}

function detailOf(parts: NodeParts, view: NodeView, { records, certificates }: NodesOptions): NodeDetail {
  const { id, approval, expected, rejects } = parts;
  // The newest reject has the decision's author, if there is one.
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

export function removed(id: string): Refused {
  return new Refused(403, "NODE_REMOVED", `node ${id} was removed, and its id is never used again`, comesBack);
}
