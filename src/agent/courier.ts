import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Controllers } from "#api/ask.ts";
import { fetchBundle } from "#api/bundle-transfer.ts";
import { describeError, type Log } from "#api/log.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Order } from "#rollout/order.ts";
import type { Bundle, SignedStatement, Statement } from "#rollout/spec.ts";
import { bundleFile, bundlesFolder, writeOrder } from "#updater/files.ts";
import { carryOrders, type Courier } from "./carry-orders.ts";

export interface CourierParts {
  /** The folder of updates. */
  readonly folder: string;
  readonly controllers: Pick<Controllers, "ask">;
  /** What a statement says, if it is the word of this cluster's bastion. @throws KcoreError */
  readonly verify: (signed: SignedStatement) => Promise<Statement>;
  readonly signal: AbortSignal;
  readonly log: Log;
}

const pauseMs = { shortest: 500, longest: 15_000 } as const;

export function openCourier({ signal, ...parts }: CourierParts): Courier {
  const { folder, log, verify } = parts;
  return carryOrders({
    log,
    signal,
    dropBundles: () => rm(bundlesFolder(folder), { recursive: true, force: true }),
    async fetch(order, either) {
      const bundle = await bundleOf(order, verify);
      return bundle && fetchFor(bundle, { ...parts, signal: either });
    },
    write: (order) => writeOrder(folder, order),
    sleep: (ms, either) => sleep(ms, undefined, { signal: either }),
  });
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
