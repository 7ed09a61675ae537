import { SimNetwork } from "../network.ts";
import type { Random } from "#support/random.ts";
import type { Scheduler } from "../scheduler.ts";
import type { RolloutSwarm } from "./swarm.ts";

/** The network between `ID`, a controller, and `ID*`, a node: it loses, repeats and delays messages, and is cut at times. */
export class RolloutNetwork {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #swarm: RolloutSwarm;
  /** The links of the controllers' replicas. */
  readonly links: SimNetwork;
  /** Ordered pairs `from>to` without any traffic. */
  readonly #blocked: Set<string>;
  #isHealed = false;

  constructor(scheduler: Scheduler, random: Random, swarm: RolloutSwarm) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#swarm = swarm;
    // The links are TCP: messages keep their order, and a lost message ends its connection.
    this.links = new SimNetwork(scheduler, random, { ...swarm, drop: swarm.drop / 20, reorder: false, json: false });
    this.#blocked = this.links.blocked;
  }

  heal(): void {
    this.#isHealed = true;
    this.links.heal();
  }

  block(pairs: readonly string[], ms: number): void {
    for (const pair of pairs) this.#blocked.add(pair);
    this.#scheduler.after(ms, () => {
      for (const pair of pairs) this.#blocked.delete(pair);
    });
  }

  #isBlocked(from: string, to: string): boolean {
    return this.#blocked.size > 0 && this.#blocked.has(`${from}>${to}`);
  }

  send(from: string, to: string, run: () => void): void {
    const { drop, duplicate, slow } = this.#swarm;
    const random = this.#random;
    const isHealed = this.#isHealed;
    if (this.#isBlocked(from, to) || (!isHealed && random.chance(drop))) return;
    const delay = (): number =>
      random.between(1, 100) + (!isHealed && random.chance(slow) ? random.between(100, 20_000) : 0);
    const arrive = (): void => {
      if (!this.#isBlocked(from, to)) run();
    };
    this.#scheduler.after(delay(), arrive);
    if (!isHealed && random.chance(duplicate)) this.#scheduler.after(delay() + random.between(0, 30_000), arrive);
  }
}
