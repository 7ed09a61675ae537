import { access, mkdir, readdir, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { formatBinary } from "#base/units.ts";
import type { Controllers } from "#api/ask.ts";
import { fetchBundle } from "#api/bundle-transfer.ts";
import { describeError, type Log } from "#api/log.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Order } from "#rollout/order.ts";
import { Statement, unpackedSize, type Bundle, type SignedStatement } from "#rollout/spec.ts";
import { bundleFile, bundlesFolder, writeOrder } from "#updater/files.ts";
import { carryOrders, type Courier } from "./carry-orders.ts";

export interface CourierParts {
  /** The folder of updates. */
  readonly folder: string;
  readonly controllers: Pick<Controllers, "ask">;
  /** Gives what a statement says once this cluster's bastion has signed it. @throws KcoreError */
  readonly verify: (signed: SignedStatement) => Promise<unknown>;
  readonly signal: AbortSignal;
  readonly log: Log;
  /** Gives the free bytes and the device of the file system that holds a path; undefined if there is no such path. */
  readonly room?: (path: string) => Promise<Room | undefined>;
}

interface Room {
  readonly free: number;
  readonly dev: number;
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
  const { bundle, spec } = Statement.safeParse(await verify(signed).catch(() => undefined)).data ?? {};
  return bundle && spec && { ...bundle, seconds: spec.timeouts.prepareSeconds };
}

/** Removes every bundle but the target's: the folder is to hold one. */
async function dropOthers(folder: string, target?: string): Promise<void> {
  const paths = (await readdir(folder)).map((name) => join(folder, name));
  const others = paths.filter((path) => target === undefined || !path.startsWith(target));
  await Promise.all(others.map((path) => rm(path, { recursive: true, force: true })));
}

async function roomAt(path: string): Promise<Room | undefined> {
  const [disk, entry] = await Promise.all([statfs(path), stat(path)]).catch(() => []);
  return disk && entry && { free: disk.bavail * disk.bsize, dev: entry.dev };
}

/** Why a bundle has no room, compressed in its folder or unpacked in the store; undefined: it has. */
async function shortOfRoom(
  bundle: Bundle,
  target: string,
  room: NonNullable<CourierParts["room"]>,
): Promise<string | undefined> {
  const sizeOf = (path: string): Promise<number> =>
    stat(path).then(
      ({ size }) => size,
      () => 0,
    );
  const isThere = await access(bundle.storePath).then(
    () => true,
    () => false,
  );
  const held = Math.max(await sizeOf(target), await sizeOf(`${target}.part`));
  const [here, store] = await Promise.all([room(dirname(target)), room("/nix/store")]);
  const toFetch = Math.max(bundle.size - held, 0);
  const toUnpack = isThere ? 0 : unpackedSize(bundle);
  const tell = (path: string, { free }: Room, needed: number): string =>
    `${path} has ${formatBinary(free)} free, and the bundle needs ${formatBinary(needed)}`;
  const inStore = store?.dev === here?.dev ? toFetch + toUnpack : toUnpack;
  if (store && store.free < inStore) return tell("/nix/store", store, inStore);
  return here && here.free < toFetch ? tell(dirname(target), here, toFetch) : undefined;
}

/** Fetches a bundle from a controller that has it, or gives the reason why not. Without room, no part of the bundle stays. */
async function fetchFor(
  bundle: Bundle & { readonly seconds: number },
  { folder, controllers, log, signal, room = roomAt }: Omit<CourierParts, "verify">,
): Promise<string | undefined> {
  const target = bundleFile(folder, bundle.sha256);
  await mkdir(bundlesFolder(folder), { recursive: true, mode: 0o700 });
  await dropOthers(bundlesFolder(folder), target);
  const drop = (): Promise<void> => dropOthers(bundlesFolder(folder));
  const short = await shortOfRoom(bundle, target, room);
  if (short !== undefined) return drop().then(() => short);
  const until = performance.now() + bundle.seconds * 1000;
  for (let pause: number = pauseMs.shortest; ; pause = Math.min(2 * pause, pauseMs.longest)) {
    try {
      await controllers.ask((client) => fetchBundle(client, bundle, target, { signal }));
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const isFull = error instanceof KcoreError && error.problems[0]?.code === "UPDATE_BUNDLE_NO_ROOM";
      if (isFull) await drop();
      if (isFull || performance.now() > until) return (error as Error).message;
      log.warn("the bundle of an update cannot be fetched yet", { retryInMs: pause, ...describeError(error) });
      await sleep(pause, undefined, { signal });
    }
  }
}
