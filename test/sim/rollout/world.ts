import type { Order } from "#rollout/order.ts";
import { hasEnded, type RolloutProgress, type Report } from "#rollout/records.ts";
import { Random } from "#support/random.ts";
import { Scheduler } from "../scheduler.ts";
import { Violation } from "../violation.ts";
import { SimAgent } from "./agent.ts";
import { SimHookRunner } from "./sim-hook-runner.ts";
import { Checks } from "./checks.ts";
import { names, SimController, type Changes } from "./controller.ts";
import { foundingOf, type Member } from "./founding.ts";
import { HookChecks } from "./hook-checks.ts";
import { Machine } from "./machine.ts";
import { Nemesis } from "./nemesis.ts";
import { RolloutNetwork } from "./network.ts";
import { NodeChecks } from "./node-checks.ts";
import { Operator } from "./operator.ts";
import { atEnd, Undone, whyNotSettled } from "./settled.ts";
import { drawRolloutSwarm, type RolloutSwarm } from "./swarm.ts";

/** The owner's death at one of its writes. */
export interface Kill {
  /** The number of the owner's write, from 1. */
  readonly write: number;
  readonly when: "before" | "after";
  readonly remedy: "restart" | "takeover";
}

/** Controllers, nodes, the network between them, and all faults; the seed decides all of it. */
export class RolloutWorld {
  readonly scheduler = new Scheduler();
  readonly random: Random;
  readonly swarm: RolloutSwarm;
  readonly checks = new Checks(this);
  readonly hooks = new HookChecks(this);
  readonly nodes = new NodeChecks(this);
  readonly hookRunners: readonly SimHookRunner[];
  readonly network: RolloutNetwork;
  readonly nemesis = new Nemesis(this);
  readonly operator: Operator;
  readonly members: readonly Member[];
  readonly controllers: readonly SimController[];
  readonly machines: readonly Machine[];
  /** Orders on their way to a node. */
  readonly underWay = new Map<string, Order[]>();
  readonly figures = {
    killed: 0,
    nodeCrashes: 0,
    cuts: 0,
    partitions: 0,
    jumps: 0,
    takeovers: 0,
    forged: 0,
    activations: 0,
    failures: 0,
    rollbacks: 0,
    cancels: 0,
    removed: 0,
    hooks: 0,
    ended: 0,
  };
  readonly begun = new Set<string>();
  /** Removed updates, each with the controller that removed it. */
  readonly removed = new Map<string, string>();
  /** Generations whose canaries were promoted, by an operator or by their time. */
  readonly promoted = new Set<string>();
  readonly #kill: Kill | undefined;
  #violation: Violation | undefined;
  readonly #agents: ReadonlyMap<string, SimAgent>;
  #isBegun = false;
  isHealed = false;
  writes = 0;

  constructor(seed: number, swarm: Partial<RolloutSwarm> = {}, kill?: Kill) {
    this.random = new Random(seed);
    this.swarm = { ...drawRolloutSwarm(this.random), ...swarm };
    this.#kill = kill;
    this.network = new RolloutNetwork(this.scheduler, this.random, this.swarm);
    const { controllers, workers } = this.swarm;
    const ids = Array.from({ length: controllers }, (_, index) => `c${index + 1}`);
    this.members = [
      ...ids.map((id, index) => ({ id, dc: `DC${1 + (index % 2)}`, isController: true })),
      ...Array.from({ length: workers + 1 }, (_, index) => ({
        id: `w${index + 1}`,
        dc: `DC${1 + (index % 2)}`,
        isController: false,
      })),
    ];
    this.controllers = ids.map((id) => new SimController(this, id));
    this.machines = this.members.map((member) => new Machine(this, member));
    this.#agents = new Map(this.machines.map((machine) => [machine.id, new SimAgent(this, machine)]));
    this.operator = new Operator(this);
    const bastions = this.swarm.twoBastions ? [...names, ...names] : names;
    this.hookRunners = bastions.map((name) => new SimHookRunner(this, name));
  }

  /** The number of nodes that the updates select. */
  get meant(): number {
    return this.members.filter(({ id }) => this.isSelected(id)).length;
  }

  get maxUnavailable(): number {
    return Math.min(this.swarm.maxUnavailable, this.meant);
  }

  isController(id: string): boolean {
    return this.controllers.some((controller) => controller.id === id);
  }

  isSelected(id: string): boolean {
    return this.swarm.withControllers || !this.isController(id);
  }

  controller(id: string): SimController {
    return this.controllers.find((controller) => controller.id === id) as SimController;
  }

  /** The controller that owns an update by its own records. */
  ownerOf(name: string): SimController | undefined {
    return this.controllers.find((controller) => controller.of(name).owner?.owner === controller.id);
  }

  member(id: string): Member {
    return this.members.find((member) => member.id === id) as Member;
  }

  machine(id: string): Machine {
    return this.machines.find((machine) => machine.id === id) as Machine;
  }

  /** Called when a machine's power, version or daemons change. A controller is down while its machine is. */
  machineChanged(machine: Machine): void {
    this.checks.nodeChanged(machine);
    const { id, isUp } = machine;
    if (this.#isDown.has(id) === !isUp) return;
    if (isUp) this.#isDown.delete(id);
    else this.#isDown.add(id);
    if (!isUp) this.#agent(id).die();
    else if (this.#isBegun) this.#startAgent(id, 300);
    if (!this.isController(id)) return;
    const controller = this.controller(id);
    if (!isUp) controller.kill();
    else if (!controller.isUp && !this.#isKilled.has(machine.id))
      this.scheduler.after(this.random.between(100, 3_000), () => this.#start(controller));
  }

  /** Called when the updater's report has changed or its machine is up again: the agent then reads the report. */
  reported(machine: Machine, before: Report | undefined): void {
    const report = machine.report();
    if (report) this.nodes.said(machine, report);
    if (report?.state === "failed" && before?.state !== "failed") this.figures.failures++;
    this.scheduler.after(this.random.between(10, 300), () => this.#agent(machine.id).wake());
  }

  readonly #isKilled = new Set<string>();
  readonly #isDown = new Set<string>();

  #start(controller: SimController): void {
    if (this.machine(controller.id).isUp && !this.#isKilled.has(controller.id)) controller.start();
  }

  /** Kills a controller's process, and starts another after `ms` milliseconds. */
  killProcess(controller: SimController, ms: number): void {
    this.figures.killed++;
    controller.kill();
    this.#isKilled.add(controller.id);
    this.scheduler.after(ms, () => {
      this.#isKilled.delete(controller.id);
      this.#start(controller);
    });
  }

  /** The fate of a controller whose transaction is about to be durable. */
  beforeCommit(controller: SimController, changes: Changes): Kill["when"] | undefined {
    const name = names.find((each) =>
      changes.some(([key]) => key === `update/${each}/progress` || key.startsWith(`update/${each}/node/`)),
    );
    if (name === undefined) return undefined;
    for (const [key, value] of changes)
      if (key.endsWith("/progress") && value !== null) this.#promotions(name, value as RolloutProgress, controller);
    this.writes++;
    if (this.writes > 2_000) this.violate("(g) owners write without end");
    if (this.#kill?.write !== this.writes) return undefined;
    const { remedy, when } = this.#kill;
    this.killProcess(controller, remedy === "restart" ? this.random.between(1_000, 200_000) : 1_500_000);
    if (remedy === "takeover") this.operator.takeOverSoon(name, controller.id);
    return when;
  }

  /** Notes a promotion by time, if the soak time is over by the oracle's count. */
  #promotions(name: string, { promoted, soakSince, generation }: RolloutProgress, { wall }: SimController): void {
    const soak = this.operator.soakSeconds;
    if (promoted !== true || soak === undefined || soakSince === undefined) return;
    if (wall - soakSince >= soak * 1000) this.promoted.add(`${name} ${generation}`);
  }

  send(from: string, to: string, run: () => void): void {
    this.network.send(from, to, run);
  }

  /** Notes an order as on its way, until its last copy has arrived or is lost. */
  orderSent(id: string, order: Order): void {
    const list = this.underWay.get(id) ?? [];
    this.underWay.set(id, list);
    list.push(order);
    this.checks.orderSent(id, order);
    this.scheduler.after(55_000, () => list.splice(list.indexOf(order), 1));
  }

  /** Kills a node's agent; systemd starts it again. */
  killAgent(id: string): void {
    this.#agent(id).die();
    this.#startAgent(id, 3_000);
  }

  #startAgent(id: string, mostMs: number): void {
    const agent = this.#agent(id);
    if (!agent.isRunning) this.scheduler.after(this.random.between(10, mostMs), () => agent.start());
  }

  #agent(id: string): SimAgent {
    return this.#agents.get(id) as SimAgent;
  }

  /** Founds the cluster: starts its controllers. */
  async found(): Promise<void> {
    const records = await foundingOf(this.members);
    for (const controller of this.controllers) {
      controller.disk.records.push(...records);
      controller.start();
    }
  }

  /** Starts heartbeats, faults and the first manifest. */
  async disturb(): Promise<void> {
    const until = this.swarm.duration;
    this.#isBegun = true;
    for (const { id } of this.machines) this.#startAgent(id, 6_000);
    if (this.swarm.hooks || this.swarm.gates)
      for (const hookRunner of this.hookRunners) this.#every(3_000, () => hookRunner.poll());
    this.nemesis.begin(until);
    this.operator.begin(until);
    await this.run(until);
  }

  #every(mean: number, run: () => void): void {
    this.scheduler.after(this.random.between(0.7, 1.3) * mean, () => {
      run();
      this.#every(mean, run);
    });
  }

  async run(until: number): Promise<void> {
    await this.scheduler.runUntil(until, () => {
      this.checks.checkNow();
      if (this.#violation) throw this.#violation;
    });
  }

  /** Notes a violation, which ends the seed after the present event. The first one counts. */
  note(message: string): Violation {
    this.#violation ??= new Violation(message);
    return this.#violation;
  }

  /** Notes a violation and throws it. The note stays, even if the product's own code catches the error. */
  violate(message: string): never {
    throw this.note(message);
  }

  /** Ends all faults, and runs until the rollouts are finished. */
  async heal(): Promise<void> {
    this.isHealed = true;
    this.network.heal();
    this.#isKilled.clear();
    for (const machine of this.machines) {
      machine.offset = 0;
      machine.cut = undefined;
      machine.start();
    }
    for (const controller of this.controllers) {
      controller.offset = 0;
      this.#start(controller);
    }
    const start = this.scheduler.now;
    const undone = new Undone(this);
    for (let round = 1; round <= 160; round++) {
      await this.run(start + round * 30_000);
      undone.check();
      this.operator.help(round);
      if (whyNotSettled(this) === undefined) return;
    }
  }

  check(): void {
    if (this.#violation) throw this.#violation;
    atEnd(this);
    for (const name of this.begun) {
      const progress = this.controllers[0]?.of(name).progress;
      if (progress && hasEnded(progress.phase)) this.figures.ended++;
    }
  }

  trace(): string {
    return [
      this.scheduler.executed,
      this.scheduler.now,
      JSON.stringify(this.figures),
      ...this.controllers.map((controller) => controller.text()),
    ].join("\n");
  }
}
