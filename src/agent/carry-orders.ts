import { describeError, type Log } from "#api/log.ts";
import { defined } from "#optional/defined.ts";
import type { Order } from "#rollout/order.ts";

/** Brings orders to the updater one after the other, so that the updater finds the last one that was given. */
export interface Courier {
  /** Fetches the bundle that the order needs, then writes the order. A later order ends the fetch of an earlier one. */
  readonly bring: (order: Order, onLost: () => void) => void;
  readonly stop: () => Promise<void>;
}

export interface CourierPorts {
  readonly dropBundles: () => Promise<void>;
  /** Fetches the bundle of an order to prepare; gives the reason when that failed. @throws the signal's reason */
  readonly fetch: (order: Order, signal: AbortSignal) => Promise<string | undefined>;
  /** Gives the updater the order. */
  readonly write: (order: Order) => Promise<void>;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** An order that could not be written is asked for again after so long. */
const lostMs = 15_000;

export function carryOrders(ports: CourierPorts): Courier {
  const { log, signal } = ports;
  let last = new AbortController();
  let bringing: Promise<void> = Promise.resolve();
  const carry = async (order: Order, either: AbortSignal): Promise<void> => {
    if (either.aborted) return;
    // The prepared runtime is in the store by now.
    if (order.step === "activate" || order.step === "roll_back") await ports.dropBundles();
    const problem = order.step === "prepare" ? await ports.fetch(order, either) : undefined;
    if (!either.aborted) await ports.write({ ...order, ...defined({ problem }) });
  };
  return {
    bring(order, onLost) {
      const { step, fence } = order;
      const { name: update, epoch, seq } = fence;
      log.info("an order of an update", { update, step, epoch, seq });
      last.abort();
      last = new AbortController();
      const either = AbortSignal.any([signal, last.signal]);
      bringing = bringing
        .then(() => carry(order, either))
        .catch(async (error: unknown) => {
          if (either.aborted) return;
          log.error("an order could not be given to the updater", describeError(error));
          await ports.sleep(lostMs, either).catch(() => undefined);
          if (!either.aborted) onLost();
        });
    },
    async stop() {
      last.abort();
      await bringing;
    },
  };
}
