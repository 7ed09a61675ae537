import { dirname, join } from "node:path";
import { createBackoff } from "#base/backoff.ts";
import { formatBinary } from "#base/units.ts";
import { KcoreError } from "#errors/problem.ts";
import { unpackedSize, type Bundle } from "#rollout/spec.ts";
import { UpdateFailure } from "./failure.ts";
import { bundleFile } from "./files.ts";
import { describeEnd, isInStore, runOrFail } from "./nix.ts";
import type { UpdaterLog, Ports, FreeSpace } from "./ports.ts";

/** A root of the garbage collector for the runtime that was prepared last. */
const gcRoot = "/nix/var/nix/gcroots/kcore-update";
const store = "/nix/store";
const pauseMs = { base: 500, cap: 15_000 } as const;

/** A bundle lacks the export's end mark, eight zero bytes; a cut bundle gets none, so Nix refuses it (as in nix.profile). */
const importScript = `{ gzip -dc "$1" && head -c 8 /dev/zero; } | nix-store --import >/dev/null`;

interface BundleContext {
  readonly ports: Ports;
  readonly bundle: Bundle;
  /** The folder of updates. */
  readonly folder: string;
  readonly msLeft: () => number;
}

/**
 * Fetches a bundle from a controller, unless the store has its contents. Files of other bundles are removed first; this bundle's file is
 * removed if there is no room for it.
 * @throws UpdateFailure of the kind build; the signal's reason
 */
export async function fetchMissingBundle({
  log,
  signal,
  ...here
}: BundleContext & { readonly log: UpdaterLog; readonly signal: AbortSignal }): Promise<void> {
  const { ports, bundle, folder, msLeft } = here;
  if (await verifyOrDelete(ports, bundle.storePath, msLeft)) return;
  const file = bundleFile(folder, bundle.sha256);
  for (const name of await ports.list(dirname(file)))
    if (!name.startsWith(bundle.sha256)) await ports.remove(join(dirname(file), name));
  // Without jitter: a rollout gives few nodes at a time their orders.
  const backoff = createBackoff({ ...pauseMs, random: () => 1 });
  for (;;) {
    await refuseFull(here);
    try {
      return await ports.download(bundle, file, signal);
    } catch (error) {
      signal.throwIfAborted();
      const { message } = error as Error;
      const isFull = error instanceof KcoreError && error.problems[0]?.code === "UPDATE_BUNDLE_NO_ROOM";
      if (isFull) await dropBundle(ports, file);
      if (isFull || msLeft() <= 0) throw new UpdateFailure("build", message);
      const pause = backoff.next();
      log.warn("the bundle of an update cannot be fetched yet", { retryInMs: pause, error: message });
      await ports.sleep(pause);
    }
  }
}

async function dropBundle(ports: Ports, file: string): Promise<void> {
  await ports.remove(file);
  await ports.remove(`${file}.part`);
}

/**
 * Imports a bundle into the store, unless its contents are there; compares their hash with the signed one, and removes the bundle's file.
 * @throws UpdateFailure of the kind build
 */
export async function importBundle(here: BundleContext): Promise<void> {
  const { ports, bundle, folder, msLeft } = here;
  const { storePath, narHash, sha256 } = bundle;
  const file = bundleFile(folder, sha256);
  const nix = (words: readonly string[]): Promise<string> =>
    runOrFail(ports, words, { kind: "build", limitMs: msLeft() });
  // Before the import, so that the garbage collector never finds it without a root.
  await ports.link(storePath, gcRoot);
  if (!(await verifyOrDelete(ports, storePath, msLeft))) {
    await refuseDifferent(ports, bundle, file);
    await refuseFull(here);
    await nix(["sh", "-c", importScript, "sh", file]);
  }
  const hash = await nix(["nix-store", "-q", "--hash", storePath]);
  if (hash !== narHash) {
    await ports.remove(gcRoot);
    await ports.run(["nix-store", "--delete", storePath], msLeft());
    throw new UpdateFailure("build", `${storePath} is not what the bastion has: wanted ${narHash}, found ${hash}`);
  }
  await nix(["sync"]);
  await dropBundle(ports, file);
}

/**
 * Whether the store has a path with undamaged files; a damaged path is deleted. Nix registers a path before its files are flushed, so a power
 * cut may damage them. @throws UpdateFailure for a damaged path in use
 */
async function verifyOrDelete(ports: Ports, path: string, msLeft: () => number): Promise<boolean> {
  if (!(await isInStore(ports, path, msLeft()))) return false;
  if ((await ports.run(["nix-store", "--verify-path", path], msLeft())).code === 0) return true;
  await ports.remove(gcRoot);
  const deleted = await ports.run(["nix-store", "--delete", path], msLeft());
  if (deleted.code !== 0)
    throw new UpdateFailure(
      "build",
      `the files of ${path} are damaged, and it is in use: kcore orchestrate deploy_node mends it; nix-store ${describeEnd(deleted)}`,
    );
  await ports.link(path, gcRoot);
  return false;
}

async function refuseDifferent(ports: Ports, { sha256, size }: Bundle, file: string): Promise<void> {
  const found = await ports.sizeOf(file);
  if (found === undefined)
    throw new UpdateFailure("build", `the bundle ${sha256} was not fetched: there is no ${file}`);
  const digest = await ports.sha256Of(file);
  if (digest !== sha256 || found !== size)
    throw new UpdateFailure(
      "build",
      `the fetched file is not the bundle that the bastion signed: wanted ${size} bytes with ${sha256}, found ${found} with ${digest}`,
    );
}

/** Refuses a bundle without room for its file or for its contents in the store, and removes the file. @throws UpdateFailure */
async function refuseFull({ ports, bundle, folder }: BundleContext): Promise<void> {
  const file = bundleFile(folder, bundle.sha256);
  const held = Math.max((await ports.sizeOf(file)) ?? 0, (await ports.sizeOf(`${file}.part`)) ?? 0);
  const toFetch = Math.max(bundle.size - held, 0);
  const [here, inStore] = [await ports.room(folder), await ports.room(store)];
  const needed = unpackedSize(bundle) + (inStore.dev === here.dev ? toFetch : 0);
  const refuse = async (path: string, { free }: FreeSpace, bytes: number): Promise<never> => {
    await dropBundle(ports, file);
    throw new UpdateFailure(
      "build",
      `${path} has ${formatBinary(free)} free, and the bundle needs ${formatBinary(bytes)}`,
    );
  };
  if (inStore.free < needed) await refuse(store, inStore, needed);
  if (here.free < toFetch) await refuse(folder, here, toFetch);
}
