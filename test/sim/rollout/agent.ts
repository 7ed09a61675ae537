import { AgentConfig } from "#agent/agent-config.ts";
import { Agent } from "#agent/agent.ts";
import { deliverOrders, type OrderDelivery } from "#agent/order-delivery.ts";
import type { Controllers } from "#api/ask.ts";
import type { LoadedCredentials } from "#api/credentials.ts";
import type { Order } from "#rollout/order.ts";
import { askControllers } from "./client.ts";
import { factsOf } from "./founding.ts";
import type { Machine } from "./machine.ts";
import { neverExpires, type Answer } from "./requests.ts";
import { epochMs, versionOf } from "./targets.ts";
import type { RolloutWorld } from "./world.ts";

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
const config = AgentConfig.parse({ listenAddr: "127.0.0.1:0" });
const credentials = {
  present: () => ({ notAfter: neverExpires }) as LoadedCredentials,
  reloadIfChanged: () => Promise.resolve(false),
};
const revocations = { version: () => "", isRevoked: () => false, add: () => Promise.resolve(false) };
const renewer = { renewIfDue: () => Promise.resolve(false), problem: () => undefined };

/** The product's agent of a node, on simulated time, disk and network. It dies with its machine and has no state on the disk. */
export class SimAgent {
  readonly #world: RolloutWorld;
  readonly #machine: Machine;
  /** Ends the running process; undefined: none runs. */
  #process: AbortController | undefined;
  /** Callbacks that wait for the updater's next report. */
  readonly #wakers = new Set<() => void>();

  constructor(world: RolloutWorld, machine: Machine) {
    this.#world = world;
    this.#machine = machine;
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  die(): void {
    this.#process?.abort();
    this.#process = undefined;
  }

  /** Tells the agent that the updater has a new report. */
  wake(): void {
    for (const wake of this.#wakers) wake();
  }

  start(): void {
    if (this.#process || !this.#machine.isUp || this.#machine.isDead) return;
    const { scheduler, random, controllers } = this.#world;
    const { id } = this.#machine;
    const process = new AbortController();
    this.#process = process;
    const { signal } = process;
    const ids = controllers.map((controller) => controller.id);
    const from = random.below(ids.length);
    const common = {
      from: `${id}*`,
      role: "node",
      id,
      isPatient: false,
      // A deployment writes the agent's configuration anew, and so changes the order of its controllers.
      controllers: [...ids.slice(from), ...ids.slice(0, from)],
      signal,
      onAnswered: (answer: Answer) => this.#answered(answer),
      onArrived: (answer: Answer, isAwaited: boolean) => this.#arrived(answer, isAwaited),
    } as const;
    const exchangeControllers = askControllers(this.#world, { ...common, timeoutMs: 15_000 });
    const { start: onConcerned } = this.#deliver(exchangeControllers, signal);
    const agent = new Agent({
      config,
      controllers: askControllers(this.#world, { ...common, timeoutMs: 5_000 }),
      credentials,
      renewer,
      revocations,
      signal,
      log: silent,
      clock: () => epochMs + scheduler.now,
      random: () => random.next(),
      version: versionOf(this.#machine.present),
      nodeId: id,
      statusFile: "status.json",
      onCredentials: () => undefined,
      onRevoked: () => undefined,
      onConcerned,
      machine: {
        sleep: (ms, either) => scheduler.sleep(ms, either),
        gatherFacts: () => Promise.resolve(factsOf(this.#world.member(id), this.#machine.present)),
        readUsage: () => Promise.resolve({ load: 0, memoryUsed: 0 }),
        addressTowards: () => Promise.resolve("192.0.2.1"),
        writeStatus: ({ state }) => {
          // The updater reads in status.json that the agent has reached a controller.
          if (state === "running" && !signal.aborted) {
            this.#machine.spoke();
            this.#world.nodes.spoke(this.#machine);
          }
          return Promise.resolve();
        },
      },
    });
    agent.live().catch((error: unknown) => this.#world.note(`the agent of ${id}: ${(error as Error).stack}`));
  }

  #deliver(controllers: Controllers, signal: AbortSignal): OrderDelivery {
    const { random, scheduler, swarm } = this.#world;
    const machine = this.#machine;
    return deliverOrders({
      nodeId: machine.id,
      readAccepted: () => Promise.resolve(machine.journal),
      watch: (either) => this.#watch(either),
      exchange: (message, either) => {
        if (!machine.isAtWork) this.#world.checks.asked(machine, message.known);
        return controllers.ask((client) => client.call("exchangeUpdate", message, { signal: either }));
      },
      writeOrder: async (order) => {
        await scheduler.sleep(random.between(1, 100), signal);
        if (!this.#world.isHealed && random.chance(swarm.drop / 5)) throw new Error("no room");
        await machine.give(order);
      },
      sleep: (ms, either) => scheduler.sleep(ms, either),
      signal,
      // No jitter: the seeds of the planted bugs stay.
      random: () => 1,
      log: silent,
    });
  }

  async *#watch(signal: AbortSignal): AsyncGenerator<void> {
    while (!signal.aborted) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#wakers.delete(wake);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        this.#wakers.add(wake);
        signal.addEventListener("abort", wake);
      });
      if (!signal.aborted) yield;
    }
  }

  #answered(answer: Answer): void {
    const order = orderIn(answer);
    if (order) this.#world.orderSent(this.#machine.id, order);
  }

  /** A late answer to an abandoned request stands for an order that lay in the updater's inbox for long. */
  #arrived(answer: Answer, isAwaited: boolean): boolean {
    if (!this.#machine.isUp) return true;
    const order = orderIn(answer);
    if (order && !isAwaited && !this.#machine.hasOrder) void this.#machine.give(order);
    return !isAwaited;
  }
}

function orderIn(answer: Answer): Order | undefined {
  return "reply" in answer ? (answer.reply as { readonly order?: Order }).order : undefined;
}
