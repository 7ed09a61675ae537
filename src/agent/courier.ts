import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Controllers } from "#api/ask.ts";
import { fetchBundle } from "#api/bundle-transfer.ts";
import { describeError, type Log } from "#api/log.ts";
import { KcoreError } from "#errors/problem.ts";
import { defined } from "#optional/defined.ts";
import type { Order } from "#rollout/order.ts";
import type { Bundle, SignedStatement, Statement } from "#rollout/spec.ts";
import { bundleFile, bundlesFolder, writeOrder } from "#updater/files.ts";

export interface CourierParts {
  /** The folder of updates. */
  readonly folder: string;
  readonly controllers: Pick<Controllers, "ask">;
  /** What a statement says, if it is the word of this cluster's bastion. @throws KcoreError */
  readonly verify: (signed: SignedStatement) => Promise<Statement>;
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
  const { folder, log, verify } = parts;
  let last = new AbortController();
  let bringing: Promise<void> = Promise.resolve();
  const carry = async (order: Order, either: AbortSignal): Promise<void> => {
    if (either.aborted) return;
    // What was prepared lies in the store by now.
    if (order.step === "activate" || order.step === "roll_back")
      await rm(bundlesFolder(folder), { recursive: true, force: true });
    const bundle = order.step === "prepare" ? await bundleOf(order, verify) : undefined;
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

/**
 * What the statement names, where the bastion signed it: a controller in wrong hands must not fill the disk. An order whose statement is
 * none is brought all the same, since the updater says why it refuses it.
 */
async function bundleOf(
  { signed }: Order,
  verify: CourierParts["verify"],
): Promise<(Bundle & { readonly seconds: number }) | undefined> {
  const statement = await verify(signed).catch(() => undefined);
  const { bundle, spec } = statement ?? {};
  return bundle && spec && { ...bundle, seconds: spec.timeouts.prepareSeconds };
}

/** Of another bundle, which was called off, nothing stays: there is room for one. */
async function dropOthers(folder: string, target: string): Promise<void> {
  const others = (await readdir(folder)).map((name) => join(folder, name)).filter((path) => !path.startsWith(target));
  await Promise.all(others.map((path) => rm(path, { recursive: true, force: true })));
}

/** Fetches a bundle from whichever controller has it. Gives why it could not. */
async function fetchFor(
  bundle: Bundle & { readonly seconds: number },
  { folder, controllers, log, signal }: Omit<CourierParts, "verify">,
): Promise<string | undefined> {
  const target = bundleFile(folder, bundle.sha256);
  await mkdir(bundlesFolder(folder), { recursive: true, mode: 0o700 });
  await dropOthers(bundlesFolder(folder), target);
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
