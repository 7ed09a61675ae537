import { join } from "node:path";
import { z } from "zod";
import { durableFile, readCached } from "#base/durable-file.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { FailureKind } from "#rollout/records.ts";
import { UpdateFailure } from "./failure.ts";
import { describeEnd, readProfile } from "./nix.ts";
import { runOutside } from "./outside.ts";
import type { Ports } from "./ports.ts";
import type { BootState, Present } from "./strategy.ts";

export const systemProfile = "/nix/var/nix/profiles/system";
/** The system in use, and the system of the last boot. */
const links = { current: "/run/current-system", booted: "/run/booted-system" } as const;
/** The number of systems that are remembered with their targets. */
const most = 32;

/** Store paths of systems, with the target that each was built for; the newest last. */
const Known = z.array(z.object({ path: z.string(), id: z.string() }));
type Known = z.infer<typeof Known>;

const codec = {
  parse: (text: string): Known => Known.parse(JSON.parse(text)),
  // runtime.updated finds a path's id by the text before it, in one line (src/engine/step/fragments/updater.ts).
  print: (known: Known): string => `${JSON.stringify(known)}\n`,
};

const file = (folder: string): string => join(folder, "systems.json");

async function readKnown(ports: Ports, folder: string): Promise<Known> {
  // Without the list the only loss is that a node may build a system again.
  return (await readCached(file(folder), Known, ports)) ?? [];
}

/** Remembers the target for which a system was built: a node that runs the system is on that target. */
export async function rememberSystem(ports: Ports, folder: string, path: string, id: string): Promise<void> {
  const known = await readKnown(ports, folder);
  const last = known.at(-1);
  if (last?.path === path && last.id === id) return;
  const kept = [...known.filter((one) => one.path !== path || one.id !== id), { path, id }].slice(-most);
  await durableFile(file(folder), codec, kept, ports).write();
}

/** The store path of a system by its target; undefined: it was never built here. */
export async function pathOf(ports: Ports, folder: string, id: string): Promise<string | undefined> {
  if (id.startsWith("/nix/store/")) return id;
  return (await readKnown(ports, folder)).findLast((one) => one.id === id)?.path;
}

export async function currentSystem(ports: Ports): Promise<string | undefined> {
  return ports.readLink(links.current);
}

/** The system of the last boot; a container has none, and then it is the system in use. */
export async function bootedSystem(ports: Ports): Promise<string | undefined> {
  return (await ports.readLink(links.booted)) ?? currentSystem(ports);
}

/**
 * The NixOS system in use, by the target that it was last built for, else by its store path. Beside it, if another, the
 * profile's system: then the system in use is on trial, or the other one waits for a boot.
 */
export async function presentSystem(ports: Ports, folder: string): Promise<BootState> {
  const path = await currentSystem(ports);
  if (path === undefined) return { id: "", version: "" };
  const profile = await readProfile(ports, systemProfile);
  if (profile?.id === path) return describe(ports, folder, profile);
  const lasting = profile && (await describe(ports, folder, profile));
  return { ...(await describe(ports, folder, { id: path })), ...omitUndefined({ lasting }) };
}

async function describe(
  ports: Ports,
  folder: string,
  { id: path, generation }: Pick<Present, "id" | "generation">,
): Promise<Present> {
  const id = (await readKnown(ports, folder)).findLast((one) => one.path === path)?.id ?? path;
  return { id, version: await nixosVersionOf(ports, path), ...omitUndefined({ generation }) };
}

/** A system's `nixos-version`, cut to the length that a report allows. */
export async function nixosVersionOf(ports: Ports, path: string): Promise<string> {
  return ((await ports.read(join(path, "nixos-version"))) ?? "").trim().slice(0, 200);
}

/** The system is in use, and some of its units have failed. */
const unitsFailed = 4;

/**
 * Has a system's own program bring it into use (`test`), make it the boot default (`boot`), or both (`switch`). Failed
 * units are a failure on the way forward. On the way back they are none: they failed before, or wait for an operator.
 * @throws UpdateFailure
 */
export async function switchTo(
  ports: Ports,
  path: string,
  action: "test" | "switch" | "boot",
  { kind, left }: { readonly kind: FailureKind; readonly left: () => number },
): Promise<void> {
  const program = join(path, "bin/switch-to-configuration");
  const ended = await runOutside(ports, [program, action], left);
  if (ended.code === 0 || (ended.code === unitsFailed && kind === "rollback")) return;
  throw new UpdateFailure(ended.code === unitsFailed ? "service" : kind, `${program} ${action} ${describeEnd(ended)}`);
}
