import { readFile, readlink, realpath, statfs } from "node:fs/promises";
import type { RuntimeFacts } from "#api/runtime-facts.ts";
import { isThere } from "#base/file.ts";
import { defined } from "#optional/defined.ts";

const profile = "/nix/var/nix/profiles/kcore";

/** The runtime that this node's profile is at; undefined where there is no such profile. */
export async function readRuntime(): Promise<RuntimeFacts | undefined> {
  try {
    const [id, link] = await Promise.all([realpath(profile), readlink(profile)]);
    const number = /-(\d+)-link$/.exec(link)?.[1];
    return {
      id,
      // The updater has a runtime of its own, and systemd starts it when an order comes.
      canUpdate: await areThere(`${profile}-updater/bin/kcore-node`, "/etc/systemd/system/kcore-updater.path"),
      nixos: await areThere("/etc/NIXOS"),
      ...defined({ generation: number === undefined ? undefined : Number(number), arch: await archOf(id) }),
    };
  } catch {
    return undefined;
  }
}

async function areThere(...paths: readonly string[]): Promise<boolean> {
  return (await Promise.all(paths.map((path) => isThere(path)))).every(Boolean);
}

async function archOf(id: string): Promise<string | undefined> {
  const { arch } = JSON.parse(await readFile(`${id}/manifest.json`, "utf8")) as { readonly arch?: unknown };
  return typeof arch === "string" ? arch : undefined;
}

/** Bytes that are free where the Nix store lies, for whom they count. */
export async function readStoreFree(): Promise<number | undefined> {
  return statfs("/nix/store").then(
    ({ bsize, bavail }) => bsize * bavail,
    () => undefined,
  );
}
