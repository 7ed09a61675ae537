import { checkOrder, type OrderMemory } from "#rollout/node-fence.ts";
import type { Order } from "#rollout/order.ts";
import type { FencingToken, Report } from "#rollout/records.ts";
import type { UpdateStatement } from "#rollout/spec.ts";
import { NodeFiles } from "#support/node-files.ts";
import { updateFiles, updatesFolder, writeOrder } from "#updater/files.ts";
import { isBoundToRollout, type Journal } from "#updater/journal.ts";
import type { ProgramEnd, Ports } from "#updater/ports.ts";
import { Updater } from "#updater/updater.ts";
import { NodeSystem, simulatedStrategy, type StrategyHost } from "./node-system.ts";
import type { Member } from "./founding.ts";
import { epochMs, statementOf } from "./targets.ts";
import type { RolloutWorld } from "./world.ts";

/** An interruption of the updater at one of its next writes. */
interface Cut {
  /** The number of writes until the interruption. */
  writes: number;
  /** Milliseconds without power; 0: only the process ends. */
  readonly ms: number;
}

const folder = updatesFolder("/var/lib/kcore");
const path = (name: keyof typeof updateFiles): string => `${folder}/${updateFiles[name]}`;
const [inbox, taken, journalFile] = [path("inbox"), path("taken"), path("journal")];
const silent = (): void => undefined;

/** A node: its power, disk and programs, and the product's updater, whose processes systemd starts and a loss of power ends. */
export class Machine {
  readonly id: string;
  readonly system = new NodeSystem();
  readonly #disk = new NodeFiles();
  readonly #world: RolloutWorld;
  readonly #dc: string;
  /** The contents of the updater's journal. */
  journal: Journal | undefined;
  /** The manifests of accepted orders, by update and generation. */
  readonly #statements = new Map<string, UpdateStatement>();
  /** Whether the machine is lost for ever. */
  isDead = false;
  /** Milliseconds by which the node's clock is ahead of the simulated time. */
  offset = 0;
  /** The time at which it was last up, ms. */
  lastUp = 0;
  cut: Cut | undefined;
  #hasPower = true;
  #boots = 1;
  #bootedAt = 0;
  /** The updater's running process. */
  #process: symbol | undefined;
  #isStarting = false;

  constructor(world: RolloutWorld, { id, dc }: Member) {
    this.#world = world;
    this.id = id;
    this.#dc = dc;
  }

  /** Whether the agent, and the controller if the node has one, are up. */
  get isUp(): boolean {
    return this.#hasPower && this.system.areDaemonsUp && !this.isDead;
  }

  get present(): string {
    return this.system.running;
  }

  get state(): Report["state"] | undefined {
    return this.journal?.report?.state;
  }

  /** The tokens of the accepted orders. */
  get accepted(): Omit<OrderMemory, "isBusy"> | undefined {
    const { fence, past } = this.journal ?? {};
    return fence && { fence, past: past ?? [] };
  }

  get isBusy(): boolean {
    return this.journal !== undefined && isBoundToRollout(this.journal);
  }

  /** Whether the updater runs, or systemd is about to start it. */
  get isAtWork(): boolean {
    return this.#process !== undefined || this.#isWaiting;
  }

  get hasOrder(): boolean {
    return this.#disk.files.has(inbox);
  }

  get #isWaiting(): boolean {
    return this.hasOrder || this.isMarked;
  }

  /** Whether systemd starts the updater after a power cut. */
  get isMarked(): boolean {
    return this.#disk.files.has(taken);
  }

  /** The report as the agent reads it. */
  report(): Report | undefined {
    return this.journal?.report;
  }

  manifestOf({ name, generation }: Pick<FencingToken, "name" | "generation">): UpdateStatement | undefined {
    return this.#statements.get(`${name} ${generation}`);
  }

  /** The update whose order took the node down, or is about to. */
  get downBy(): string | undefined {
    const { doing, next } = this.journal ?? {};
    if (doing && doing.step !== "prepare") return doing.statement.name;
    return next && this.#takesDown(next.step, next.statement) ? next.statement.name : undefined;
  }

  /** Whether an order would still take the node down. */
  wouldGoDown({ fence, step }: Pick<Order, "fence" | "step">): boolean {
    if (!this.accepted || !this.#wouldAccept(fence)) return false;
    const statement = this.manifestOf(fence);
    return statement !== undefined && this.#takesDown(step, statement);
  }

  #takesDown(step: Order["step"], { name, bundle, signedAt }: UpdateStatement): boolean {
    const { running, store } = this.system;
    const { storePath = "" } = bundle ?? {};
    const { spent, previous, previousOf } = this.journal ?? {};
    if (step === "roll_back") return running === storePath && previousOf?.name === name && previous?.id !== storePath;
    const isSpent = spent?.runtime !== undefined && signedAt <= spent.runtime;
    return step === "activate" && running !== storePath && store.has(storePath) && !isSpent;
  }

  #wouldAccept(fence: FencingToken): boolean {
    return checkOrder(this.accepted && { ...this.accepted, isBusy: this.isBusy }, fence).accept;
  }

  /** Whether the updater would take an order now. */
  wouldTake(fence: FencingToken): boolean {
    return this.isUp && this.#wouldAccept(fence);
  }

  /** The agent writes an order; systemd starts the updater for it. */
  async give(order: Order): Promise<void> {
    await writeOrder(folder, order, this.#disk.ports(() => Promise.resolve()).replace);
    this.#startSoon(50, 500);
  }

  /** The agent has reached a controller. */
  spoke(): void {
    if (this.isUp) this.system.heartbeat = String(this.#world.scheduler.now);
  }

  /** systemd starts the updater if it has work. */
  #startSoon(low: number, high: number): void {
    if (this.#isStarting || this.#process || !this.#isWaiting) return;
    this.#isStarting = true;
    const boots = this.#boots;
    const { scheduler, random } = this.#world;
    scheduler.after(random.between(low, high), () => {
      if (boots !== this.#boots || !this.#hasPower) return;
      this.#isStarting = false;
      if (!this.#process && this.#isWaiting) this.#start();
    });
  }

  #start(): void {
    const process = Symbol(this.id);
    this.#process = process;
    const ports = this.#ports(process);
    let order: Order | undefined;
    const log = {
      info: (message: string) => {
        if (message === "takes an order") order = JSON.parse(this.#disk.files.get(taken) ?? "") as Order;
      },
      warn: silent,
    };
    const replace = async (name: string, text: string): Promise<void> => {
      await ports.replace(name, text);
      if (name !== journalFile) return;
      this.#journalWritten(JSON.parse(text) as Journal, order);
      order = undefined;
    };
    const own = { ...ports, replace };
    const updater = new Updater({
      folder,
      ports: own,
      log,
      self: { id: this.id, hostname: this.id, dc: this.#dc },
      verify: ({ statement }) => Promise.resolve(JSON.parse(statement)),
      present: () => Promise.resolve(this.system.state),
      strategyOf: (statement) => simulatedStrategy(this.#host(process, own), statement),
    });
    const end = (): void => {
      if (this.#process !== process) return;
      this.#process = undefined;
      this.#startSoon(50, 500);
    };
    updater.run().then(end, (error: unknown) => {
      if (this.#process !== process) return;
      this.#world.note(`${this.id} failed: ${error instanceof Error ? error.stack : String(error)}`);
      end();
    });
  }

  #journalWritten(journal: Journal, order: Order | undefined): void {
    const { checks, nodes, figures } = this.#world;
    const before = this.journal;
    if (order) {
      this.#statements.set(`${order.fence.name} ${order.fence.generation}`, statementOf(order.signed));
      if (order.step === "activate") figures.activations++;
      checks.accepted(this, order, before?.fence);
      nodes.accepted(this, order);
    }
    this.journal = journal;
    nodes.wrote(this, before, journal);
    this.#world.machineChanged(this);
    if (journal.report?.epoch !== before?.report?.epoch) this.#world.reported(this, before?.report);
  }

  #ports(process: symbol): Ports {
    const { scheduler, random, swarm, nodes } = this.#world;
    const { files } = this.#disk;
    const timers = scheduler.timers((run) => () => {
      if (this.#process === process) run();
    });
    const sleep = (ms: number): Promise<void> => new Promise((resolve) => timers.after(ms, resolve));
    const refuse = (): never => {
      throw new Error("the simulated node was not taught this");
    };
    return {
      ...this.#disk.ports(async (what) => {
        const [word = "", name = ""] = what.split(" ");
        await this.#step(process, word === "replace" || (word !== "read" && files.has(name)));
      }),
      run: async (words): Promise<ProgramEnd> => {
        await this.#step(process, true);
        if (words.join(" ") === "systemctl reboot") timers.after(random.between(500, 2_000), () => this.#goDown());
        else if (words[1] !== "stop") refuse();
        return { code: 0, stdout: "", stderr: "" };
      },
      sizeOf: refuse,
      sha256Of: refuse,
      room: refuse,
      download: refuse,
      ask: async () => {
        await sleep(random.between(10, 500));
        const holds = this.#world.isHealed || !random.chance(swarm.badHooks);
        nodes.gateAsked(this, holds);
        return holds ? 200 : 503;
      },
      clock: () => Math.floor(epochMs + scheduler.now + this.offset),
      uptime: () => scheduler.now - this.#bootedAt,
      bootId: () => Promise.resolve(`boot-${this.#boots}`),
      sleep,
    };
  }

  #host(process: symbol, { sleep }: Ports): StrategyHost {
    const { random, swarm, nodes } = this.#world;
    const happens = (chance: number): boolean => !this.#world.isHealed && random.chance(chance);
    return {
      system: this.system,
      sleep,
      step: () => this.#step(process, true),
      duration: (low, high) =>
        random.between(low, high) * (swarm.slowNodes && happens(0.2) ? random.between(1, 12) : 1),
      isBad: (share = 1) => happens(swarm.bad * share),
      risk: async () => {
        if (!happens(swarm.deadly)) return;
        this.#die();
        await endless();
      },
      needsBoot: () => random.chance(0.2),
      works: (step, statement) => nodes.works(this, step, statement),
      changed: () => this.#changed(),
    };
  }

  /** Called before each effect of the updater. It never resolves for a process that has ended. */
  async #step(process: symbol, isWrite: boolean): Promise<void> {
    if (this.#process === process && isWrite && this.cut && --this.cut.writes <= 0) {
      const { ms } = this.cut;
      this.cut = undefined;
      if (ms > 0) this.crash(ms);
      else this.kill();
    }
    if (this.#process !== process) await endless();
  }

  /** The updater's process ends; systemd starts another. */
  kill(): void {
    this.#process = undefined;
    this.#startSoon(1_000, 5_000);
  }

  /** The power fails for this long. */
  crash(ms: number): void {
    if (this.isDead) return;
    this.#powerOff();
    this.#disk.powerCut();
    this.#bootAfter(ms);
  }

  /** The machine reboots by order. */
  #goDown(): void {
    this.#powerOff();
    this.#disk.flush();
    const { random, swarm, isHealed } = this.#world;
    if (this.system.once !== undefined && !isHealed && random.chance(swarm.deadly)) return this.#die();
    this.#bootAfter(random.between(10_000, 60_000));
  }

  #bootAfter(ms: number): void {
    const boots = this.#boots;
    this.#world.scheduler.after(ms, () => {
      if (boots === this.#boots) this.start();
    });
  }

  #powerOff(): void {
    if (this.isUp) this.lastUp = this.#world.scheduler.now;
    this.#boots++;
    this.#process = undefined;
    this.#isStarting = false;
    this.#hasPower = false;
    this.#world.machineChanged(this);
  }

  #changed(): void {
    if (!this.isUp) this.lastUp = this.#world.scheduler.now;
    this.#world.machineChanged(this);
  }

  #die(): void {
    this.isDead = true;
    this.#powerOff();
  }

  /** The power is back. */
  start(): void {
    if (this.isDead || this.#hasPower) return;
    const { scheduler, random, swarm, isHealed } = this.#world;
    this.#hasPower = true;
    this.#boots++;
    this.#bootedAt = scheduler.now;
    const { system } = this;
    system.isBroken = system.once !== undefined && !isHealed && random.chance(swarm.bad);
    if (system.once !== undefined) system.movedBy = this.journal?.doing?.statement.name ?? "";
    system.boot();
    this.#world.machineChanged(this);
    this.#startSoon(1_000, 5_000);
    this.#world.reported(this, this.report());
  }
}

function endless(): Promise<never> {
  return new Promise(() => undefined);
}
