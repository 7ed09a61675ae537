import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiRefusal, openApi, type ApiClient } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import type { Registration } from "#api/schemas.ts";
import { verifyStatement } from "#pki/statement.ts";
import { judgeOrder, type Remembered } from "#rollout/node-fence.ts";
import type { Order, OrderStep } from "#rollout/order.ts";
import type { Failure, Report } from "#rollout/records.ts";
import { Statement, targetIdOf } from "#rollout/spec.ts";
import type { TestCluster } from "./cluster.ts";
import { nodeCredentials, recordAt, registrationOf, type TestController } from "./controllers.ts";
import { hangLimit } from "./limit.ts";

/** What a simulated node does with an order that is not to know its owner alone. */
export type Answer =
  /** As it should. */
  | { readonly ok: true; readonly needsReboot?: boolean; readonly rebootReasons?: readonly string[] }
  | { readonly ok: false; readonly failure: Failure };

/** How a node behaves; what is left out goes well. */
export interface NodeBehaviour {
  /** Asked at each step; a promise holds the node back until it resolves. */
  readonly carryOut?: (step: OrderStep, order: Order) => Answer | Promise<Answer>;
}

export interface RolloutNodeOptions extends NodeBehaviour {
  readonly hostname: string;
  readonly id?: string;
  readonly dc?: string;
  /** Whether its registration says that it can be updated; true unless told otherwise. */
  readonly canUpdate?: boolean;
}

/** A node as far as rollouts see it: it speaks the API with its own certificate, and runs whatever it is told to. */
export interface RolloutNode {
  readonly id: string;
  readonly hostname: string;
  /** What it runs now. */
  readonly present: () => Report["present"];
  /** What it has told, the first first. */
  readonly reports: readonly Report[];
  /** It goes away without a word: no heartbeat, no answer, until {@link RolloutNode.start}. */
  readonly stop: () => Promise<void>;
  readonly start: () => void;
}

/** Between two heartbeats, and after a controller that does not answer, ms. */
const beatMs = 500;

const wentWell: Answer = { ok: true };

/**
 * Nodes of a cluster that let themselves be updated: each registers, sends heartbeats, and takes its orders and tells what came of them
 * while a rollout concerns it, at the first of the controllers that answers. They keep fences as real ones do. Hundreds of them live in one
 * process.
 */
export async function startRolloutNodes(
  cluster: TestCluster,
  controllers: readonly TestController[],
  nodes: readonly RolloutNodeOptions[],
): Promise<{ readonly nodes: readonly RolloutNode[]; readonly stop: () => Promise<void> }> {
  const made = await Promise.all(nodes.map((options) => openNode(cluster, controllers, options)));
  for (const node of made) node.start();
  return {
    nodes: made,
    stop: async () => void (await Promise.all(made.map((node) => node.stop()))),
  };
}

async function openNode(
  cluster: TestCluster,
  controllers: readonly TestController[],
  options: RolloutNodeOptions,
): Promise<RolloutNode> {
  const { hostname, id = randomUUID() } = options;
  const credentials = nodeCredentials(cluster, id);
  const [first] = controllers;
  if (!first) throw new Error("nodes need a controller");
  await recordAt(first, credentials);
  // Longer than a controller lets a node wait for its next order.
  const common = { credentials, clock: Date.now, timeoutMs: hangLimit };
  const clients = controllers.map(({ endpoint }) => openApi({ endpoint: parseEndpoint(endpoint), ...common }));
  const verify = (order: Order): Statement =>
    Statement.parse(verifyStatement(order.signed, { rootPem: credentials.ca, cluster: cluster.authority.cluster }));
  const node = new SimulatedAgent(id, clients, verify, options);
  await node.register();
  return {
    id,
    hostname,
    reports: node.reports,
    present: () => node.present,
    start: () => node.start(),
    stop: () => node.stop(),
  };
}

class SimulatedAgent {
  readonly reports: Report[] = [];
  present: Report["present"];
  readonly #id: string;
  readonly #clients: readonly ApiClient[];
  readonly #verify: (order: Order) => Statement;
  readonly #options: RolloutNodeOptions;
  #at = 0;
  #remembered: Remembered | undefined;
  #previous: Report["previous"];
  /** What it found when it prepared, which each later word of it says, too. */
  #prepared: Pick<Report, "needsReboot" | "rebootReasons" | "targetGeneration"> = {};
  #end = new AbortController();
  #lives: Promise<unknown> = Promise.resolve();

  constructor(
    id: string,
    clients: readonly ApiClient[],
    verify: (order: Order) => Statement,
    options: RolloutNodeOptions,
  ) {
    this.#id = id;
    this.#clients = clients;
    this.#verify = verify;
    this.#options = options;
    const version = "0.3.0";
    this.present = { id: `/nix/store/${"0".repeat(32)}-kcore-${version}`, version, generation: 1 };
  }

  start(): void {
    this.#end = new AbortController();
    this.#lives = this.#live(this.#end.signal).catch((error: unknown) => {
      if (!this.#end.signal.aborted) throw error;
    });
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#lives;
    for (const client of this.#clients) client.close();
  }

  /** Tells what it is; again after each change of what it runs, as an agent that was started anew does. */
  async register(): Promise<void> {
    const { hostname, dc = "DC1", canUpdate = true } = this.#options;
    const { id, version, generation } = this.present;
    const runtime = { id, generation: generation ?? 1, arch: "x86_64", canUpdate };
    const told: Partial<Registration> = {
      hostname,
      dc,
      labels: {},
      roles: ["worker"],
      address: "192.0.2.1",
      version,
      runtime,
    };
    await this.#ask((client) => client.call("registerNode", registrationOf(this.#id, told)));
  }

  async #live(signal: AbortSignal): Promise<void> {
    let following: Promise<void> | undefined;
    while (!signal.aborted) {
      const { concerned = false } = await this.#ask((client) =>
        client.call("heartbeat", { nodeId: this.#id }, { signal }),
      );
      if (concerned)
        following ??= this.#follow(signal)
          .catch((error: unknown) => {
            if (!signal.aborted) throw error;
          })
          .finally(() => (following = undefined));
      await sleep(beatMs, undefined, { signal }).catch(() => undefined);
    }
    await following;
  }

  /** Takes orders until no rollout concerns it any more. */
  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const report = this.reports.at(-1);
      const known = this.#remembered?.fence;
      const said = { nodeId: this.#id, ...(report && { report }), ...(known && { known }) };
      const answer = await this.#ask((client) => client.call("exchangeUpdate", said, { signal })).catch(
        () => undefined,
      );
      if (!answer?.concerned) return;
      if (answer.order) await this.#take(answer.order);
    }
  }

  async #take(order: Order): Promise<void> {
    const { fence, step } = order;
    if (!judgeOrder(this.#remembered, fence).accept) return;
    // What is not the bastion's word ends here, as a bug of the test.
    const statement = this.#verify(order);
    const isFirst =
      this.#remembered?.fence.generation !== fence.generation || this.#remembered.fence.name !== fence.name;
    if (isFirst) {
      this.#previous = undefined;
      this.#prepared = {};
    }
    this.#remembered = { fence, isBusy: step !== "fence" };
    if (step === "fence") return this.#say(order, this.#stateWhileFenced());
    const { carryOut = () => wentWell } = this.#options;
    const answer = await Promise.race([carryOut(step, order), this.#ended()]);
    this.#remembered = { fence, isBusy: false };
    if (!answer.ok) return this.#say(order, "failed", { failure: answer.failure });
    if (step === "prepare") {
      const { needsReboot = false, rebootReasons = [] } = answer;
      const targetGeneration = this.#generation() + 1;
      this.#prepared = { needsReboot, rebootReasons: [...rebootReasons], targetGeneration };
      return this.#say(order, "prepared");
    }
    if (step === "activate") {
      this.#previous = this.present;
      this.present = {
        id: targetIdOf(statement),
        version: statement.bundle?.version ?? this.present.version,
        generation: this.#prepared.targetGeneration ?? this.#generation() + 1,
      };
    } else if (this.#previous) this.present = this.#previous;
    await this.register();
    this.#say(order, step === "activate" ? "activated" : "rolled_back");
  }

  /** A new owner learns what a former one had it do. */
  #stateWhileFenced(): Report["state"] {
    const last = this.reports.at(-1);
    return last &&
      last.fence.name === this.#remembered?.fence.name &&
      last.fence.generation === this.#remembered.fence.generation
      ? last.state
      : "fenced";
  }

  /** Whatever it is held back by, it can be stopped. */
  #ended(): Promise<never> {
    const { signal } = this.#end;
    return new Promise((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
    );
  }

  #generation(): number {
    return this.present.generation ?? 1;
  }

  #say({ fence }: Order, state: Report["state"], more: Partial<Report> = {}): void {
    const previous = this.#previous ? { previous: this.#previous } : {};
    this.reports.push({
      epoch: this.reports.length + 1,
      fence,
      state,
      present: this.present,
      ...previous,
      ...this.#prepared,
      ...more,
      at: Date.now(),
    });
  }

  /** The controller that answered last, else the next one, until one does or the node is stopped. */
  async #ask<Result>(work: (client: ApiClient) => Promise<Result>): Promise<Result> {
    for (;;) {
      const client = this.#clients[this.#at % this.#clients.length];
      if (!client) throw new Error("a node without a controller");
      try {
        return await work(client);
      } catch (error) {
        this.#end.signal.throwIfAborted();
        // Whoever else is asked would say the same.
        if (error instanceof ApiRefusal && error.status === 400) throw error;
        this.#at++;
        if (this.#at % this.#clients.length === 0) await sleep(beatMs, undefined, { signal: this.#end.signal });
        if (this.#at > 1_000) throw error;
      }
    }
  }
}
