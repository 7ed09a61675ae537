import { mkdir, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Controllers } from "#api/ask.ts";
import { fetchBundle } from "#api/bundle-transfer.ts";
import { describeError, type Log } from "#api/log.ts";
import { KcoreError } from "#errors/problem.ts";
import { defined } from "#optional/defined.ts";
import type { Order } from "#rollout/order.ts";
import { Statement, type Bundle } from "#rollout/spec.ts";
import { bundleFile, bundlesFolder, writeOrder } from "#updater/files.ts";

export interface CourierParts {
  /** The folder of updates. */
  readonly folder: string;
  readonly controllers: Pick<Controllers, "ask">;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** Brings orders to the updater, one after the other: the last one is what lies there, whatever the others took. */
export interface Courier {
  /** What an order needs is fetched first. A later order ends that: nobody waits for the former one any more. */
  readonly bring: (order: Order, onLost: () => void) => void;
  readonly stop: () => Promise<void>;
}

const pauseMs = { shortest: 500, longest: 15_000 } as const;

export function openCourier({ signal, ...parts }: CourierParts): Courier {
  const { folder, log } = parts;
  let last = new AbortController();
  let bringing: Promise<void> = Promise.resolve();
  const carry = async (order: Order, either: AbortSignal): Promise<void> => {
    if (either.aborted) return;
    // What was prepared lies in the store by now.
    if (order.step === "activate" || order.step === "roll_back")
      await rm(bundlesFolder(folder), { recursive: true, force: true });
    const bundle = order.step === "prepare" ? bundleOf(order) : undefined;
    const problem = bundle && (await fetchFor(bundle, { ...parts, signal: either }));
    if (!either.aborted) await writeOrder(folder, { ...order, ...defined({ problem }) });
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
          await sleep(pauseMs.longest, undefined, { signal: either }).catch(() => undefined);
          if (!either.aborted) onLost();
        });
    },
    async stop() {
      last.abort();
      await bringing;
    },
  };
}

/** What the statement names. Nothing of it is believed here: the updater looks whose word it is. */
function bundleOf({ signed }: Order): (Bundle & { readonly seconds: number }) | undefined {
  const { success, data } = Statement.safeParse(JSON.parse(signed.statement));
  return success && data.bundle ? { ...data.bundle, seconds: data.spec.timeouts.prepareSeconds } : undefined;
}

/** Fetches a bundle from whichever controller has it. Gives why it could not. */
async function fetchFor(
  bundle: Bundle & { readonly seconds: number },
  { folder, controllers, log, signal }: CourierParts,
): Promise<string | undefined> {
  const target = bundleFile(folder, bundle.sha256);
  await mkdir(bundlesFolder(folder), { recursive: true, mode: 0o700 });
  const until = performance.now() + bundle.seconds * 1000;
  for (let pause: number = pauseMs.shortest; ; pause = Math.min(2 * pause, pauseMs.longest)) {
    try {
      await controllers.ask((client) => fetchBundle(client, bundle, target, { signal }));
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const isFull = error instanceof KcoreError && error.problems[0]?.code === "UPDATE_BUNDLE_NO_ROOM";
      if (isFull || performance.now() > until) return (error as Error).message;
      log.warn("the bundle of an update cannot be fetched yet", { retryInMs: pause, ...describeError(error) });
      await sleep(pause, undefined, { signal });
    }
  }
}
