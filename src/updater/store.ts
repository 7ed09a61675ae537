import { formatBinary } from "#base/units.ts";
import type { Bundle } from "#rollout/spec.ts";
import { UpdateFailure } from "./failure.ts";
import { describeEnd, isInStore, must } from "./nix.ts";
import type { Ports } from "./ports.ts";

/** A root of the garbage collector for what is prepared: nothing else holds it until it is activated. */
const root = "/nix/var/nix/gcroots/kcore-update";
/** So much stays free in the store's file system. */
const reserve = 64 * 2 ** 20;

/** Without the end mark nothing is whole (as in nix.profile). */
const importScript = `{ gzip -dc "$1" && head -c 8 /dev/zero; } | nix-store --import >/dev/null`;

/**
 * Brings a bundle into the store, whole and as the bastion built it; nothing happens where it is already.
 * @throws UpdateFailure of the kind build
 */
export async function importBundle(
  ports: Ports,
  { bundle, file, left }: { readonly bundle: Bundle; readonly file: string; readonly left: () => number },
): Promise<void> {
  const { storePath, narHash } = bundle;
  const said = (words: readonly string[]): Promise<string> => must(ports, words, { kind: "build", limitMs: left() });
  // First: what is imported must not be collected before anybody uses it.
  await ports.link(storePath, root);
  if (!(await isWhole(ports, storePath, left))) {
    await refuseDifferent(ports, bundle, file);
    await refuseFull(ports, file);
    await said(["sh", "-c", importScript, "sh", file]);
  }
  const hash = await said(["nix-store", "-q", "--hash", storePath]);
  if (hash !== narHash) {
    await ports.remove(root);
    await ports.run(["nix-store", "--delete", storePath], left());
    throw new UpdateFailure("build", `${storePath} is not what the bastion has: wanted ${narHash}, found ${hash}`);
  }
  await said(["sync"]);
}

/** Nix registers a path before its files are surely on the disk, so after a power cut its word alone is not enough. */
async function isWhole(ports: Ports, path: string, left: () => number): Promise<boolean> {
  if (!(await isInStore(ports, path, left()))) return false;
  if ((await ports.run(["nix-store", "--verify-path", path], left())).code === 0) return true;
  await ports.remove(root);
  const deleted = await ports.run(["nix-store", "--delete", path], left());
  if (deleted.code !== 0)
    throw new UpdateFailure(
      "build",
      `the files of ${path} are damaged, and it is in use: kcore orchestrate deploy_node mends it; nix-store ${describeEnd(deleted)}`,
    );
  await ports.link(path, root);
  return false;
}

async function refuseDifferent(ports: Ports, { sha256, size }: Bundle, file: string): Promise<void> {
  const found = await ports.readBundle(file);
  if (!found) throw new UpdateFailure("build", `the bundle ${sha256} was not fetched: there is no ${file}`);
  if (found.sha256 !== sha256 || found.size !== size)
    throw new UpdateFailure(
      "build",
      `what was fetched is not the bundle that the bastion signed: wanted ${size} bytes with ${sha256}, found ${found.size} with ${found.sha256}`,
    );
}

async function refuseFull(ports: Ports, file: string): Promise<void> {
  const needed = ((await ports.readBundle(file))?.unpacked ?? 0) + reserve;
  const free = await ports.freeBytes("/nix/store");
  if (free >= needed) return;
  // A bundle that cannot be unpacked must not take room either.
  await ports.remove(file);
  throw new UpdateFailure(
    "build",
    `/nix/store has ${formatBinary(free)} free, and the bundle needs ${formatBinary(needed)}`,
  );
}
