import { once } from "node:events";
import type { Server } from "node:https";
import { parseEndpoint } from "#api/endpoint.ts";
import { credentialsVersion, loadCredentials } from "#api/credentials.ts";
import type { LoadedCredentials } from "#api/credentials.ts";
import { readDaemonConfig } from "#api/daemon-config.ts";
import { describeError } from "#api/log.ts";
import type { Log } from "#api/log.ts";
import { KcoreError } from "#errors/problem.ts";
import { ControllerConfig } from "./config.ts";
import { watchNodes } from "./nodes.ts";
import type { Nodes } from "./nodes.ts";
import { createApiServer } from "./server.ts";
import type { Handlers } from "./server.ts";
import { openStore } from "./store.ts";

export interface ServeOptions {
  readonly configFile: string;
  /** Reads the configuration's YAML. */
  readonly parse: (text: string) => unknown;
  /** Stops the controller: requests under way are answered first. */
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly clock: () => number;
  readonly version: string;
  /** Told once, with the port, when requests are accepted. */
  readonly onListening?: (port: number) => void;
}

/**
 * Runs a controller until `signal`; resolves when it has stopped in good order.
 * @throws KcoreError when it cannot start: CONFIG_INVALID, FILE_UNREADABLE, PKI_IDENTITY, STORE_LOCKED, STORE_CORRUPT, LISTEN_FAILED
 */
export async function serveController(options: ServeOptions): Promise<void> {
  const { configFile, parse, signal, log, clock, version } = options;
  const { config, ignored } = await readDaemonConfig({ file: configFile, schema: ControllerConfig, parse });
  if (ignored.length > 0) log.warn("configuration keys without a meaning here", { ignored });
  const credentials = await loadCredentials(config.tls, "controller");
  const { cluster, id: controllerId } = credentials.identity;
  const configured = config.replication.controllerId;
  if (configured !== undefined && configured !== controllerId) {
    throw new KcoreError({
      code: "CONFIG_INVALID",
      message: `${configFile}: replication.controllerId is ${configured}, but ${config.tls.certFile} is the certificate of ${controllerId}`,
    });
  }
  const store = await openStore({ folder: config.dbPath, cluster, controllerId });
  try {
    const rules = {
      controllerId,
      requireManualApproval: config.requireManualApproval,
      staleAfterMs: config.staleAfterSecs * 1000,
    };
    const nodes = watchNodes(store, rules, clock);
    const dc = config.replication.dcId;
    const handlers = handlersFor(nodes, { controllerId, dc, cluster, version }, log);
    const server = createApiServer({ credentials, cluster, handlers, log, clock });
    await listen(server, config.listenAddr);
    const { port } = server.address() as { port: number };
    log.info("the controller listens", {
      address: config.listenAddr,
      port,
      controllerId,
      cluster,
      version,
      nodes: store.list().length,
    });
    options.onListening?.(port);
    const sweeper = setInterval(() => {
      sweep(nodes, log).catch((error: unknown) => log.error("the state could not be written", describeError(error)));
    }, config.staleCheckIntervalSecs * 1000);
    const reloader = setInterval(
      reloading({ server, config, credentials, log }),
      Math.min(config.staleCheckIntervalSecs, 30) * 1000,
    );
    try {
      await aborted(signal);
    } finally {
      clearInterval(sweeper);
      clearInterval(reloader);
      log.info("the controller stops");
      await stop(server);
    }
  } finally {
    await store.close();
  }
}

function handlersFor(
  nodes: Nodes,
  self: { readonly controllerId: string; readonly dc: string; readonly cluster: string; readonly version: string },
  log: Log,
): Handlers {
  return {
    health: () => ({}),
    ready: () => {
      const list = nodes.list();
      const ready = list.filter(({ status }) => status === "ready").length;
      return { ...self, ready: true, nodes: { total: list.length, ready }, peers: [] };
    },
    registerNode: async ({ caller, body }) => {
      const standing = await nodes.register(caller, body);
      log.info("a node registered", {
        node: caller.id,
        hostname: body.hostname,
        address: body.address,
        ...statusOf(standing),
      });
      return standing;
    },
    heartbeat: ({ caller }) => nodes.heartbeat(caller),
    goodbye: async ({ caller }) => {
      const standing = await nodes.goodbye(caller);
      log.info("a node's agent stopped", { node: caller.id });
      return standing;
    },
    listNodes: () => ({ nodes: [...nodes.list()] }),
    getNode: ({ id }) => nodes.get(id),
    approveNode: async ({ caller, id }) => {
      const node = await nodes.setApproval(id, "approved");
      log.info("a node was approved", { node: id, by: caller.id });
      return node;
    },
    rejectNode: async ({ caller, id }) => {
      const node = await nodes.setApproval(id, "rejected");
      log.info("a node was rejected", { node: id, by: caller.id });
      return node;
    },
  };
}

function statusOf({ approval, status }: { readonly approval: string; readonly status: string }): object {
  return { approval, status };
}

async function sweep(nodes: Nodes, log: Log): Promise<void> {
  for (const node of await nodes.sweep()) log.warn("a node is not ready: no heartbeat", { node });
}

/** New certificates come into use for new connections, without a restart; bad ones are refused and the old stay. */
function reloading({
  server,
  config,
  credentials,
  log,
}: {
  readonly server: Server;
  readonly config: ControllerConfig;
  readonly credentials: LoadedCredentials;
  readonly log: Log;
}): () => void {
  let version = credentials.version;
  const reload = async (): Promise<void> => {
    const found = await credentialsVersion(config.tls);
    if (found === version) return;
    version = found;
    const { ca, cert, key, identity, notAfter } = await loadCredentials(config.tls, "controller");
    const isSame = identity.cluster === credentials.identity.cluster && identity.id === credentials.identity.id;
    if (!isSame) throw new Error("the new certificate is another controller's");
    server.setSecureContext({ ca, cert, key, minVersion: "TLSv1.3" });
    log.info("the certificate was reloaded", { expires: notAfter.toISOString() });
  };
  return () => {
    reload().catch((error: unknown) =>
      log.error("the new certificate cannot be used, the old one stays", describeError(error)),
    );
  };
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

async function stop(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const hurry = setTimeout(() => server.closeAllConnections(), 5_000);
  await closed;
  clearTimeout(hurry);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
