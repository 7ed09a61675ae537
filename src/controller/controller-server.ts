import type { Server } from "node:https";
import { pipeline } from "node:stream/promises";
import { formatEndpoint, parseListen, type ApiEndpoint } from "#api/endpoint.ts";
import { listenAt } from "#api/listen.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError } from "#errors/problem.ts";
import { certificatesOf } from "#pki/chain.ts";
import { manageObjects } from "./cluster/objects.ts";
import { manageVms } from "./cluster/vms.ts";
import type { ControllerCluster } from "./controller-cluster.ts";
import { watchHealth } from "./controller-health.ts";
import { monotonic, type ControllerOptions, type ControllerState } from "./controller-state.ts";
import { Refused } from "./cluster/refused.ts";
import { handlersFor } from "./handlers.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import type { Replica } from "./replica/create-replica.ts";
import { checkAccess, type AccessCheck } from "./server/access.ts";
import { stalledClientMs } from "./server/answer-list.ts";
import { createApiServer, type ApiServer } from "./server/server.ts";
import { openBundleSender } from "./updates/serve-bundle.ts";
import { openWatches, type Watches } from "./watch.ts";

/** The network side of a controller: its API server, its watches and its connections. */
export type ControllerServer = ReturnType<typeof openServer>;

export function openServer(state: ControllerState, cluster: ControllerCluster, options: ControllerOptions) {
  const { config, own, replica, network } = state;
  const { controllers, mayReplicate } = cluster;
  const watches = openWatches(replica, options.log);
  const access = withRefusalAlarm(checkAccess(cluster), replica);
  const { clock } = options;
  const metrics: Metrics = createMetrics(state, cluster, { clock, connections: () => api.connections.count() });
  const api = openApiServer(state, cluster, { ...options, watches, access, metrics });
  own.watch(({ ca, cert, key }) => {
    state.bastion.learn(certificatesOf(cert)[1]);
    api.use({ ca, cert, key });
  });
  api.server.on("tlsClientError", () => metrics.refusedConnection());
  const { connected, dialFailed } = replica;
  const { addressOf } = controllers;
  network.attach({ connected, dialFailed, addressOf, isWelcome: mayReplicate, onBytes: metrics.bytes });

  const cut = (): void => {
    const gone = api.connections.cut(
      (caller) => caller.certificateExpiresAt > options.clock() && access.refusalOf(caller) === undefined,
    );
    for (const { identity, id } of gone)
      options.log.warn("a connection was cut: its key is not welcome any more", { role: identity.role, id });
    network.cut(mayReplicate);
  };
  const unwatch = replica.watch((changed) => {
    // A little later, so that an operator who revokes their own key still gets the answer.
    if (changed.some((key) => accessKey.test(key))) setTimeout(cut, 20).unref();
  });
  return {
    watches,
    /** Closes the connections of callers that lost the right to be connected (S-11); each request is checked apart from that. */
    cut,
    /** @throws KcoreError LISTEN_FAILED, USAGE for a malformed `listenAddr` */
    async listen(): Promise<{ readonly port: number; readonly address: string }> {
      const endpoint = parseListen(config.listenAddr);
      const port = await listen(api.server, endpoint);
      return { port, address: ownAddress({ ...endpoint, port }) };
    },
    async close(): Promise<void> {
      unwatch();
      watches.close();
      await api.close();
    },
  };
}

/** Wraps the check of access: a controller that is refused replication raises an alarm here, too. */
function withRefusalAlarm(
  { check, refusalOf }: AccessCheck,
  { callerRefused }: Pick<Replica, "callerRefused">,
): AccessCheck {
  return {
    refusalOf,
    check(name, caller, id) {
      try {
        check(name, caller, id);
      } catch (error) {
        if (name === "replicate" && error instanceof Refused && caller.identity.role === "controller")
          callerRefused(caller.id, { code: error.code, message: error.message });
        throw error;
      }
    },
  };
}

function openApiServer(
  { own, bastion, self, db, audit, network }: ControllerState,
  cluster: ControllerCluster,
  {
    log,
    clock,
    openFiles,
    watches,
    access,
    metrics,
  }: Pick<ControllerOptions, "log" | "clock" | "openFiles"> & {
    readonly watches: Watches;
    readonly access: AccessCheck;
    readonly metrics: Metrics;
  },
): ApiServer {
  const { controllerId } = self;
  const health = watchHealth({ ...cluster, self, storeProblem: () => db.problem?.message });
  const vms = manageVms(cluster.records, cluster.nodes);
  const objects = manageObjects(cluster.records, vms);
  const bundles = openBundleSender({ store: cluster.bundles, stalledClientMs });
  return createApiServer({
    credentials: own.credentials(),
    cluster: self.cluster,
    bastion,
    handlers: handlersFor({ ...cluster, controllerId, objects, vms, own, audit, health, metrics, log, clock }),
    streams: {
      watch: ({ body, caller }, response) => watches.open(caller.key, body, response),
      async backup(_call, response) {
        const snapshot = await db.backup();
        response.writeHead(200, { "content-type": "application/octet-stream" });
        // A client that stops reading would keep the backup's file open, and its disk space in use, for ever.
        response.setTimeout(stalledClientMs, () => response.destroy());
        await pipeline(snapshot, response);
      },
      bundle: ({ caller, id }, response) => bundles.send(caller.key, id, response),
      replicate: (caller, socket, head) => network.accept(caller.id, caller.key, socket, head),
    },
    access,
    log,
    trail: audit.record,
    clock,
    monotonic,
    ...omitUndefined({ openFiles }),
    onAnswer: metrics.answered,
  });
}

/** The keys of registers whose change can end a caller's right to be connected. */
const accessKey = /^(?:revoked\/|node\/[^/]+\/(?:approval$|removed$|reject\/)|controller\/[^/]+\/auth$)/;

/** The address under which others reach this controller; empty if it listens on an unspecified address. */
function ownAddress(endpoint: ApiEndpoint): string {
  return ["0.0.0.0", "::"].includes(endpoint.host) ? "" : formatEndpoint(endpoint);
}

async function listen(server: Server, endpoint: ApiEndpoint): Promise<number> {
  try {
    return await listenAt(server, endpoint);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new KcoreError(
      {
        code: "LISTEN_FAILED",
        message: `the controller cannot listen on ${formatEndpoint(endpoint)}: ${reason}`,
        hint: `the process that has it: ss -ltnp 'sport = :${endpoint.port}'`,
      },
      { cause: error },
    );
  }
}
