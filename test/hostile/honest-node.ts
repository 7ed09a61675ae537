import { isKnown, isSecret, mergeKindOf } from "#controller/cluster/registers.ts";
import { createReplica } from "#controller/replica/create-replica.ts";
import type { Replica } from "#controller/replica/replica.ts";
import { SimDisk } from "../sim/disk.ts";
import type { Endpoint, SimNetwork } from "../sim/network.ts";
import type { Random } from "../sim/random.ts";
import type { Scheduler } from "../sim/scheduler.ts";
import type { Swarm } from "../sim/swarm.ts";

export const cluster = "lies";
export const epoch = 1_700_000_000_000;

/** What the honest members live in. */
export interface Surroundings {
  readonly scheduler: Scheduler;
  readonly network: SimNetwork;
  readonly random: Random;
  readonly swarm: Swarm;
  readonly find: (id: string) => Endpoint | undefined;
}

/** A member as it ships: the real replica with the real kinds of registers; its clock, disk and network are the simulator's. */
export class HonestNode implements Endpoint {
  readonly id: string;
  readonly lineage = 0;
  readonly #disk: SimDisk;
  readonly #world: Surroundings;
  readonly #sponsor: string | undefined;
  /** Its wall clock is nearly right. */
  readonly #offset: number;
  replica: Replica | undefined;
  accept: Endpoint["accept"];
  #process: object | undefined;
  /** Whom alarms named so far, and by which code. */
  readonly alarms = new Set<string>();

  constructor(world: Surroundings, id: string, sponsor?: string) {
    this.#world = world;
    this.id = id;
    this.#sponsor = sponsor;
    this.#offset = Math.floor(world.random.between(-200, 200));
    this.#disk = new SimDisk(world.scheduler, world.random, world.swarm);
    this.boot();
  }

  boot(): void {
    const { scheduler, network, random, find } = this.#world;
    const process = {};
    this.#process = process;
    const inProcess = (run: () => void) => () => {
      if (this.#process === process) run();
    };
    const replica = createReplica({
      id: this.id,
      cluster,
      clock: { wall: () => epoch + scheduler.now + this.#offset, mono: () => scheduler.now },
      rng: () => random.next(),
      timers: scheduler.timers(inProcess),
      net: {
        dial: (target, timeoutMs) => {
          const to = find("id" in target ? target.id : target.address);
          network.dial(this, to, timeoutMs, () => replica.dialFailed(target));
        },
      },
      journal: { append: (records) => this.#disk.append(records) },
      recovered: this.#disk.durable,
      start: this.#sponsor === undefined ? "found" : "join",
      join: this.#sponsor === undefined ? [] : [this.#sponsor],
      mergeKindOf,
      isKnown,
      isSecret,
      log: (_level, message, fields) => {
        const { alarm, about } = (fields ?? {}) as { readonly alarm?: string; readonly about?: string };
        if (alarm !== undefined) this.alarms.add(`${alarm} ${about} ${message}`);
      },
    });
    this.replica = replica;
    this.accept = (link) => replica.connected(link);
  }

  /** Loses its power, and what was not on the disk. */
  crash(): void {
    this.#process = undefined;
    this.replica = undefined;
    this.accept = undefined;
    this.#disk.crash();
  }

  deliver(run: () => void): void {
    run();
  }
}
