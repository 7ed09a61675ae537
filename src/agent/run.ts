import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiRefusal } from "#api/client.ts";
import { readDaemonConfig } from "#api/daemon-config.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { describeError } from "#api/log.ts";
import type { Log } from "#api/log.ts";
import type { Standing } from "#api/schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { createBackoff } from "./backoff.ts";
import { AgentConfig } from "./config.ts";
import { openControllers } from "./controllers.ts";
import type { Controllers } from "./controllers.ts";
import { gatherRegistration } from "./facts.ts";
import { writeAgentStatus } from "./status-file.ts";
import type { AgentStatus } from "./status-file.ts";

export interface AgentOptions {
  readonly configFile: string;
  /** Reads the configuration's YAML. */
  readonly parse: (text: string) => unknown;
  /** Stops the agent; it tells the controller so. */
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly clock: () => number;
  readonly random: () => number;
  readonly version: string;
}

const goodbyeMs = 3_000;

/**
 * Runs the node's agent until `signal`: registers, then sends heartbeats; when no controller can be reached it goes on
 * trying for ever. Resolves when it has stopped in good order.
 * @throws KcoreError when it cannot start: CONFIG_INVALID, FILE_UNREADABLE, PKI_IDENTITY
 */
export async function runAgent(options: AgentOptions): Promise<void> {
  const { configFile, parse, signal, log, clock } = options;
  const { config, ignored } = await readDaemonConfig({ file: configFile, schema: AgentConfig, parse });
  if (ignored.length > 0) log.warn("configuration keys without a meaning here", { ignored });
  const endpoints = endpointsOf(config, configFile);
  const controllers = await openControllers({ endpoints, files: config.tls, log, clock, signal });
  try {
    const nodeId = controllers.credentials().identity.id;
    if (config.nodeId !== undefined && config.nodeId !== nodeId) {
      throw new KcoreError({
        code: "CONFIG_INVALID",
        message: `${configFile}: nodeId is ${config.nodeId}, but ${config.tls.certFile} is the certificate of ${nodeId}`,
        hint: "deploy the node again; its id stands in the roster",
      });
    }
    const agent = new Agent({ ...options, config, controllers, nodeId });
    log.info("the agent starts", { nodeId, controllers: endpoints.map(formatEndpoint), version: options.version });
    await agent.report("starting");
    await agent.live();
    await agent.leave();
  } finally {
    controllers.close();
  }
}

function endpointsOf(config: AgentConfig, configFile: string): ReturnType<typeof parseEndpoint>[] {
  const texts = [
    ...new Set([...(config.controllerAddr === undefined ? [] : [config.controllerAddr]), ...config.controllers]),
  ];
  if (texts.length > 0) return texts.map((text) => parseEndpoint(text));
  throw new KcoreError({
    code: "CONFIG_INVALID",
    message: `${configFile} names no controller`,
    hint: "add: controllers: [HOST:9090]",
  });
}

type AgentParts = AgentOptions & {
  readonly config: AgentConfig;
  readonly controllers: Controllers;
  readonly nodeId: string;
};

class Agent {
  readonly #parts: AgentParts;
  #standing: Standing | undefined;
  /** A controller may know us even if its answer never came. */
  #hasAsked = false;
  #lastHeartbeat: number | undefined;

  constructor(parts: AgentParts) {
    this.#parts = parts;
  }

  /** One beat after the other until the signal; after a failure a shorter wait that grows. */
  async live(): Promise<void> {
    const { signal, log, config, random } = this.#parts;
    const interval = config.heartbeatIntervalSecs * 1000;
    const backoff = createBackoff({ base: Math.min(1_000, interval), cap: Math.min(30_000, 2 * interval), random });
    while (!signal.aborted) {
      let wait = interval;
      try {
        await this.#reload();
        await this.#beat();
        backoff.reset();
        await this.report("running");
      } catch (error) {
        if (signal.aborted) break;
        wait = backoff.next();
        log.warn("no controller accepted a heartbeat", { retryInMs: Math.round(wait), ...describeError(error) });
        await this.report("connecting", error instanceof Error ? error.message : String(error));
      }
      await sleep(wait, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Tells the controller that this agent stops, so that nobody has to wait for the silence. */
  async leave(): Promise<void> {
    const { controllers, log, nodeId } = this.#parts;
    if (this.#hasAsked) {
      const signal = AbortSignal.timeout(goodbyeMs);
      await controllers
        .withFirst((client) => client.call("goodbye", { nodeId }, { signal }))
        .catch((error: unknown) => log.warn("no controller heard the goodbye", describeError(error)));
    }
    log.info("the agent stops");
    await this.report("stopped");
  }

  /** Keeps `status.json` up to date; a failure to write it is logged and harms nothing else. */
  async report(state: AgentStatus["state"], error?: string): Promise<void> {
    const { config, controllers, version, log } = this.#parts;
    const controller = controllers.current();
    const status: AgentStatus = {
      state,
      registered: this.#standing !== undefined,
      ...(this.#standing ? { approval: this.#standing.approval, nodeStatus: this.#standing.status } : {}),
      ...(controller === undefined ? {} : { controller }),
      ...(this.#lastHeartbeat === undefined ? {} : { lastHeartbeat: new Date(this.#lastHeartbeat).toISOString() }),
      certificateExpires: controllers.credentials().notAfter.toISOString(),
      ...(error === undefined ? {} : { error }),
      version,
      pid: process.pid,
    };
    await writeAgentStatus(join(config.stateDir, "status.json"), status).catch((problem: unknown) => {
      log.warn("status.json cannot be written", describeError(problem));
    });
  }

  async #reload(): Promise<void> {
    const { controllers, log } = this.#parts;
    try {
      if (!(await controllers.reloadIfChanged())) return;
      // The controller knows this node by its key and expiry: tell it both anew.
      this.#standing = undefined;
      log.info("the certificate was reloaded", { expires: controllers.credentials().notAfter.toISOString() });
    } catch (error) {
      log.error("the new certificate cannot be used, the old one stays", describeError(error));
    }
  }

  async #beat(): Promise<void> {
    const { controllers, clock, nodeId, signal } = this.#parts;
    if (!this.#standing) return this.#register();
    try {
      this.#standing = await controllers.withFirst((client) => client.call("heartbeat", { nodeId }, { signal }));
      this.#lastHeartbeat = clock();
    } catch (error) {
      if (error instanceof ApiRefusal && error.status === 404) return this.#register();
      if (error instanceof ApiRefusal && error.status === 403) this.#standing = undefined;
      throw error;
    }
  }

  async #register(): Promise<void> {
    const { controllers, config, nodeId, version, signal, clock, log } = this.#parts;
    this.#standing = undefined;
    this.#hasAsked = true;
    this.#standing = await controllers.withFirst(async (client, endpoint) => {
      const registration = await gatherRegistration({ nodeId, config, endpoint, version });
      return client.call("registerNode", registration, { signal });
    });
    this.#lastHeartbeat = clock();
    const { approval, status, controllerId } = this.#standing;
    log.info("the node is registered", { controller: controllers.current(), controllerId, approval, status });
  }
}
