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

/** The effects that deliverOrders needs. */
export interface DeliveryPorts {
  readonly nodeId: string;
  /** Reads the orders that the updater has accepted, with its report. */
  readonly readAccepted: () => Promise<Accepted | undefined>;
  /** Yields whenever there may be a new report, until the signal. */
  readonly watch: (signal: AbortSignal) => AsyncIterable<unknown>;
  /** Asks the controllers. @throws KcoreError, ApiRefusal; the signal's reason */
  readonly exchange: (message: BodyOf<"exchangeUpdate">, signal: AbortSignal) => Promise<UpdateAnswer>;
  /** Puts an order into the updater's inbox. */
  readonly writeOrder: (order: Order) => Promise<void>;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** Milliseconds between failed exchanges. */
const pauseMs = { base: 500, cap: 15_000 } as const;

/**
 * Delivers orders of the controllers to this node's updater, and the updater's reports to the controllers. `controllers` has
 * connections of its own, because an exchange occupies one while it waits for an order.
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
    exchange: (message, signal) => controllers.ask((client) => client.call("exchangeUpdate", message, { signal })),
    writeOrder: (order) => writeOrder(folder, order),
    sleep: wait,
  });
}

export type OrderDelivery = ReturnType<typeof deliverOrders>;

/** The agent's part in cluster updates: brings orders to the updater and its reports to the controllers, while a rollout concerns the node. */
export function deliverOrders(ports: DeliveryPorts) {
  const stopped = new AbortController();
  const signal = AbortSignal.any([ports.signal, stopped.signal]);
  let delivery: Promise<void> | undefined;
  return {
    /** Asks for orders until no rollout concerns this node, or a controller refuses; does nothing while that is under way. */
    start: (): void => {
      if (signal.aborted) return;
      delivery ??= deliver({ ...ports, signal })
        .catch((error: unknown) => {
          if (!signal.aborted) ports.log.warn("updates cannot be followed", describeError(error));
        })
        .finally(() => (delivery = undefined));
    },
    async stop(): Promise<void> {
      stopped.abort();
      await delivery;
    },
  };
}

async function deliver(ports: DeliveryPorts): Promise<void> {
  const { nodeId, sleep, signal, log, random } = ports;
  const backoff = createBackoff({ ...pauseMs, random });
  /** The token of the order that the controller need not send again. */
  let known: FencingToken | undefined;
  let reported: number | undefined;
  while (!signal.aborted) {
    const { report } = (await ports.readAccepted()) ?? {};
    // A busy updater refuses an order without an answer, and may be free after its next report. Then the controller
    // must send the order again.
    if (report?.epoch !== reported) known = report?.fence;
    reported = report?.epoch;
    try {
      const message = { nodeId, ...omitUndefined({ report, known }) };
      const answer = await untilNextReport(ports, reported, (stop) => ports.exchange(message, stop));
      if (answer?.concerned === false) return;
      if (answer?.order) {
        await writeUnlessStale(ports, answer.order);
        known = answer.order.fence;
      }
      backoff.reset();
    } catch (error) {
      // After a refusal the next heartbeat's answer says whether a rollout still concerns this node.
      if (signal.aborted || error instanceof ApiRefusal) return;
      const pause = Math.round(backoff.next());
      log.warn("an update cannot be followed yet", { retryInMs: pause, ...describeError(error) });
      await sleep(pause, signal);
    }
  }
}

/**
 * Puts an order into the inbox, unless the updater has accepted the order or would refuse it for ever: a former owner's
 * order must not replace an order that the updater has not taken.
 */
async function writeUnlessStale(
  { readAccepted: read, writeOrder: write, log }: DeliveryPorts,
  order: Order,
): Promise<void> {
  const { fence, past = [] } = (await read()) ?? {};
  if (!checkOrder(fence && { fence, past, isBusy: false }, order.fence).accept) return;
  log.info("an order of an update", { update: order.fence.name, step: order.step, ...order.fence });
  await write(order);
}

/** Asks, and resolves with the answer; undefined if the updater makes a new report first. */
async function untilNextReport<Answer>(
  { readAccepted: read, watch: changes, signal }: DeliveryPorts,
  reported: number | undefined,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer | undefined> {
  const ended = new AbortController();
  const stop = AbortSignal.any([signal, ended.signal]);
  let hasNewReport = false;
  const watchReports = async (): Promise<void> => {
    for await (const _ of changes(stop)) {
      if ((await read())?.report?.epoch === reported) continue;
      hasNewReport = true;
      ended.abort();
    }
  };
  const watching = watchReports().catch(() => undefined);
  try {
    // A report may have come before the watch began.
    if ((await read())?.report?.epoch !== reported) return undefined;
    return await ask(stop);
  } catch (error) {
    if (hasNewReport && !signal.aborted) return undefined;
    throw error;
  } finally {
    ended.abort();
    await watching;
  }
}
