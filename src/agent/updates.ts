import { mkdir, watch } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Controllers } from "#api/ask.ts";
import { ApiRefusal } from "#api/client.ts";
import { describeError, type Log } from "#api/log.ts";
import type { UpdateAnswer } from "#api/update-schemas.ts";
import { defined } from "#optional/defined.ts";
import { judgeOrder } from "#rollout/node-fence.ts";
import type { Order } from "#rollout/order.ts";
import { readAccepted, readReport, updatesFolder } from "#updater/files.ts";
import { readStatement, type StatementFiles } from "#updater/read-statement.ts";
import { openCourier } from "./courier.ts";
import { knowOrder } from "./known-order.ts";

export interface NodeUpdatesParts {
  readonly nodeId: string;
  readonly stateDir: string;
  readonly tls: StatementFiles;
  /** Connections of its own: an exchange waits for its answer. */
  readonly controllers: Controllers;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** The agent's part in cluster updates: it carries orders to the updater, and the node's word to the controllers. It changes nothing itself. */
export interface NodeUpdates {
  /** A rollout concerns this node: its orders are asked for until it does no more. */
  readonly concern: () => void;
  readonly stop: () => Promise<void>;
}

const pauseMs = { shortest: 500, longest: 15_000 } as const;

export function followUpdates(parts: NodeUpdatesParts): NodeUpdates {
  const stopped = new AbortController();
  const signal = AbortSignal.any([parts.signal, stopped.signal]);
  let going: Promise<void> | undefined;
  const concern = (): void => {
    if (signal.aborted) return;
    going ??= follow({ ...parts, signal })
      .catch((error: unknown) => {
        if (!signal.aborted) parts.log.warn("updates cannot be followed", describeError(error));
      })
      .finally(() => (going = undefined));
  };
  return {
    concern,
    async stop() {
      stopped.abort();
      await going;
    },
  };
}

/** Asks and tells in turn, until no rollout concerns this node any more. */
async function follow({ nodeId, stateDir, tls, controllers, signal, log }: NodeUpdatesParts): Promise<void> {
  const folder = updatesFolder(stateDir);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const order = knowOrder();
  let pause: number = pauseMs.shortest;
  const courier = openCourier({ folder, controllers, verify: (signed) => readStatement(signed, tls), log, signal });
  try {
    while (!signal.aborted) {
      const report = await readReport(folder);
      const known = order.asks(report);
      let answer: UpdateAnswer | undefined;
      try {
        const said = { nodeId, ...defined({ report, known }) };
        answer = await untilOtherwise(folder, report?.epoch, signal, (either) =>
          controllers.ask((client) => client.call("exchangeUpdate", said, { signal: either })),
        );
        pause = pauseMs.shortest;
      } catch (error) {
        // Refused: the next heartbeat tells whether there is still something to ask.
        if (signal.aborted || error instanceof ApiRefusal) return;
        log.warn("no controller took this node's word about an update", { retryInMs: pause, ...describeError(error) });
        await sleep(pause, undefined, { signal });
        pause = Math.min(2 * pause, pauseMs.longest);
        continue;
      }
      // There is something new to tell.
      if (!answer) continue;
      if (!answer.concerned) return;
      const { order: given } = answer;
      if (!given) continue;
      order.brings(given.fence);
      // Its owner may tell it for as long as he lives; what the bastion has brought meanwhile is not to be touched for it.
      if (!(await mayAccept(folder, given))) continue;
      // One that did not reach the updater is asked for again.
      courier.bring(given, order.lost);
    }
  } finally {
    await courier.stop();
  }
}

/** Whether the node takes this order now, or will when it is not busy. */
async function mayAccept(folder: string, { fence }: Order): Promise<boolean> {
  const accepted = await readAccepted(folder);
  return judgeOrder(accepted && { ...accepted, isBusy: false }, fence).accept;
}

/** The answer; undefined when the node has a new word before it comes: then nobody waits for it any more. */
async function untilOtherwise<Answer>(
  folder: string,
  told: number | undefined,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer | undefined> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  let isNews = false;
  const look = async (): Promise<void> => {
    for await (const _ of watch(folder, { signal: either })) {
      if ((await readReport(folder))?.epoch === told) continue;
      isNews = true;
      over.abort();
    }
  };
  const looking = look().catch(() => undefined);
  try {
    // What came between the last look and the watch.
    if ((await readReport(folder))?.epoch !== told) return undefined;
    return await ask(either);
  } catch (error) {
    if (isNews && !signal.aborted) return undefined;
    throw error;
  } finally {
    over.abort();
    await looking;
  }
}
