import { carryOrders, type Courier } from "#agent/carry-orders.ts";
import { knowOrder } from "#agent/known-order.ts";
import { judgeOrder } from "#rollout/node-fence.ts";
import type { Order } from "#rollout/order.ts";
import type { Fence, Report } from "#rollout/records.ts";
import type { Machine } from "./machine.ts";
import type { RolloutWorld } from "./world.ts";

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** The agent of a node: the product's own part in updates, which has its time and its disk from here. It dies with its machine, and knows nothing then. */
export class SimAgent {
  readonly #world: RolloutWorld;
  readonly #machine: Machine;
  readonly #take: (order: Order) => void;
  #known = knowOrder();
  /** Ends with its process. */
  #process = new AbortController();
  #courier: Courier;
  /** The order that is on its way to the updater. */
  #carried: Order | undefined;

  constructor(world: RolloutWorld, machine: Machine, take: (order: Order) => void) {
    this.#world = world;
    this.#machine = machine;
    this.#take = take;
    this.#courier = this.#begin();
  }

  get isCarrying(): boolean {
    return this.#carried !== undefined;
  }

  die(): void {
    this.#process.abort();
    this.#process = new AbortController();
    this.#known = knowOrder();
    this.#carried = undefined;
    this.#courier = this.#begin();
  }

  /** The order that it tells its controller it knows. */
  asks(report: Report | undefined): Fence | undefined {
    return this.#known.asks(report);
  }

  brings(order: Order): void {
    this.#known.brings(order.fence);
    const { accepted } = this.#machine;
    if (!judgeOrder(accepted && { ...accepted, isBusy: false }, order.fence).accept) return;
    this.#carried = order;
    this.#courier.bring(order, () => {
      this.#carried = undefined;
      this.#known.lost();
    });
  }

  #begin(): Courier {
    const { random, scheduler, swarm } = this.#world;
    const { signal } = this.#process;
    const sleep = (ms: number, either: AbortSignal): Promise<undefined> =>
      new Promise((resolve, reject) => {
        scheduler.after(ms, () => resolve(undefined));
        either.addEventListener("abort", () => reject(either.reason as Error), { once: true });
      });
    return carryOrders({
      signal,
      log: silent,
      sleep,
      dropBundles: () => Promise.resolve(),
      fetch: (_, either) => sleep(random.between(100, 8_000), either),
      write: async (order) => {
        await sleep(random.between(1, 100), signal);
        if (!this.#world.isHealed && random.chance(swarm.drop / 5)) throw new Error("no room");
        if (this.#carried?.fence === order.fence) this.#carried = undefined;
        this.#take(order);
      },
    });
  }
}
