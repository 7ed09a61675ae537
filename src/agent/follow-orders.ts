import { ApiRefusal } from "#api/client.ts";
import { describeError, type Log } from "#api/log.ts";
import type { BodyOf } from "#api/methods.ts";
import type { UpdateAnswer } from "#api/update-schemas.ts";
import { defined } from "#optional/defined.ts";
import { judgeOrder, type Remembered } from "#rollout/node-fence.ts";
import type { Order } from "#rollout/order.ts";
import type { Report } from "#rollout/records.ts";
import type { Courier } from "./carry-orders.ts";
import { knowOrder } from "./known-order.ts";

/** The agent's part in cluster updates: it carries orders to the updater, and the node's word to the controllers. It changes nothing itself. */
export interface NodeUpdates {
  /** A rollout concerns this node: its orders are asked for until it does no more. */
  readonly concern: () => void;
  readonly stop: () => Promise<void>;
}

/** Calls `follow` when a rollout concerns the node, unless it is followed already. */
export function followWhileConcerned(
  { signal: always, log }: { readonly signal: AbortSignal; readonly log: Log },
  follow: (signal: AbortSignal) => Promise<void>,
): NodeUpdates {
  const stopped = new AbortController();
  const signal = AbortSignal.any([always, stopped.signal]);
  let going: Promise<void> | undefined;
  return {
    concern() {
      if (signal.aborted) return;
      going ??= follow(signal)
        .catch((error: unknown) => {
          if (!signal.aborted) log.warn("updates cannot be followed", describeError(error));
        })
        .finally(() => (going = undefined));
    },
    async stop() {
      stopped.abort();
      await going;
    },
  };
}

export interface FollowPorts {
  readonly nodeId: string;
  /** The node's present word; undefined: it has none. */
  readonly readReport: () => Promise<Report | undefined>;
  /** The orders that the node has accepted; undefined: none. */
  readonly readAccepted: () => Promise<Omit<Remembered, "isBusy"> | undefined>;
  /** Yields whenever the node may have a new word, until the signal. */
  readonly watch: (signal: AbortSignal) => AsyncIterable<unknown>;
  /** Asks the controllers. @throws KcoreError, ApiRefusal; the signal's reason */
  readonly exchange: (said: BodyOf<"exchangeUpdate">, signal: AbortSignal) => Promise<UpdateAnswer>;
  readonly courier: Courier;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly signal: AbortSignal;
  readonly log: Log;
}

const pauseMs = { shortest: 500, longest: 15_000 } as const;

/** Asks and tells in turn, until no rollout concerns this node any more. */
export async function followOrders(ports: FollowPorts): Promise<void> {
  const { nodeId, courier, sleep, signal, log } = ports;
  const order = knowOrder();
  let pause: number = pauseMs.shortest;
  try {
    while (!signal.aborted) {
      const report = await ports.readReport();
      const known = order.asks(report);
      let answer: UpdateAnswer | undefined;
      try {
        const said = { nodeId, ...defined({ report, known }) };
        answer = await untilOtherwise(ports, report?.epoch, (either) => ports.exchange(said, either));
        pause = pauseMs.shortest;
      } catch (error) {
        // Refused: the next heartbeat tells whether there is still something to ask.
        if (signal.aborted || error instanceof ApiRefusal) return;
        log.warn("no controller took this node's word about an update", { retryInMs: pause, ...describeError(error) });
        await sleep(pause, signal);
        pause = Math.min(2 * pause, pauseMs.longest);
        continue;
      }
      // There is something new to tell.
      if (!answer) continue;
      if (!answer.concerned) return;
      const { order: given } = answer;
      if (!given) continue;
      order.brings(given.fence);
      // A former owner may give its order again; the bundle that the bastion has brought since must not go for that.
      if (!(await mayAccept(ports, given))) continue;
      // One that did not reach the updater is asked for again.
      courier.bring(given, order.lost);
    }
  } finally {
    await courier.stop();
  }
}

/** Whether the node takes this order now, or will when it is not busy. */
async function mayAccept({ readAccepted }: Pick<FollowPorts, "readAccepted">, { fence }: Order): Promise<boolean> {
  const accepted = await readAccepted();
  return judgeOrder(accepted && { ...accepted, isBusy: false }, fence).accept;
}

/** The answer; undefined when the node has a new word before it comes: then nobody waits for it any more. */
async function untilOtherwise<Answer>(
  { readReport, watch, signal }: Pick<FollowPorts, "readReport" | "watch" | "signal">,
  told: number | undefined,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer | undefined> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  let isNews = false;
  const look = async (): Promise<void> => {
    for await (const _ of watch(either)) {
      if ((await readReport())?.epoch === told) continue;
      isNews = true;
      over.abort();
    }
  };
  const looking = look().catch(() => undefined);
  try {
    // What came between the last look and the watch.
    if ((await readReport())?.epoch !== told) return undefined;
    return await ask(either);
  } catch (error) {
    if (isNews && !signal.aborted) return undefined;
    throw error;
  } finally {
    over.abort();
    await looking;
  }
}
