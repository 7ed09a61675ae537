import { statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { describeError } from "#api/log.ts";
import type { PeerView } from "#api/controller-schemas.ts";
import { durableJson } from "#base/durable-file.ts";
import { openControllerCluster, type ControllerCluster } from "./controller-cluster.ts";
import { ownKeyFiles } from "./controller-config.ts";
import { collectAfterDeletions } from "./heap.ts";
import { HeardLife } from "./cluster/node-lives.ts";
import { openServer, type ControllerServer } from "./controller-server.ts";
import { openControllerState, type ControllerOptions, type ControllerState } from "./controller-state.ts";

/**
 * Runs a controller until the signal, or until its database can acknowledge no more writes. Resolves after the stop, when the requests
 * under way are answered or were cut after 5 s.
 * @throws KcoreError when it cannot start: LISTEN_FAILED, and as openControllerState does
 */
export async function serveController(options: ControllerOptions): Promise<void> {
  const { log, signal, supervisor } = options;
  const state = await openControllerState(options);
  const cluster = openControllerCluster(state, options);
  const server = openServer(state, cluster, options);
  const heard = durableJson<readonly HeardLife[]>(
    join(state.config.dbPath, "heard-nodes.json"),
    z.array(HeardLife),
    [],
  );
  /** Saves the nodes' heartbeats for the next start. */
  const saveHeartbeats = async (): Promise<void> => {
    heard.data = cluster.liveness.heard();
    await heard
      .write()
      .catch((error: unknown) => log.warn("the nodes that were heard could not be kept", describeError(error)));
  };
  let stopRounds = (): void => undefined;
  try {
    await cluster.subCa.load();
    // The certificate may have expired while the controller was off, so it is renewed before the server listens.
    await state.own.renewIfDue(cluster.subCa.authority);
    cluster.certificateEnds.raiseAlarms();
    // Without the file a node is only not ready until its next heartbeat.
    await heard.read().catch(() => undefined);
    cluster.liveness.recall(heard.data);
    // A founder's first write may wait for other members, and the replica's timers do not keep this process alive.
    const alive = setInterval(() => undefined, 60_000);
    await cluster.foundIfNeeded().finally(() => clearInterval(alive));
    const { port, address } = await server.listen();
    const nodes = [...cluster.names.all()].length;
    log.info("the controller listens", { address: state.config.listenAddr, port, ...state.self, nodes });
    supervisor?.ready();
    options.onListening?.(port);
    cluster.publish(address);
    stopRounds = startRounds(state, cluster, server, { log, saveHeartbeats });
    await aborted(AbortSignal.any([signal, state.broken]));
    supervisor?.stopping();
    log.info("the controller stops");
  } finally {
    stopRounds();
    await saveHeartbeats();
    // Before the replica and the database stop: the cluster writes its last decisions.
    await cluster.stop();
    state.replica.stop();
    state.network.close();
    await server.close();
    await state.audit.close();
    await state.db.close();
  }
}

/** Starts the controller's periodic work; the result stops it. */
function startRounds(
  state: ControllerState,
  cluster: ControllerCluster,
  { watches, cut }: ControllerServer,
  { log, saveHeartbeats }: Pick<ControllerOptions, "log"> & { readonly saveHeartbeats: () => Promise<void> },
): () => void {
  const { config, own, replica } = state;
  const { certificateEnds, controllers, liveness, subCa } = cluster;
  const changedPeers = comparePeers();
  const notifyChanges = (): void => {
    const changed = liveness.changed();
    if (changed.length > 0) void saveHeartbeats();
    for (const node of changed) {
      const { isReady, reason } = liveness.of(node);
      if (!isReady) log.warn("a node is not ready", { node, reason });
      watches.notify("nodes", node);
    }
    for (const peer of changedPeers(controllers.peers())) watches.notify("controllers", peer);
  };
  const { tls, subCa: deployed } = config;
  const haveFilesChanged = watchFiles([...Object.values(tls), ...Object.values(deployed), ...ownKeyFiles(config)]);
  const checkFiles = (): void => {
    cluster
      .foundIfNeeded()
      .catch((error: unknown) => log.error("membership could not be looked at", describeError(error)));
    void own.renewIfDue(subCa.authority).then(certificateEnds.raiseAlarms);
    if (!haveFilesChanged() && subCa.published()) return;
    void own.reload();
    subCa.load().catch((error: unknown) => log.warn("the sub-CA could not be read again", describeError(error)));
  };
  const collect = collectAfterDeletions();
  const staleMs = config.staleCheckIntervalSecs * 1000;
  const timers = [
    // Cuts connections whose certificate has expired. Connections whose right was revoked are cut when the register arrives.
    setInterval(cut, 5_000),
    setInterval(notifyChanges, staleMs),
    setInterval(checkFiles, Math.min(staleMs, 30_000)),
    setInterval(() => collect(replica.status().registers), 30_000),
  ];
  return () => {
    for (const timer of timers) clearInterval(timer);
  };
}

/** A function that returns the peers whose state has changed since the last call. */
function comparePeers(): (peers: readonly PeerView[]) => readonly string[] {
  const last = new Map<string, string>();
  return (peers) =>
    peers.flatMap(({ controllerId, state, inStep }) => {
      const now = `${state} ${inStep}`;
      const isNews = last.get(controllerId) !== now;
      last.set(controllerId, now);
      return isNews ? [controllerId] : [];
    });
}

/**
 * A function that returns whether any of these files has changed since the last call; true at the first call. A missing file
 * is a version, too. It calls stat(2) synchronously, which takes microseconds: Node's pool would wake two threads for each
 * file.
 */
function watchFiles(paths: readonly string[]): () => boolean {
  const versionOf = (path: string): string => {
    try {
      const { ino, size, mtimeMs, ctimeMs } = statSync(path);
      return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code);
    }
  };
  const readVersions = (): string => paths.map(versionOf).join("\n");
  let last: string | undefined;
  return () => {
    const now = readVersions();
    const hasChanged = now !== last;
    last = now;
    return hasChanged;
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
