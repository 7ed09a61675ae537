import type { Log } from "#api/log.ts";
import { isIdentityId } from "#pki/identity.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { ackConflict, listConflicts, takeLoser } from "./cluster/conflicts.ts";
import { encodeDot } from "./cluster/dots.ts";
import { refusalOfRemoved } from "./cluster/nodes.ts";
import type { Objects } from "./cluster/objects.ts";
import type { Vms } from "./cluster/vms.ts";
import type { Records } from "./cluster/records.ts";
import { keys } from "./cluster/registers.ts";
import type { ControllerCluster } from "./controller-cluster.ts";
import type { Health } from "./controller-health.ts";
import type { ControllerState } from "./controller-state.ts";
import type { Metrics } from "./metrics.ts";
import { Refused, revokedKey } from "./cluster/refused.ts";
import type { KnownCaller } from "./server/caller.ts";
import type { Handlers } from "./server/requests.ts";

/** The time for which a leaving controller waits for a peer's confirmation of its removal. */
const leaveGraceMs = 2_000;

export type HandlerParts = ControllerCluster &
  Pick<ControllerState, "own" | "audit"> & {
    readonly controllerId: string;
    readonly objects: Objects;
    readonly vms: Vms;
    readonly health: Health;
    readonly metrics: Metrics;
    readonly log: Log;
    readonly clock: () => number;
  };

/** The handlers of the API's methods. The author of a change is the caller's certificate, never a field of the body. */
export function handlersFor(parts: HandlerParts): Handlers {
  const {
    records,
    rejects,
    names,
    nodes,
    bundles,
    controllers,
    certificates,
    objects,
    vms,
    revocations,
    own,
    audit,
    subCa,
    updates,
    health,
    metrics,
    log,
  } = parts;
  return {
    health: () => ({}),
    ready({ caller }) {
      const whole = health.ready();
      // A node gets no list of controllers, versions and warnings, which it does not need.
      return caller.identity.role === "node" ? { ready: whole.ready } : whole;
    },
    metrics: () => metrics.text(),
    replicationStatus: () => health.replication(),

    async registerNode({ caller, body: { revocations: knownVersion, ...body } }) {
      const reply = await nodes.register(caller, body);
      const { hostname, address } = body;
      const { approval, status } = reply;
      log.info("a node registered", { node: caller.id, hostname, address, approval, status });
      return { ...reply, ...revocations.newsFor(knownVersion) };
    },
    heartbeat: ({ caller, body }) => ({
      ...nodes.heartbeat(caller, body),
      ...revocations.newsFor(body.revocations),
      ...(updates.concerns(caller.id) ? { concerned: true } : {}),
    }),
    exchangeUpdate: ({ caller, body }) => updates.exchange(caller.id, body),
    goodbye({ caller }) {
      log.info("a node's agent stopped", { node: caller.id });
      return nodes.goodbye(caller);
    },
    renewChallenge: ({ caller }) => subCa.challenge(caller),
    renew: ({ caller, body }) => subCa.renew(caller, body),

    listNodes: () => ({ nodes: nodes.list() }),
    listNodesAfter: ({ id }) => ({ nodes: nodes.page(id) }),
    getNode: ({ id }) => nodes.get(id),
    findNode: ({ id }) => nodes.find(id),
    approveNode: ({ caller, id, body }) =>
      nodes.setApproval(id, { ...omitUndefined(body), state: "approved", by: byOf(caller) }),
    rejectNode: ({ caller, id, body }) =>
      nodes.setApproval(id, { ...omitUndefined(body), state: "rejected", by: byOf(caller) }),
    setLabels: ({ id, body }) => nodes.setLabels(id, body),
    setTaints: ({ id, body }) => nodes.setTaints(id, body),
    setExpected: ({ id, body }) => nodes.setExpected(checkId(id), body),
    removeNode: ({ caller, id, body }) => nodes.remove(checkId(id), byOf(caller), body.reason ?? ""),

    listControllers: () => ({ controllers: controllers.list() }),
    registerController: ({ id, body }) => controllers.register(checkId(id), body),
    removeController({ caller, id, body }) {
      if (id === parts.controllerId)
        throw new Refused(
          409,
          "API_INVALID",
          "a controller does not remove itself",
          "ask another one, or: kcore controller leave",
        );
      return controllers.remove(id, byOf(caller), body.reason ?? "");
    },
    async leave() {
      if (controllers.list().length < 2)
        throw new Refused(409, "API_INVALID", "this is the cluster's only controller", "deploy another one first");
      await leaveCluster(records, parts.controllerId);
      return { result: "deleted", dot: "" };
    },

    listConflicts: () => listConflicts({ records, rejects }, names),
    ackConflict: ({ id }) => ackConflict(records, id),
    takeLoser: ({ caller, id }) => takeLoser({ records, rejects }, id, byOf(caller)),

    listAudit({ id }) {
      if (!/^[1-9]\d{0,14}$/.test(id))
        throw new Refused(400, "API_INVALID", `“${id.slice(0, 80)}” is no number of an entry`);
      return audit.page(Number(id));
    },

    listWrites: ({ id }) => ({
      writes: [...records.replica.writtenBy(id)]
        .toSorted((a, b) => a.ms - b.ms || a.c - b.c)
        .map(({ key, text, ms, o, s }) => ({
          key,
          at: new Date(ms).toISOString(),
          isDeleted: text === null,
          dot: encodeDot({ o, s }),
        })),
    }),

    listCertificates: () => ({ certificates: certificates.list() }),
    recordCertificate({ caller, body: { serial, ...record } }) {
      const issued = new Date(parts.clock()).toISOString();
      const { role, id, spki } = record;
      const by = byOf(caller);
      const isRemoved = role !== "operator" && records.replica.stands(keys.node(id).removed);
      if (role === "node" && isRemoved) throw refusalOfRemoved(id);
      if (certificates.isRevoked(spki)) throw revokedKey(409, { role, id }, isRemoved);
      // Recording a node's new key revokes its former keys at once: they may be stolen.
      const former =
        role === "node" && !certificates.isRecorded(spki, role, id)
          ? certificates.changesToSupersede(id, spki, by)
          : [];
      const change = certificates.changeToRecord(serial, { ...record, issued, by });
      return records.put([change, ...former]);
    },
    revoke: ({ caller, body }) => certificates.revoke({ ...body, by: byOf(caller) }),
    subCaRequest: ({ body }) => subCa.request(body.nonce),
    async subCaInstall({ caller, body }) {
      const installed = await subCa.install(body.certificate, byOf(caller));
      await controllers.publish();
      return installed;
    },
    certificateRequest: ({ body }) => own.request(body.nonce),
    async certificateInstall({ body }) {
      const installed = await own.install(body.certificate, (spki) => controllers.isKeyOf(parts.controllerId, spki));
      await controllers.publish();
      return installed;
    },

    listUpdates: () => updates.list(),
    getUpdate: ({ id }) => updates.get(id),
    planUpdate: ({ body }) => updates.plan(body),
    applyUpdate: ({ caller, id, body }) => updates.apply(id, body, byOf(caller)),
    approveUpdate: ({ caller, id, body }) => updates.approve(id, body, byOf(caller)),
    cancelUpdate: ({ caller, id, body }) => updates.request(id, "cancel", body, byOf(caller)),
    rollbackUpdate: ({ caller, id, body }) => updates.request(id, "rollback", body, byOf(caller)),
    promoteUpdate: ({ caller, id, body }) => updates.request(id, "promote", body, byOf(caller)),
    takeOverUpdate: ({ caller, id, body }) => updates.takeOver(id, body, byOf(caller)),
    removeUpdate: ({ caller, id }) => updates.remove(id, byOf(caller)),
    attendUpdate: ({ caller, id, body }) => updates.attend(id, body, byOf(caller)),
    answerHook: ({ id, body }) => updates.answerHook(id, body),

    listObjects: () => ({ objects: objects.list() }),
    getObject: ({ id }) => objects.get(id),
    putObject: ({ id, body: { value } }) => objects.put(id, value),
    removeObject: ({ id }) => objects.remove(id),
    putConfig: ({ id, body: { value } }) => records.put([{ key: keys.config(checkId(id)), value }]),

    listVms: () => ({ vms: vms.list() }),

    listBundles: async () => ({ bundles: [...(await bundles.list())] }),
    putBundle: ({ id, body: { data, ...piece } }) => bundles.put(id, { ...piece, data: Buffer.from(data, "base64") }),
  };
}

/**
 * Hands this controller's state to a peer, then removes this controller's registration. A peer that receives the removal closes
 * the stream, perhaps before it confirms. So `leaveCluster` ends at most `leaveGraceMs` after the removal was written.
 */
async function leaveCluster({ replica }: Records, controllerId: string): Promise<void> {
  const leaving = replica.leave();
  let stop = (): void => undefined;
  const removed = new Promise<void>((resolve) => {
    stop = replica.watch((changed) => {
      const { auth } = keys.controller(controllerId);
      if (changed.includes(auth) && !replica.get(auth)) setTimeout(resolve, leaveGraceMs).unref();
    });
  });
  try {
    await Promise.race([leaving, removed]);
  } finally {
    stop();
    leaving.catch(() => undefined);
  }
}

function byOf({ identity, id }: KnownCaller): string {
  return `${identity.role} ${id}`;
}

/** Checks that a certificate can carry the id; any other id would make a malformed register key. */
function checkId(id: string): string {
  if (isIdentityId(id)) return id;
  throw new Refused(400, "API_INVALID", `“${id.slice(0, 80)}” is not an id`);
}
