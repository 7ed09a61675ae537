import { mkdir, watch } from "node:fs/promises";
import type { Controllers } from "#api/ask.ts";
import { ApiRefusal } from "#api/client.ts";
import { describeError, type Log } from "#api/log.ts";
import type { BodyOf } from "#api/methods.ts";
import type { UpdateAnswer } from "#api/update-schemas.ts";
import { createBackoff } from "#base/backoff.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { wait } from "#base/wait.ts";
import { checkOrder } from "#rollout/node-fence.ts";
import type { Order } from "#rollout/order.ts";
import type { FencingToken } from "#rollout/records.ts";
import { updatesFolder, writeOrder } from "#updater/files.ts";
import { readAccepted, type Accepted } from "#updater/journal.ts";

export interface DeliveryPorts {
  readonly nodeId: string;
  /** Reads the orders that the updater has accepted, with its report. */
  readonly readAccepted: () => Promise<Accepted | undefined>;
  /** Yields whenever there may be a new report, until the signal. */
  readonly watch: (signal: AbortSignal) => AsyncIterable<unknown>;
  /** Asks the controllers. @throws KcoreError, ApiRefusal; the signal's reason */
  readonly exchange: (said: BodyOf<"exchangeUpdate">, signal: AbortSignal) => Promise<UpdateAnswer>;
  /** Puts an order into the updater's inbox. */
  readonly give: (order: Order) => Promise<void>;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly log: Log;
}

const pauseMs = { base: 500, cap: 15_000 } as const;

/**
 * Delivers orders of the controllers to this node's updater, and its reports to them. `controllers` has connections of
 * its own, because an exchange keeps one busy while it waits for an order.
 */
export function deliverUpdates({
  stateDir,
  controllers,
  ...ports
}: Pick<DeliveryPorts, "nodeId" | "signal" | "log" | "random"> & {
  readonly stateDir: string;
  readonly controllers: Controllers;
}): OrderDelivery {
  const folder = updatesFolder(stateDir);
  return deliverOrders({
    ...ports,
    readAccepted: () => readAccepted(folder),
    async *watch(signal) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      yield* watch(folder, { signal });
    },
    exchange: (said, signal) => controllers.ask((client) => client.call("exchangeUpdate", said, { signal })),
    give: (order) => writeOrder(folder, order),
    sleep: wait,
  });
}

export type OrderDelivery = ReturnType<typeof deliverOrders>;

/** The agent's part in cluster updates: brings orders to the updater, and its report to the controllers, while a rollout concerns the node. */
export function deliverOrders(ports: DeliveryPorts) {
  const stopped = new AbortController();
  const signal = AbortSignal.any([ports.signal, stopped.signal]);
  let going: Promise<void> | undefined;
  return {
    /** Starts asking for orders, until no rollout concerns this node any more. */
    concern: (): void => {
      if (signal.aborted) return;
      going ??= deliver({ ...ports, signal })
        .catch((error: unknown) => {
          if (!signal.aborted) ports.log.warn("updates cannot be followed", describeError(error));
        })
        .finally(() => (going = undefined));
    },
    async stop(): Promise<void> {
      stopped.abort();
      await going;
    },
  };
}

async function deliver(ports: DeliveryPorts): Promise<void> {
  const { nodeId, sleep, signal, log, random } = ports;
  const backoff = createBackoff({ ...pauseMs, random });
  /** The order that the controller need not give again. */
  let known: FencingToken | undefined;
  let reported: number | undefined;
  while (!signal.aborted) {
    const { report } = (await ports.readAccepted()) ?? {};
    // A busy updater refuses an order without an answer. After its next report it may be free, so the order is asked
    // for again.
    if (report?.epoch !== reported) known = report?.fence;
    reported = report?.epoch;
    try {
      const said = { nodeId, ...omitUndefined({ report, known }) };
      const answer = await untilNextReport(ports, reported, (either) => ports.exchange(said, either));
      if (answer?.concerned === false) return;
      if (answer?.order) {
        await giveIfNews(ports, answer.order);
        known = answer.order.fence;
      }
      backoff.reset();
    } catch (error) {
      // After a refusal the next heartbeat shows whether an exchange is still of use.
      if (signal.aborted || error instanceof ApiRefusal) return;
      const pause = Math.round(backoff.next());
      log.warn("an update cannot be followed yet", { retryInMs: pause, ...describeError(error) });
      await sleep(pause, signal);
    }
  }
}

/**
 * Gives the updater an order, unless the updater would refuse it for ever: a former owner's order must not replace the
 * bastion's in the inbox.
 */
async function giveIfNews({ readAccepted: read, give, log }: DeliveryPorts, order: Order): Promise<void> {
  const { fence, past = [] } = (await read()) ?? {};
  if (!checkOrder(fence && { fence, past, isBusy: false }, order.fence).accept) return;
  log.info("an order of an update", { update: order.fence.name, step: order.step, ...order.fence });
  await give(order);
}

/** Waits for the answer; undefined if the updater makes a new report before. */
async function untilNextReport<Answer>(
  { readAccepted: read, watch: changes, signal }: DeliveryPorts,
  reported: number | undefined,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer | undefined> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  let isNews = false;
  const look = async (): Promise<void> => {
    for await (const _ of changes(either)) {
      if ((await read())?.report?.epoch === reported) continue;
      isNews = true;
      over.abort();
    }
  };
  const looking = look().catch(() => undefined);
  try {
    // A report may have come before the watch began.
    if ((await read())?.report?.epoch !== reported) return undefined;
    return await ask(either);
  } catch (error) {
    if (isNews && !signal.aborted) return undefined;
    throw error;
  } finally {
    over.abort();
    await looking;
  }
}
