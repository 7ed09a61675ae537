import type { Fence, Report } from "#rollout/records.ts";
import type { SimOrder } from "./memory.ts";

/** What a node's agent knows of orders, as src/agent/updates.ts does: what it brought to the updater, until that has said something new. */
export class Agent {
  known: Fence | undefined;
  #word: number | undefined;

  readonly #brought = new WeakSet<SimOrder>();

  /** An answer comes once, whatever becomes of what is in it. */
  brings(order: SimOrder): void {
    if (!this.#brought.has(order)) this.known = order.fence;
    this.#brought.add(order);
  }

  /** It reads the node's word before it asks. */
  asks(report: Report | undefined): void {
    if (report?.epoch !== this.#word) this.known = report?.fence;
    this.#word = report?.epoch;
  }
}
