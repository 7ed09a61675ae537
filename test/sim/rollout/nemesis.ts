import type { Machine } from "./machine.ts";
import type { RolloutWorld } from "./world.ts";

/** Injects faults, of the kinds that the seed has. */
export class Nemesis {
  readonly #world: RolloutWorld;

  constructor(world: RolloutWorld) {
    this.#world = world;
  }

  begin(until: number): void {
    const { swarm } = this.#world;
    if (swarm.partitions) this.#repeat(60_000, until, () => this.#partition());
    if (swarm.cutNodes)
      this.#repeat(60_000, until, () => (this.#world.random.chance(0.5) ? this.#cutNodes() : this.#strand()));
    if (swarm.crashes) this.#repeat(80_000, until, () => this.#crash());
    if (swarm.nodeCrashes) this.#repeat(60_000, until, () => this.#crashNode());
    if (swarm.switchesOff)
      this.#world.scheduler.after(this.#world.random.between(15_000, 100_000), () => this.#switchOff(until));
    if (swarm.hooks && swarm.bastionCrashes)
      this.#repeat(60_000, until, () =>
        this.#world.hookRunners.forEach((each) => each.crash(this.#world.random.between(500, 60_000))),
      );
    this.#repeat(30_000, until, () => this.#world.killAgent(this.#world.random.pick(this.#world.machines).id));
    if (swarm.jumps) this.#repeat(50_000, until, () => this.#jump());
    if (swarm.forges) this.#repeat(20_000, until, () => this.#forge());
  }

  #repeat(mean: number, until: number, run: () => void): void {
    const { scheduler, random } = this.#world;
    const wait = random.between(0.2, 1.8) * mean;
    if (scheduler.now + wait >= until) return;
    scheduler.after(wait, () => {
      if (this.#world.isHealed) return;
      run();
      this.#repeat(mean, until, run);
    });
  }

  #block(pairs: readonly string[], ms: number): void {
    this.#world.figures.partitions++;
    this.#world.network.block(pairs, ms);
  }

  /** Cuts everything into two halves, nodes included; at times in one direction only. */
  #partition(): void {
    const { random, members } = this.#world;
    const side = new Map(members.map(({ id }) => [id, random.chance(0.5)]));
    const isOneWay = random.chance(0.3);
    const ends = members.flatMap(({ id, isController }) => (isController ? [id, `${id}*`] : [`${id}*`]));
    const of = (end: string): boolean | undefined => side.get(end.replace("*", ""));
    const pairs = ends.flatMap((a) =>
      ends.filter((b) => of(a) !== of(b) && (!isOneWay || of(a))).map((b) => `${a}>${b}`),
    );
    this.#block(pairs, random.between(5_000, 200_000));
  }

  /** Cuts some nodes off from some controllers. */
  #cutNodes(): void {
    const { random, members, controllers } = this.#world;
    const pairs = members.flatMap(({ id }) =>
      controllers
        .filter(() => random.chance(0.3))
        .flatMap((controller) => [`${id}*>${controller.id}`, `${controller.id}>${id}*`]),
    );
    this.#block(pairs, random.between(5_000, 200_000));
  }

  /**
   * Cuts a controller, mostly the owner, off from all others for long, with a node that hears only this controller; half of the time the others
   * still hear the node. So the node may take orders that are long over. At times the cut-off controller takes over by its old records.
   * At times another one, which cannot know of the node's work, takes over and is asked to cancel.
   */
  #strand(): void {
    const { random, machines, controllers, swarm, scheduler } = this.#world;
    const owner = this.#world.ownerOf("u");
    const alone = owner && random.chance(0.6) ? owner : random.pick(controllers);
    const soon = machines.filter(({ state }) => state === "preparing" || state === "prepared");
    const node = `${random.pick(soon.length > 0 && random.chance(0.6) ? soon : machines).id}*`;
    const others = controllers.filter((controller) => controller !== alone);
    const isHeard = random.chance(0.5);
    const pairs = others.flatMap(({ id }) => [
      `${id}>${alone.id}`,
      `${alone.id}>${id}`,
      `${id}>${node}`,
      ...(isHeard ? [] : [`${node}>${id}`]),
    ]);
    const ms = random.between(50_000, swarm.duration);
    this.#block(pairs, ms);
    if (random.chance(swarm.cancels ? 0.6 : 0.3)) this.#world.operator.takeOverAndCancel("u", random.pick(others));
    if (swarm.takeovers === 0 || random.chance(0.7)) return;
    scheduler.after(ms * random.between(0.3, 1), () => {
      if (this.#world.isHealed) return;
      this.#world.operator.takeOver("u", alone);
    });
  }

  /** Cuts a controller off from all others, but from no node. */
  cutOff(id: string, ms: number): void {
    const others = this.#world.controllers.filter((controller) => controller.id !== id);
    this.#block(
      others.flatMap((other) => [`${id}>${other.id}`, `${other.id}>${id}`]),
      ms,
    );
  }

  #crash(): void {
    const { random, controllers } = this.#world;
    const owner = this.#world.ownerOf("u");
    const controller = owner && random.chance(0.6) ? owner : random.pick(controllers);
    if (controller.isUp) this.#world.killProcess(controller, random.between(500, 200_000));
  }

  /** Crashes a node. At times it is one that an order has down, for longer than any wait, while another controller takes over and is asked to cancel. */
  #crashNode(): void {
    const { random, machines, controllers } = this.#world;
    if (random.chance(0.5)) return this.#cutAtWrite();
    const moving = machines.filter(({ downBy, isDead }) => downBy !== undefined && !isDead);
    if (moving.length === 0 || random.chance(0.5))
      return this.#powerFails(random.pick(machines), random.between(5_000, 200_000));
    this.#powerFails(random.pick(moving), random.between(200_000, 400_000));
    const owner = this.#world.ownerOf("u");
    this.#world.operator.takeOverAndCancel("u", random.pick(controllers.filter((controller) => controller !== owner)));
  }

  /** Ends a node's updater at one of its next writes, mostly with its machine. */
  #cutAtWrite(): void {
    const { random, machines, figures } = this.#world;
    const busy = machines.filter(({ isBusy, isDead }) => isBusy && !isDead);
    const ms = random.chance(0.3) ? 0 : random.between(5_000, 100_000);
    figures.cuts++;
    random.pick(busy.length > 0 ? busy : machines).cut = { writes: 1 + random.below(8), ms };
  }

  #switchOff(ms: number): void {
    const { random, machines } = this.#world;
    this.#powerFails(random.pick(machines.filter(({ id }) => !this.#world.isController(id))), ms);
  }

  #powerFails(machine: Machine, ms: number): void {
    if (machine.isDead) return;
    this.#world.figures.nodeCrashes++;
    machine.crash(ms);
  }

  /** A controller in wrong hands gives a node an order of an unsigned epoch. */
  #forge(): void {
    const { random, machines, controllers, figures } = this.#world;
    const machine = random.pick(machines);
    const order = random.pick(controllers).forge("u", machine.id);
    if (!order || !machine.isUp || machine.hasOrder) return;
    figures.forged++;
    void machine.give(order);
  }

  #jump(): void {
    const { random, controllers, machines, figures, scheduler } = this.#world;
    figures.jumps++;
    const target = random.pick<{ offset: number }>(random.chance(0.5) ? controllers : machines);
    const wrong = random.between(-1, 1) * random.pick([0, 5_000, 300_000]);
    target.offset = wrong;
    // Two of three wrong clocks are corrected; the third stays wrong until the faults end.
    if (random.chance(1 / 3)) return;
    scheduler.after(random.between(5_000, 120_000), () => {
      if (target.offset === wrong) target.offset = 0;
    });
  }
}
