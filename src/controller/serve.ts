import { once } from "node:events";
import type { Server } from "node:https";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { LoadedCredentials } from "#api/credentials.ts";
import { readDaemonConfig } from "#api/daemon-config.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { describeError } from "#api/log.ts";
import type { Log } from "#api/log.ts";
import type { PeerView } from "#api/schemas.ts";
import type { Supervisor } from "#api/systemd.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import { found } from "./found.ts";
import { watchCertificates } from "./cluster/certificates.ts";
import { manageControllers } from "./cluster/controllers.ts";
import { watchLiveness } from "./cluster/node-lives.ts";
import { manageNodes } from "./cluster/nodes.ts";
import { manageObjects } from "./cluster/objects.ts";
import { readRecords } from "./cluster/records.ts";
import { isKnown, isSecret, keys, mergeKindOf } from "./cluster/registers.ts";
import { watchRevocations } from "./cluster/revocations.ts";
import { openOwnCertificate } from "./cluster/own-certificate.ts";
import { openSubCa } from "./cluster/own-sub-ca.ts";
import { ControllerConfig } from "./controller-config.ts";
import { handlersFor } from "./handlers.ts";
import { watchHealth } from "./controller-health.ts";
import { createMetrics } from "./metrics.ts";
import { createReplica } from "./replica/create-replica.ts";
import { Refused } from "./cluster/refused.ts";
import { checkAccess } from "./server/access.ts";
import type { KnownCaller } from "./server/caller.ts";
import { createApiServer } from "./server/server.ts";
import { openStore } from "./store/store.ts";
import { openNetwork } from "./transport/network.ts";
import { openWatches } from "./watch.ts";

export interface ServeOptions {
  readonly configFile: string;
  /** Reads the configuration's YAML. */
  readonly parse: (text: string) => unknown;
  /** Stops the controller: requests under way are answered first. */
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly clock: () => number;
  readonly version: string;
  /** Tells systemd that requests are accepted, and that the event loop lives. */
  readonly supervisor?: Supervisor;
  /** How many files this process may have open; absent: enough. */
  readonly openFiles?: number;
  /** Told once, with the port, when requests are accepted. */
  readonly onListening?: (port: number) => void;
  /** Ends the process when the disk cannot be trusted any more; for tests. */
  readonly onBroken?: (error: KcoreError) => void;
}

/**
 * Runs a controller until `signal`; resolves when it has stopped in good order.
 * @throws KcoreError when it cannot start: CONFIG_INVALID, FILE_UNREADABLE, PKI_IDENTITY, STORE_LOCKED, STORE_CORRUPT, LISTEN_FAILED
 */
export async function serveController(options: ServeOptions): Promise<void> {
  const { configFile, parse, signal, log, clock, version } = options;
  const { config, ignored } = await readDaemonConfig({ file: configFile, schema: ControllerConfig, parse });
  if (ignored.length > 0) log.warn("configuration keys without a meaning here", { ignored });
  let published = false;
  const own = await openOwnCertificate({
    files: config.tls,
    folder: join(config.dbPath, "pki"),
    log,
    clock,
    onChange: ({ ca, cert, key }) => {
      api.use({ ca, cert, key });
      published = false;
    },
  });
  const { cluster, id: controllerId } = own.credentials().identity;
  checkConfig(config, configFile, own.credentials());
  const dc = config.replication.dcId;
  const monotonic = (): number => performance.now();
  const broken = new AbortController();
  const store = await openStore({
    folder: config.dbPath,
    onBroken: (error) => {
      // After EIO nobody knows what is on the disk: nothing may be acknowledged any more (fsyncgate).
      log.error("the disk failed; the controller ends", { error: error.message });
      if (options.onBroken) options.onBroken(error);
      else process.exit(exitCodes.failed);
      broken.abort();
    },
    onNote: (note) => log.warn(note),
  });
  for (const note of store.notes) log.warn(note);
  const isMember = (): boolean => replica.get(keys.controller(controllerId).auth) !== undefined;
  // Asked with every request; a controller that is ready stays so while it is a member.
  let wasReady = false;
  const isReady = (): boolean => (wasReady ||= replica.status().ready) && isMember();
  const isFounder = config.replication.join.length === 0;
  // While joining not all members are known, but whoever is must show his key.
  const mayReplicate = (id: string, key: string): boolean =>
    !certificates.isRevoked(key) && (controllers.isMember(id) ? controllers.isKeyOf(id, key) : !isReady());
  const keyAt = sponsorKeys(config);
  const network = openNetwork({
    controllerId,
    cluster,
    credentials: own.credentials,
    addressOf: (id) => controllers.addressOf(id),
    keyAt,
    isWelcome: mayReplicate,
    log,
    clock,
    onBytes: (direction, bytes) => metrics.bytes(direction, bytes),
  });
  const replica = createReplica({
    id: controllerId,
    cluster,
    clock: { wall: clock, mono: monotonic },
    rng: Math.random,
    timers: {
      after(ms, run) {
        // The server keeps the process; one that has stopped does not wait for what the replica had planned.
        const timer = setTimeout(run, ms).unref();
        return () => clearTimeout(timer);
      },
      soon: (run) => void setImmediate(run),
    },
    net: network.net,
    journal: store,
    recovered: store.recovered,
    start: isFounder ? "found" : "join",
    join: config.replication.join,
    mergeKindOf,
    isKnown,
    isSecret,
    log: (level, message, fields) => log[level](message, fields),
  });
  const unpinned = config.replication.join.filter((address) => keyAt(address) === undefined);
  if (unpinned.length > 0 && !isReady())
    log.warn("who answers there is believed on the CA's word alone: joinKeys does not name the key", {
      join: unpinned,
    });
  store.attach(async () => replica.snapshot());
  network.attach(replica);
  const records = readRecords(replica);
  const certificates = watchCertificates(records, clock);
  const revocations = watchRevocations(records, certificates);
  const liveness = watchLiveness({
    replica,
    controllerId,
    staleAfterMs: config.staleAfterSecs * 1000,
    clock,
    monotonic,
  });
  const subCa = openSubCa({
    cluster,
    controllerId,
    rootPem: () => own.credentials().ca,
    files: config.subCa,
    folder: join(config.dbPath, "pki"),
    records,
    certificates,
    log,
    clock,
  });
  let address = config.replication.advertise ?? config.bootstrap?.controller.address ?? "";
  const controllers = manageControllers({
    records,
    certificates,
    controllerId,
    dc,
    version,
    requireManualApproval: config.requireManualApproval,
    address: () => address || (controllers.addressOf(controllerId) ?? ""),
    certificateExpires: () => own.credentials().notAfter,
    subCa: subCa.published,
    clock,
    lastContact: network.lastContact,
  });
  const nodes = manageNodes({
    records,
    certificates,
    liveness,
    controllerId,
    isManual: controllers.isManual,
    endpoints: controllers.endpoints,
    clock,
  });
  const self = { controllerId, dc, cluster, version };
  const storeProblem = (): string | undefined => store.problem()?.message;
  const health = watchHealth({ records, certificates, controllers, nodes, self, storeProblem });
  const watches = openWatches(replica, log);
  const secondsLeft = (date: Date): number => (date.getTime() - clock()) / 1000;
  const metrics = createMetrics({
    ...self,
    status: replica.status,
    conflicts: () => replica.conflicts().length,
    connections: () => connections.count(),
    nodes: () =>
      Map.groupBy(nodes.list(), ({ status }) => status)
        .entries()
        .reduce((counts, [status, list]) => counts.set(status, list.length), new Map<string, number>()),
    certificates: () => {
      const sub = subCa.published();
      const left = new Map([["controller", secondsLeft(own.credentials().notAfter)]]);
      return sub ? left.set("sub-ca", secondsLeft(new Date(sub.notAfter))) : left;
    },
  });
  const access = checkAccess({ records, certificates, isReady });
  const api = createApiServer({
    credentials: own.credentials(),
    cluster,
    handlers: handlersFor({
      controllerId,
      records,
      nodes,
      controllers,
      certificates,
      objects: manageObjects(records),
      revocations,
      own,
      subCa,
      health,
      metrics,
      log,
      clock,
    }),
    streams: {
      watch: ({ body }, response) => watches.open(body, response),
      async backup(_call, response) {
        const snapshot = await store.backup();
        response.writeHead(200, { "content-type": "application/octet-stream" });
        await pipeline(snapshot, response);
      },
      replicate: (caller, socket, head) => network.accept(caller.id, caller.key, socket, head),
    },
    access,
    log,
    clock,
    monotonic,
    ...(options.openFiles !== undefined && { openFiles: options.openFiles }),
    onAnswer: metrics.answered,
  });
  const { server, connections } = api;
  server.on("tlsClientError", () => metrics.refusedConnection());

  const isWelcome = (caller: KnownCaller): boolean => {
    if (caller.certificateExpiresAt <= clock()) return false;
    const refusal = access.refusalOf(caller);
    return refusal === undefined;
  };
  /** Cuts whoever lost the right to be connected (S-11); requests are checked by themselves. */
  const cut = (): void => {
    for (const { identity, id } of connections.cut(isWelcome))
      log.warn("a connection was cut: its key is not welcome any more", { role: identity.role, id });
    network.cut(mayReplicate);
  };
  const unwatch = replica.watch((changed) => {
    if (changed.some((key) => /^(?:revoked\/|node\/[^/]+\/(?:approval|removed)$|controller\/[^/]+\/auth$)/.test(key)))
      // After this turn, so that an operator who revokes his own key still gets the answer.
      setTimeout(cut, 20).unref();
  });

  const peersChanged = watchPeers();
  const every: NodeJS.Timeout[] = [];
  const repeat = (ms: number, work: () => void): void => {
    every.push(setInterval(work, ms));
  };
  try {
    await subCa.load();
    let isOutTold = false;
    /** Who left a cluster, or was removed from it, is refused by its own state: it founds no second one. */
    const foundIfNeeded = async (): Promise<void> => {
      if (isMember() || !replica.status().ready) return;
      try {
        const key = keyOf(own.credentials());
        if (isFounder) await found({ records, bootstrap: config.bootstrap, controllerId, dc, key, address, clock });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
      }
      if (isMember() || isOutTold) return;
      isOutTold = true;
      log.error("this controller is no member of its cluster any more; it answers nobody", {
        hint: "kcore controller join --fresh, then deploy it again; or: systemctl disable --now kcore-controller",
      });
    };
    await foundIfNeeded();
    await listen(server, config.listenAddr);
    const { port } = server.address() as { port: number };
    if (address === "") address = ownAddress(config.listenAddr, port);
    log.info("the controller listens", { address: config.listenAddr, port, ...self, nodes: nodes.list().length });
    options.supervisor?.ready();
    options.onListening?.(port);
    const publish = (): void => {
      if (!isReady() || published) return;
      published = true;
      controllers.publish().catch((error: unknown) => {
        published = false;
        log.warn("what the others should know of this controller could not be written", describeError(error));
      });
    };
    publish();
    repeat(1_000, cut);
    repeat(250, publish);
    repeat(config.staleCheckIntervalSecs * 1000, () => {
      for (const node of liveness.changed()) {
        const { isReady: lives, reason } = liveness.of(node);
        if (!lives) log.warn("a node is not ready", { node, reason });
        watches.tell("nodes", node);
      }
      for (const peer of peersChanged(controllers.peers())) watches.tell("controllers", peer);
    });
    repeat(Math.min(config.staleCheckIntervalSecs, 30) * 1000, () => {
      void own.reload();
      foundIfNeeded().catch((error: unknown) => log.error("membership could not be looked at", describeError(error)));
      subCa.load().catch((error: unknown) => log.warn("the sub-CA could not be read again", describeError(error)));
    });
    await aborted(AbortSignal.any([signal, broken.signal]));
    options.supervisor?.stopping();
    log.info("the controller stops");
  } finally {
    for (const timer of every) clearInterval(timer);
    unwatch();
    watches.close();
    replica.stop();
    network.close();
    liveness.stop();
    revocations.stop();
    certificates.stop();
    await api.close();
    await store.close();
  }
}

/** Gives the peers whose state is another than at the last look. */
function watchPeers(): (peers: readonly PeerView[]) => readonly string[] {
  const shown = new Map<string, string>();
  return (peers) =>
    peers.flatMap(({ controllerId, state, inStep }) => {
      const now = `${state} ${inStep}`;
      const isNews = shown.get(controllerId) !== now;
      shown.set(controllerId, now);
      return isNews ? [controllerId] : [];
    });
}

function keyOf({ cert }: LoadedCredentials): string {
  return keyFingerprint(publicDer(firstCertificate(cert).publicKey));
}

function checkConfig(config: ControllerConfig, configFile: string, { identity }: LoadedCredentials): void {
  const configured = config.replication.controllerId;
  if (configured !== undefined && configured !== identity.id) {
    throw new KcoreError({
      code: "CONFIG_INVALID",
      message: `${configFile}: replication.controllerId is ${configured}, but ${config.tls.certFile} is the certificate of ${identity.id}`,
    });
  }
  const { bootstrap } = config;
  if (bootstrap && bootstrap.cluster !== identity.cluster) {
    throw new KcoreError({
      code: "CONFIG_INVALID",
      message: `${configFile}: bootstrap.cluster is “${bootstrap.cluster}”, but the certificate is of “${identity.cluster}”`,
    });
  }
}

/** The key of the sponsor at an address, however the address is written. */
function sponsorKeys({ replication }: ControllerConfig): (address: string) => string | undefined {
  const named = Object.entries(replication.joinKeys).map(([address, key]) => [sameEndpoint(address), key] as const);
  const keysAt = new Map(named);
  return (address) => keysAt.get(sameEndpoint(address));
}

function sameEndpoint(address: string): string {
  return formatEndpoint(parseEndpoint(address)).toLowerCase();
}

/** Where others reach us, if the address we listen on says so; an unspecified one does not. */
function ownAddress(listenAddr: string, port: number): string {
  const host = listenAddr.slice(0, listenAddr.lastIndexOf(":")).replaceAll(/[[\]]/g, "");
  return ["0.0.0.0", "::", ""].includes(host) ? "" : formatEndpoint({ host, port });
}

async function listen(server: Server, address: string): Promise<void> {
  const { host, port } = address.endsWith(":0") ? { host: address.slice(0, -2), port: 0 } : parseEndpoint(address);
  try {
    server.listen({ host, port });
    await once(server, "listening");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new KcoreError(
      {
        code: "LISTEN_FAILED",
        message: `the controller cannot listen on ${address}: ${reason}`,
        hint: `who has it: ss -ltnp 'sport = :${port}'`,
      },
      { cause: error },
    );
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
