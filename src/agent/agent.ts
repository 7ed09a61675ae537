import { ApiRefusal } from "#api/client.ts";
import type { Controllers } from "#api/ask.ts";
import { formatEndpoint, parseEndpoint, type ApiEndpoint } from "#api/endpoint.ts";
import { isInGrace } from "#api/late-renewal.ts";
import { describeError, type Log } from "#api/log.ts";
import type { Heartbeat, Registration, HeartbeatReply, NodeUsage } from "#api/schemas.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { createBackoff, spread, type Backoff } from "#base/backoff.ts";
import type { AgentConfig } from "./agent-config.ts";
import type { OwnCredentials } from "./certificate-files.ts";
import { isTimeToReturn } from "./controller-order.ts";
import { isSameMachine, type MachineFacts } from "./facts.ts";
import type { Renewer } from "./renewal.ts";
import type { RevokedKeys } from "./revoked-keys.ts";
import type { AgentStatus } from "./status-file.ts";

/** The effects of the agent on its machine, and all that it reads there. */
export interface AgentMachine {
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly gatherFacts: () => Promise<MachineFacts>;
  readonly readUsage: () => Promise<NodeUsage>;
  /** The address that the machine uses towards a controller. @throws KcoreError API_UNREACHABLE */
  readonly addressTowards: (controller: ApiEndpoint) => Promise<string>;
  /** Writes the agent's part of `status.json`. */
  readonly writeStatus: (status: AgentStatus) => Promise<void>;
}

/** The parts of a node's agent. */
export interface AgentParts {
  readonly machine: AgentMachine;
  readonly config: AgentConfig;
  readonly controllers: Controllers;
  readonly credentials: OwnCredentials;
  readonly renewer: Renewer;
  /** Stops the agent. */
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly clock: () => number;
  readonly random: () => number;
  readonly version: string;
  readonly nodeId: string;
  readonly statusFile: string;
  /** Called when the agent has begun to use other credentials. */
  readonly onCredentials: () => void;
  readonly revocations: RevokedKeys;
  /** Called when keys were revoked. */
  readonly onRevoked: () => void;
  /** Called when the node has registered, and at each heartbeat whose answer says that a rollout concerns it. */
  readonly onConcerned: () => void;
}

type NodeHealth = NonNullable<Heartbeat["health"]>;

const goodbyeMs = 3_000;
/** Most endpoints that the agent takes from one answer. */
const learnLimit = 32;

/** Registers the node, sends its heartbeats and renews its certificate. */
export class Agent {
  readonly #parts: AgentParts;
  #facts: MachineFacts | undefined;
  #factsAt = 0;
  /** The controllers' last answer; undefined: the node has to register. */
  #reply: HeartbeatReply | undefined;
  /** Whether a registration was sent: a controller may have stored it even if the answer was lost. */
  #hasSentRegistration = false;
  #lastHeartbeat: number | undefined;
  #statusProblem: string | undefined;

  constructor(parts: AgentParts) {
    this.#parts = parts;
  }

  /** Registers and sends heartbeats until the signal; pauses after failures: backoffOf. */
  async live(): Promise<void> {
    const { signal, log, config, controllers, credentials, random, clock, machine } = this.#parts;
    const interval = config.heartbeatIntervalSecs * 1000;
    const { arriving, returning } = backoffOf(interval, random);
    let wasAccepted = false;
    while (!signal.aborted) {
      const began = clock();
      let wait = interval;
      try {
        await this.#reload();
        // A controller answers no other request of a node whose certificate has expired (F-25).
        if (isInGrace(credentials.present().notAfter, began)) {
          // The open connections show the certificate as it was when it was still valid.
          controllers.close();
          await this.#renewIfDue();
        }
        if (!controllers.isAtFirst() && isTimeToReturn(interval, random)) controllers.beginWithFirst();
        await this.#beat();
        returning.reset();
        if (this.#reply?.approval === "approved") await this.#renewIfDue(this.#reply.renewEndingBefore);
        await this.report("running");
        // The interval includes the time of the heartbeat. A clock that jumps must neither extend nor skip the pause.
        wait = Math.min(interval, Math.max(interval / 2, interval - (clock() - began)));
        // Agents that started together, after a power failure, must not keep beating together.
        if (!wasAccepted) wait = spread(interval, random);
        wasAccepted = true;
      } catch (error) {
        if (signal.aborted) break;
        wait = (wasAccepted ? returning : arriving).next();
        log.warn("no controller accepted a heartbeat", { retryInMs: Math.round(wait), ...describeError(error) });
        await this.report("connecting", error instanceof Error ? error.message : String(error));
      }
      await machine.sleep(wait, signal).catch(() => undefined);
    }
  }

  /** Tells a controller that this agent stops: the node is not ready from then on, without a wait for missing heartbeats. */
  async leave(): Promise<void> {
    const { controllers, log, nodeId } = this.#parts;
    if (this.#hasSentRegistration) {
      const signal = AbortSignal.timeout(goodbyeMs);
      await controllers
        .ask((client) => client.call("goodbye", { nodeId }, { signal }))
        .catch((error: unknown) => log.warn("no controller heard the goodbye", describeError(error)));
    }
    log.info("the agent stops");
    await this.report("stopped");
  }

  /** The node's health as the node itself finds it. */
  health(): NodeHealth {
    const reason = this.#statusProblem ?? this.#parts.renewer.problem();
    return reason === undefined ? { ok: true } : { ok: false, reason: reason.slice(0, 500) };
  }

  /** Writes the agent's part of `status.json`; a failure is logged, and makes the node's health false. */
  async report(state: AgentStatus["state"], error?: string): Promise<void> {
    const { config, controllers, credentials, nodeId, version, log, statusFile, machine } = this.#parts;
    const controller = controllers.current();
    const renewal = this.#parts.renewer.problem();
    const status: AgentStatus = {
      state,
      nodeId,
      dc: config.dcId,
      roles: config.roles,
      labels: config.labels,
      registered: this.#reply !== undefined,
      ...(this.#reply ? { approval: this.#reply.approval, nodeStatus: this.#reply.status } : {}),
      ...omitUndefined({ controller }),
      ...(this.#lastHeartbeat === undefined ? {} : { lastHeartbeat: new Date(this.#lastHeartbeat).toISOString() }),
      certificateExpires: credentials.present().notAfter.toISOString(),
      ...omitUndefined({ renewal }),
      health: this.health(),
      ...omitUndefined({ error }),
      version,
      pid: process.pid,
    };
    try {
      await machine.writeStatus(status);
      this.#statusProblem = undefined;
    } catch (problem) {
      this.#statusProblem = `${statusFile} cannot be written: ${problem instanceof Error ? problem.message : String(problem)}`;
      log.warn("status.json cannot be written", describeError(problem));
    }
  }

  async #reload(): Promise<void> {
    const { credentials, log } = this.#parts;
    try {
      if (!(await this.#loadIfChanged())) return;
      // Registers again, because controllers know this node by its certificate's key and end.
      this.#reply = undefined;
      log.info("the certificate was reloaded", { expires: credentials.present().notAfter.toISOString() });
    } catch (error) {
      log.error("the new certificate cannot be used, the old one stays", describeError(error));
    }
  }

  async #loadIfChanged(): Promise<boolean> {
    const { controllers, credentials, onCredentials } = this.#parts;
    if (!(await credentials.reloadIfChanged())) return false;
    controllers.close();
    onCredentials();
    return true;
  }

  async #beat(): Promise<void> {
    const { controllers, clock, nodeId, signal, machine } = this.#parts;
    const hasChanged = await this.#refreshFacts();
    if (!this.#reply || hasChanged) return this.#register();
    const { bootId } = this.#facts ?? {};
    const beat = {
      nodeId,
      ...omitUndefined({ bootId }),
      usage: await machine.readUsage(),
      health: this.health(),
      revocations: this.#parts.revocations.version(),
    };
    try {
      this.#reply = await controllers.ask((client) => client.call("heartbeat", beat, { signal }));
      this.#lastHeartbeat = clock();
      if (this.#reply.concerned === true) this.#parts.onConcerned();
      this.#learnControllers();
      await this.#applyRevocations();
    } catch (error) {
      if (error instanceof ApiRefusal && error.reason === "NODE_UNKNOWN") return this.#register();
      if (error instanceof ApiRefusal && error.status === 403) this.#reply = undefined;
      throw error;
    }
  }

  async #register(): Promise<void> {
    const { controllers, signal, clock, log } = this.#parts;
    this.#reply = undefined;
    this.#hasSentRegistration = true;
    this.#reply = await controllers.ask(async (client) =>
      client.call("registerNode", await this.#registration(client.endpoint), { signal }),
    );
    this.#lastHeartbeat = clock();
    this.#learnControllers();
    await this.#applyRevocations();
    // The updater may have reported while no agent ran.
    this.#parts.onConcerned();
    const { approval, status, controllerId } = this.#reply;
    log.info("the node is registered", { controller: controllers.current(), controllerId, approval, status });
  }

  async #registration(endpoint: ApiEndpoint): Promise<Registration> {
    const { config, machine } = this.#parts;
    this.#facts ??= await machine.gatherFacts();
    const address = config.address ?? (await machine.addressTowards(endpoint));
    return { ...this.#facts, address, revocations: this.#parts.revocations.version() };
  }

  /** Reads the machine's facts if it is time; returns whether they have changed: a new disk, a missing address. */
  async #refreshFacts(): Promise<boolean> {
    const { config, clock, log, machine } = this.#parts;
    if (Math.abs(clock() - this.#factsAt) < config.factsIntervalSecs * 1000) return false;
    this.#factsAt = clock();
    const before = this.#facts;
    this.#facts = await machine.gatherFacts();
    const hasChanged = before !== undefined && !isSameMachine(before, this.#facts);
    if (hasChanged) log.info("this machine has changed");
    return hasChanged;
  }

  #learnControllers(): void {
    const { config, controllers, log } = this.#parts;
    if (!config.learnControllers) return;
    const endpoints = (this.#reply?.controllers ?? []).slice(0, learnLimit).flatMap((text) => {
      try {
        return [formatEndpoint(parseEndpoint(text))];
      } catch {
        return [];
      }
    });
    const fresh = controllers.learn(endpoints);
    if (fresh.length > 0) log.info("other controllers were learned of", { controllers: fresh });
  }

  /** Applies a controller's list of revoked keys. If the disk refuses the list, the agent receives it again after its next start. */
  async #applyRevocations(): Promise<void> {
    const { revocations, log, onRevoked } = this.#parts;
    const list = this.#reply?.revoked;
    try {
      if (await revocations.add(list)) log.info("keys were revoked", { known: list?.keys.length });
    } catch (error) {
      log.error("the revoked keys cannot be kept", describeError(error));
    }
    if (list) onRevoked();
  }

  async #renewIfDue(endingBefore?: string): Promise<void> {
    if (!(await this.#parts.renewer.renewIfDue(endingBefore))) return;
    await this.#loadIfChanged();
    // Registers only now that the new key is on the disk, because controllers then drop the old key.
    await this.#register();
  }
}

/**
 * The pauses of an agent after a heartbeat that no controller answered; `interval`: milliseconds between its heartbeats. A node that never
 * registered tries again soon (`arriving`), because an operator waits for it. A registered node (`returning`) is one of many that lost the
 * same controllers: a thousand, with heartbeats every 15 s, return with at most 200 connections a second (F-27).
 */
export function backoffOf(
  interval: number,
  random: () => number,
): { readonly arriving: Backoff; readonly returning: Backoff } {
  const cap = Math.min(30_000, 2 * interval);
  return {
    arriving: createBackoff({ base: Math.min(2_000, interval), cap, random }),
    returning: createBackoff({ base: Math.min(15_000, interval), cap, random }),
  };
}
