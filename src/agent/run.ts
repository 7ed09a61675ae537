import { join } from "node:path";
import { openControllers } from "#api/ask.ts";
import type { Daemon } from "#api/daemon.ts";
import { readDaemonConfig } from "#api/daemon-config.ts";
import { parseListen } from "#api/endpoint.ts";
import { describeError } from "#api/log.ts";
import { wait } from "#base/wait.ts";
import { KcoreError } from "#errors/problem.ts";
import { Agent, type AgentMachine } from "./agent.ts";
import { updateFiles, updatesFolder } from "#updater/files.ts";
import { finishSwap, openOwnCredentials } from "./certificate-files.ts";
import { AgentConfig, controllersOf } from "./agent-config.ts";
import { readMetrics } from "./agent-metrics.ts";
import { addressTowards, gatherFacts, readDisks, readNics, readUsage } from "./facts.ts";
import { deliverUpdates, type OrderDelivery } from "./order-delivery.ts";
import { createRenewer } from "./renewal.ts";
import { controllerRank } from "./controller-order.ts";
import { openRevokedKeys } from "./revoked-keys.ts";
import { readStatusFile, writeAgentStatus } from "./status-file.ts";
import { serveStatus, type StatusServer } from "./status-server.ts";

/** Milliseconds for one exchange, which a controller holds for up to ten seconds (src/controller/updates/exchange.ts). */
const exchangeMs = 15_000;

/**
 * Runs the node's agent until the signal: registers the node, sends heartbeats, renews the certificate, delivers orders
 * and serves the node's status. Without a reachable controller the agent tries for ever.
 * @throws KcoreError if it cannot start: CONFIG_INVALID, USAGE for an endpoint, FILE_UNREADABLE, PKI_IDENTITY
 */
export async function runAgent(daemon: Daemon): Promise<void> {
  const { configFile, log, clock, supervisor } = daemon;
  const config = await readDaemonConfig(daemon, AgentConfig);
  const swap = await finishSwap(config.tls);
  if (swap) log.warn("a renewal of the certificate was interrupted", { [swap]: true });
  const endpoints = endpointsOf(config, configFile);
  const credentials = await openOwnCredentials(config.tls);
  const rank = controllerRank(config, credentials.present().identity.id);
  const options = { endpoints, rank, credentials: credentials.present, clock, isPatient: false };
  const controllers = openControllers({
    ...options,
    onFailed: ({ message }, controller) => log.warn("a controller could not be used", { controller, error: message }),
  });
  const exchangeControllers = openControllers({ ...options, timeoutMs: exchangeMs });
  let server: StatusServer | undefined;
  let delivery: OrderDelivery | undefined;
  try {
    const nodeId = credentials.present().identity.id;
    if (config.nodeId !== undefined && config.nodeId !== nodeId) {
      throw new KcoreError({
        code: "CONFIG_INVALID",
        message: `${configFile}: nodeId is ${config.nodeId}, but ${config.tls.certFile} is the certificate of ${nodeId}`,
        hint: "deploy the node again; its id stands in the roster",
      });
    }
    const { stateDir } = config;
    const statusFile = join(stateDir, "status.json");
    const revocations = await openRevokedKeys(join(stateDir, "revoked-keys.json"), log);
    const { signal, random, version } = daemon;
    delivery = deliverUpdates({ nodeId, stateDir, controllers: exchangeControllers, signal, log, random });
    const onCredentials = (): void => {
      server?.use(credentials.present());
      exchangeControllers.close();
    };
    const onRevoked = (): void => server?.cutRevoked();
    const onConcerned = delivery.start;
    const renewer = createRenewer({ config, controllers, credentials, clock, random, log, nodeId });
    const machine: AgentMachine = {
      sleep: wait,
      gatherFacts: () => gatherFacts({ config, nodeId, version }),
      readUsage: () => readUsage(config.storage.filesystemVolumeDir, join(updatesFolder(stateDir), updateFiles.inbox)),
      addressTowards,
      writeStatus: (status) => writeAgentStatus(statusFile, status),
    };
    const parts = { config, controllers, credentials, renewer, machine, nodeId, statusFile, revocations };
    const agent = new Agent({ ...daemon, ...parts, onCredentials, onRevoked, onConcerned });
    server = await serveStatus({
      listen: parseListen(config.listenAddr, 9091),
      credentials: credentials.present(),
      pages: {
        "/status": () => readStatusFile(statusFile),
        "/disks": async () => ({ disks: await readDisks() }),
        "/nics": async () => ({ nics: await readNics() }),
        "/metrics": () => readMetrics(stateDir, statusFile, clock()),
        "/healthz": () => Promise.resolve(agent.health()),
      },
      isRevoked: revocations.isRevoked,
      clock,
      log,
      // A node that cannot serve its status must still send heartbeats.
    }).catch((error: unknown) => {
      log.error("the status is not served", describeError(error));
      return undefined;
    });
    log.info("the agent starts", {
      nodeId,
      controllers: endpoints,
      version,
      ...(server && { port: server.port }),
    });
    await agent.report("starting");
    supervisor?.ready();
    await agent.live();
    supervisor?.stopping();
    await agent.leave();
  } finally {
    await delivery?.stop();
    await server?.close();
    exchangeControllers.close();
    controllers.close();
  }
}

function endpointsOf(config: AgentConfig, configFile: string): readonly string[] {
  const endpoints = controllersOf(config);
  if (endpoints.length > 0) return endpoints;
  throw new KcoreError({
    code: "CONFIG_INVALID",
    message: `${configFile} names no controller`,
    hint: "add: controllers: [HOST:9090]",
  });
}
