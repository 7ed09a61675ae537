import { Random } from "../random.ts";
import { Scheduler } from "../scheduler.ts";
import { Checks } from "./checks.ts";
import { endPhases, names, SimController, type Changes } from "./controller.ts";
import { Machine, type SimOrder } from "./machine.ts";
import { Operator } from "./operator.ts";
import { atEnd, whyNotSettled } from "./settled.ts";
import { drawRolloutSwarm, type RolloutSwarm } from "./swarm.ts";

export interface Kill {
  /** The how-manieth write of an owner, from 1. */
  readonly write: number;
  readonly when: "before" | "after";
  readonly then: "restart" | "takeover";
}

export interface Member {
  readonly id: string;
  readonly dc: string;
  readonly isController: boolean;
}

/** Controllers, nodes, the network between them, and what happens to all of them. One seed decides everything. */
export class RolloutWorld {
  readonly scheduler = new Scheduler();
  readonly random: Random;
  readonly swarm: RolloutSwarm;
  readonly checks = new Checks(this);
  readonly operator: Operator;
  readonly members: readonly Member[];
  readonly controllers: readonly SimController[];
  readonly machines: readonly Machine[];
  /** Orders that are on their way to a node. */
  readonly underWay = new Map<string, SimOrder[]>();
  readonly figures = {
    killed: 0,
    nodeCrashes: 0,
    partitions: 0,
    jumps: 0,
    takeovers: 0,
    forced: 0,
    activations: 0,
    failures: 0,
    deaths: 0,
    rollbacks: 0,
    cancels: 0,
    manifests: 0,
    ended: 0,
    waiting: 0,
  };
  readonly begun = new Set<string>();
  /** Generations whose canaries an operator, or their time, let pass. */
  readonly promoted = new Set<string>();
  readonly #kill: Kill | undefined;
  readonly #blocked = new Set<string>();
  readonly #attached = new Map<string, string>();
  readonly #heardBy = new Map<string, number>();
  isHealed = false;
  writes = 0;

  constructor(seed: number, swarm: Partial<RolloutSwarm> = {}, kill?: Kill) {
    this.random = new Random(seed);
    this.swarm = { ...drawRolloutSwarm(this.random), ...swarm };
    this.#kill = kill;
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
    const events = {
      accepted: (machine: Machine, order: SimOrder, before: SimOrder["fence"] | undefined) => {
        if (order.step === "activate") this.figures.activations++;
        this.checks.accepted(machine, order, before);
      },
      changed: (machine: Machine) => this.#machineChanged(machine),
      said: (machine: Machine) => this.scheduler.after(this.random.between(10, 300), () => this.#exchange(machine)),
    };
    const { scheduler, random } = this;
    this.machines = this.members.map(({ id }) => new Machine(id, { scheduler, random, swarm: this.swarm, events }));
    this.operator = new Operator(this);
  }

  get maxUnavailable(): number {
    return this.swarm.maxUnavailable;
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

  machine(id: string): Machine {
    return this.machines.find((machine) => machine.id === id) as Machine;
  }

  /** A controller is down while its machine is. */
  #machineChanged(machine: Machine): void {
    if (machine.isDead) this.figures.deaths++;
    this.checks.nodeChanged();
    if (machine.memory?.state === "failed" && !this.#failed.has(machine.memory)) {
      this.#failed.add(machine.memory);
      this.figures.failures++;
    }
    if (!this.isController(machine.id)) return;
    const controller = this.controller(machine.id);
    if (!machine.isUp) controller.kill();
    else if (!controller.isUp && !this.#isKilled.has(machine.id))
      this.scheduler.after(this.random.between(100, 3_000), () => this.#start(controller));
  }

  readonly #isKilled = new Set<string>();
  readonly #failed = new WeakSet<object>();

  #start(controller: SimController): void {
    if (this.machine(controller.id).isUp && !this.#isKilled.has(controller.id)) controller.start();
  }

  /** kill -9 of its process, for so long. */
  #killProcess(controller: SimController, ms: number): void {
    this.figures.killed++;
    controller.kill();
    this.#isKilled.add(controller.id);
    this.scheduler.after(ms, () => {
      this.#isKilled.delete(controller.id);
      this.#start(controller);
    });
  }

  /** What becomes of a controller whose transaction is about to be durable. */
  beforeCommit(controller: SimController, changes: Changes): Kill["when"] | undefined {
    const name = names.find((each) =>
      changes.some(([key]) => key === `update/${each}/progress` || key.startsWith(`update/${each}/node/`)),
    );
    if (changes.some(([key]) => key.endsWith("/head"))) this.figures.manifests++;
    if (name === undefined) return undefined;
    for (const [key, value] of changes)
      if (key.endsWith("/progress"))
        this.#promotions(name, value as { promoted?: boolean; generation: number; soakSince?: number }, controller);
    this.writes++;
    if (this.#kill?.write !== this.writes) return undefined;
    const { then, when } = this.#kill;
    this.#killProcess(controller, then === "restart" ? this.random.between(1_000, 200_000) : 1_500_000);
    if (then === "takeover") this.operator.takeOverSoon(name, controller.id);
    return when;
  }

  /** By their time, as the oracle counts it. */
  #promotions(
    name: string,
    progress: { promoted?: boolean; generation: number; soakSince?: number },
    { wall }: SimController,
  ): void {
    const soak = this.operator.soakSeconds;
    if (
      progress.promoted &&
      soak !== undefined &&
      progress.soakSince !== undefined &&
      wall - progress.soakSince >= soak * 1000
    )
      this.promoted.add(`${name} ${progress.generation}`);
  }

  #isBlocked(from: string, to: string): boolean {
    return this.#blocked.has(`${from}>${to}`);
  }

  /** A message: late, lost, or twice. */
  send(from: string, to: string, run: () => void): void {
    const { drop, duplicate, slow } = this.swarm;
    const { random, isHealed } = this;
    if (this.#isBlocked(from, to) || (!isHealed && random.chance(drop))) return;
    const delay = (): number =>
      random.between(1, 100) + (!isHealed && random.chance(slow) ? random.between(100, 20_000) : 0);
    const arrive = (): void => {
      if (!this.#isBlocked(from, to)) run();
    };
    this.scheduler.after(delay(), arrive);
    if (!isHealed && random.chance(duplicate)) this.scheduler.after(delay() + random.between(0, 30_000), arrive);
  }

  /** An order to a node; it is on its way until it arrives the last time or is lost. */
  hand(from: string, id: string, order: SimOrder): void {
    const list = this.underWay.get(id) ?? [];
    this.underWay.set(id, list);
    list.push(order);
    this.checks.nodeChanged();
    this.scheduler.after(55_000, () => list.splice(list.indexOf(order), 1));
    this.send(from, `${id}*`, () => this.#arrived(id, from, order));
  }

  #arrived(id: string, from: string, order?: SimOrder): void {
    const machine = this.machine(id);
    if (!machine.isUp) return;
    this.#heardBy.set(id, this.scheduler.now);
    this.#attached.set(id, from);
    machine.spoke();
    if (order) machine.take(order);
  }

  /** A node's heartbeat to its controller; to another when that one does not answer. */
  #exchange(machine: Machine): void {
    if (!machine.isUp) return;
    const { id } = machine;
    const isSilent = this.scheduler.now - (this.#heardBy.get(id) ?? -Infinity) > 12_000;
    const to =
      isSilent || this.random.chance(0.02) ? this.random.pick(this.controllers).id : (this.#attached.get(id) ?? "c1");
    this.#attached.set(id, to);
    const report = machine.report();
    this.send(`${id}*`, to, () => {
      const controller = this.controller(to);
      if (!controller.isUp) return;
      const order = controller.exchanged(id, report);
      if (order) this.hand(to, id, order);
      else this.send(to, `${id}*`, () => this.#arrived(id, to));
    });
  }

  /** Everything begins: heartbeats, ticks, faults, and the first manifest. */
  disturb(): void {
    const until = this.swarm.duration;
    const { swarm, random } = this;
    for (const machine of this.machines) this.#every(5_000, () => this.#exchange(machine));
    for (const controller of this.controllers) this.#every(3_000, () => controller.tick());
    if (swarm.partitions) this.#repeat(60_000, until, () => this.#partition());
    if (swarm.cutNodes) this.#repeat(60_000, until, () => this.#cutNodes());
    if (swarm.crashes) this.#repeat(80_000, until, () => this.#crash());
    if (swarm.nodeCrashes) this.#repeat(60_000, until, () => this.#crashNode());
    if (swarm.jumps)
      this.#repeat(50_000, until, () => {
        this.figures.jumps++;
        random.pick(this.controllers).offset = random.between(-1, 1) * random.pick([0, 5_000, 300_000]);
      });
    this.operator.begin(until);
    this.#run(until);
  }

  #every(mean: number, run: () => void): void {
    this.scheduler.after(this.random.between(0.7, 1.3) * mean, () => {
      run();
      this.#every(mean, run);
    });
  }

  #repeat(mean: number, until: number, run: () => void): void {
    const wait = this.random.between(0.2, 1.8) * mean;
    if (this.scheduler.now + wait >= until) return;
    this.scheduler.after(wait, () => {
      if (this.isHealed) return;
      run();
      this.#repeat(mean, until, run);
    });
  }

  #run(until: number): void {
    this.scheduler.runSettledUntil(until, () => this.checks.look());
  }

  #block(pairs: readonly string[], ms: number): void {
    this.figures.partitions++;
    for (const pair of pairs) this.#blocked.add(pair);
    this.scheduler.after(ms, () => {
      for (const pair of pairs) this.#blocked.delete(pair);
    });
  }

  /** Between two halves of everything, nodes included; or of one way only. */
  #partition(): void {
    const { random } = this;
    const side = new Map(this.members.map(({ id }) => [id, random.chance(0.5)]));
    const isOneWay = random.chance(0.3);
    const ends = this.members.flatMap(({ id, isController }) => (isController ? [id, `${id}*`] : [`${id}*`]));
    const of = (end: string): boolean | undefined => side.get(end.replace("*", ""));
    const pairs = ends.flatMap((a) =>
      ends.filter((b) => of(a) !== of(b) && (!isOneWay || of(a))).map((b) => `${a}>${b}`),
    );
    this.#block(pairs, random.between(5_000, 200_000));
  }

  /** Some nodes from some controllers. */
  #cutNodes(): void {
    const { random } = this;
    const pairs = this.members.flatMap(({ id }) =>
      this.controllers
        .filter(() => random.chance(0.3))
        .flatMap((controller) => [`${id}*>${controller.id}`, `${controller.id}>${id}*`]),
    );
    this.#block(pairs, random.between(5_000, 200_000));
  }

  /** A controller from all others, but from no node. */
  cutOff(id: string, ms: number): void {
    const others = this.controllers.filter((controller) => controller.id !== id);
    this.#block(
      others.flatMap((other) => [`${id}>${other.id}`, `${other.id}>${id}`]),
      ms,
    );
  }

  #crash(): void {
    const owner = this.controllers.find((controller) => controller.of("u").owner?.owner === controller.id);
    const controller = owner && this.random.chance(0.6) ? owner : this.random.pick(this.controllers);
    if (controller.isUp) this.#killProcess(controller, this.random.between(500, 200_000));
  }

  #crashNode(): void {
    const machine = this.random.pick(this.machines);
    if (machine.isDead) return;
    this.figures.nodeCrashes++;
    machine.crash(this.random.between(5_000, 200_000));
  }

  /** Ends all faults, and goes on until everything is done with. */
  heal(): void {
    this.isHealed = true;
    this.#blocked.clear();
    this.#isKilled.clear();
    for (const machine of this.machines) {
      machine.isHealed = true;
      machine.start();
    }
    for (const controller of this.controllers) {
      controller.offset = 0;
      this.#start(controller);
    }
    const start = this.scheduler.now;
    for (let look = 1; look <= 160; look++) {
      this.#run(start + look * 30_000);
      this.operator.help(look);
      if (whyNotSettled(this) === undefined) return;
    }
  }

  check(): void {
    atEnd(this);
    for (const name of this.begun) {
      const phase = this.controllers[0]?.of(name).progress?.phase ?? "";
      if (endPhases.has(phase)) this.figures.ended++;
      else this.figures.waiting++;
    }
  }

  trace(): string {
    return [
      this.scheduler.executed,
      this.scheduler.now,
      JSON.stringify(this.figures),
      ...this.controllers.map(({ registers }) => registers.text()),
    ].join("\n");
  }
}
