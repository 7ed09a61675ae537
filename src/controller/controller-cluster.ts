import { join } from "node:path";
import type { Daemon } from "#api/daemon.ts";
import { describeError } from "#api/log.ts";
import { firstCertificate } from "#pki/chain.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import { verifyStatement } from "#pki/statement.ts";
import { watchCertificateEnds } from "./certificate-ends.ts";
import { watchCertificates } from "./cluster/certificates.ts";
import { manageControllers, type ClusterControllers } from "./cluster/controllers.ts";
import { watchNodeLives } from "./cluster/node-lives.ts";
import { watchNodeNames } from "./cluster/node-names.ts";
import { watchRejects } from "./cluster/rejects.ts";
import { manageNodes } from "./cluster/nodes.ts";
import { openSubCa } from "./cluster/own-sub-ca.ts";
import { openRecords, type Records } from "./cluster/records.ts";
import { keys } from "./cluster/registers.ts";
import { Refused } from "./cluster/refused.ts";
import { watchRevocations } from "./cluster/revocations.ts";
import { keyFolderOf } from "./controller-config.ts";
import { monotonic, timers, type ControllerState } from "./controller-state.ts";
import { indexUpdates } from "./updates/update-records.ts";
import { isBundleNeeded } from "./updates/bundle-fetcher.ts";
import { manageUpdates } from "./updates/updates.ts";
import { openBundleStore } from "./updates/bundles.ts";
import { foundCluster, whyEmpty } from "./found-cluster.ts";

/** A controller's view of its cluster (nodes, controllers, certificates, updates), and its services for the cluster. */
export type ControllerCluster = ReturnType<typeof openControllerCluster>;

export function openControllerCluster(
  state: ControllerState,
  { log, clock, random }: Pick<Daemon, "log" | "clock" | "random">,
) {
  const { config, own, self, network, replica, audit } = state;
  const { controllerId, dc, cluster, version } = self;
  const records = openRecords(replica);
  const certificates = watchCertificates(records, clock);
  const revocations = watchRevocations(records, certificates);
  const staleAfterMs = config.staleAfterSecs * 1000;
  const liveness = watchNodeLives({ replica, controllerId, staleAfterMs, clock, monotonic });
  const rejects = watchRejects(records);
  const names = watchNodeNames(records);
  const subCa = openSubCa({
    cluster,
    controllerId,
    rootPem: () => own.credentials().ca,
    files: config.subCa,
    folder: keyFolderOf(config),
    records,
    certificates,
    log,
    clock,
  });
  let address = config.replication.advertise ?? config.bootstrap?.controller.address ?? "";
  const controllers: ClusterControllers = manageControllers({
    records,
    certificates,
    controllerId,
    dc,
    version,
    requireManualApproval: config.requireManualApproval,
    address: () => address || (controllers.addressOf(controllerId) ?? ""),
    own: own.credentials,
    subCa: subCa.published,
    clock,
    lastContact: network.lastContact,
  });
  const { requiresManualApproval, endpoints } = controllers;
  const nodes = manageNodes({
    records,
    certificates,
    rejects,
    liveness,
    names,
    controllerId,
    requiresManualApproval,
    endpoints,
    clock,
    monotonic,
  });

  const index = indexUpdates(records);
  const bundles = openBundleStore({
    folder: join(config.dbPath, "bundles"),
    isNeeded: (sha256) => isBundleNeeded(index, sha256),
  });
  const updates = manageUpdates({
    verify: (signed, now) => verifyStatement(signed, { rootPem: own.credentials().ca, cluster, now }),
    index,
    bundles,
    credentials: own.credentials,
    random,
    monotonic,
    timers,
    controllerId,
    records,
    liveness,
    controllers,
    names,
    members: controllers.ids,
    endpointOf: controllers.addressOf,
    isHeard: (id) => controllers.peers().some((peer) => peer.controllerId === id && peer.state === "connected"),
    audit,
    log,
    clock,
  });
  const certificateEnds = watchCertificateEnds({ own, subCa, replica, clock });
  const member = watchMembership(state, { records, controllers, address: () => address, log, clock });
  return {
    records,
    certificates,
    rejects,
    revocations,
    liveness,
    names,
    subCa,
    certificateEnds,
    controllers,
    nodes,
    updates,
    bundles,
    ...member,
    /**
     * Whether a controller may replicate with this key: a member with its own key. While this controller joins, it knows no
     * members, and accepts any key that is not revoked.
     */
    mayReplicate: (id: string, key: string): boolean =>
      !certificates.isRevoked(key) &&
      (controllers.isMember(id) ? controllers.isKeyOf(id, key) : !member.knowsMembers()),
    /** Publishes this controller's registers once it is a member, and with each new certificate. `listensAt`: its address, unless the configuration has one. */
    publish(listensAt = ""): void {
      address ||= listensAt;
      member.publish();
    },
    async stop(): Promise<void> {
      member.stop();
      await updates.stop();
      liveness.stop();
      names.stop();
      rejects.stop();
      revocations.stop();
      certificates.stop();
    },
  };
}

/** This controller's own membership: whether it is ready, empty or removed, and the publication of its registers. */
function watchMembership(
  { config, own, self, replica }: ControllerState,
  {
    records,
    controllers,
    address,
    log,
    clock,
  }: Pick<Daemon, "log" | "clock"> & {
    readonly records: Records;
    readonly controllers: ClusterControllers;
    readonly address: () => string;
  },
) {
  const { controllerId, dc } = self;
  const isMember = (): boolean => controllers.isMember(controllerId);
  // Once caught up, a controller stays ready while it is a member.
  let wasReady = false;
  const hasCaughtUp = (): boolean => {
    const { ready, catchingUp } = replica.status();
    return ready && !catchingUp;
  };
  const isActiveMember = (): boolean => {
    if (!wasReady && hasCaughtUp()) {
      wasReady = true;
      if (isEmptinessRaised) updateEmptinessAlarm();
    }
    return wasReady && isMember();
  };
  const isReady = (): boolean => isActiveMember() && replica.turnedOut() === undefined;
  let isRemovalLogged = false;
  /** The certificate at the last publication. */
  let published: string | undefined;
  const emptiness = (): string | undefined => {
    const { ready, registers } = replica.status();
    // A restored or repaired controller holds registers: it has to catch up, but it is not empty.
    return wasReady || ready || registers > 0 ? undefined : whyEmpty(config);
  };
  let isEmptinessRaised = false;
  const updateEmptinessAlarm = (): void => {
    const why = emptiness();
    isEmptinessRaised = why !== undefined;
    replica.alarm(why !== undefined, "EMPTY_STATE", controllerId, `this controller does not serve: ${why}`);
  };
  let next: NodeJS.Timeout | undefined;
  let stopWatching = (): void => undefined;
  const publish = (): void => {
    clearTimeout(next);
    if (isEmptinessRaised) updateEmptinessAlarm();
    const present = own.credentials().cert;
    if (published === present) return;
    const again = (ms: number): void => void (next = setTimeout(publish, ms).unref());
    // A joining controller polls; a ready one is notified when it becomes a member.
    if (!hasCaughtUp()) return again(joiningMs);
    if (!isActiveMember()) return;
    if (replica.isUnheard()) return again(retryMs);
    published = present;
    controllers.publish().catch((error: unknown) => {
      published = undefined;
      log.warn("this controller's own record for the others could not be written", describeError(error));
      again(retryMs);
    });
  };
  return {
    /** Whether this controller has caught up, is a member, and no member revoked its key; called with every request. */
    isReady,
    /** Whether this controller can tell members from strangers: it is ready, or it was restored and knows the former members. */
    knowsMembers: (): boolean => isActiveMember() || (isMember() && replica.status().catchingUp),
    /** The reason why this controller, without a state, does not serve; undefined with a state, or with sponsors to join. */
    emptiness,
    /**
     * Makes the founder of a cluster its first member, once. The state of a controller that left or was removed refuses
     * that write, so no second cluster is founded.
     */
    async foundIfNeeded(): Promise<void> {
      updateEmptinessAlarm();
      if (isMember() || !replica.status().ready) return;
      const key = keyFingerprint(publicDer(firstCertificate(own.credentials().cert).publicKey));
      try {
        if (config.replication.join.length === 0)
          await foundCluster({
            records,
            bootstrap: config.bootstrap,
            controllerId,
            dc,
            key,
            address: address(),
            clock,
          });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
      }
      if (isMember() || isRemovalLogged) return;
      isRemovalLogged = true;
      log.error("this controller is no member of its cluster any more; it answers no request", {
        hint: "kcore controller join --fresh, then deploy it again; or: systemctl disable --now kcore-controller",
      });
    },
    publish(): void {
      stopWatching();
      const { auth } = keys.controller(controllerId);
      stopWatching = replica.watch((changed) => {
        if (changed.includes(auth)) publish();
      });
      own.watch(publish);
      publish();
    },
    stop(): void {
      stopWatching();
      clearTimeout(next);
    },
  };
}

/** The interval at which a joining controller checks whether it may publish its registers. */
const joiningMs = 250;
/** The pause before the next attempt to publish them. */
const retryMs = 1_000;
