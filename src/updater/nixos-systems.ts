import { join } from "node:path";
import { z } from "zod";
import { durableFile, readCached } from "#base/durable-file.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { FailureKind } from "#rollout/records.ts";
import { UpdateFailure } from "./failure.ts";
import { describeEnd, readProfile } from "./nix.ts";
import { runOutside } from "./outside.ts";
import type { Ports } from "./ports.ts";
import type { BootState, NodeVersion } from "./strategy.ts";

export const systemProfile = "/nix/var/nix/profiles/system";
/** The system in use, and the system of the last boot. */
const links = { current: "/run/current-system", booted: "/run/booted-system" } as const;
/** The most systems in the list, the newest. */
const mostSystems = 32;

/** The store paths of built systems, each with the id of its target; the newest last. */
const KnownSystems = z.array(z.object({ path: z.string(), id: z.string() }));
type KnownSystems = z.infer<typeof KnownSystems>;

const codec = {
  parse: (text: string): KnownSystems => KnownSystems.parse(JSON.parse(text)),
  // runtime.updated finds a path's id by the text before it, in one line (src/engine/step/fragments/updater.ts).
  print: (known: KnownSystems): string => `${JSON.stringify(known)}\n`,
};

const systemsFile = (folder: string): string => join(folder, "systems.json");

async function readKnown(ports: Ports, folder: string): Promise<KnownSystems> {
  // Without the list the only loss is that a node may build a system again.
  return (await readCached(systemsFile(folder), KnownSystems, ports)) ?? [];
}

/** Remembers the target for which a system was built: a node that runs the system is on that target. */
export async function rememberSystem(ports: Ports, folder: string, path: string, id: string): Promise<void> {
  const known = await readKnown(ports, folder);
  const last = known.at(-1);
  if (last?.path === path && last.id === id) return;
  const systems = [...known.filter((system) => system.path !== path || system.id !== id), { path, id }].slice(
    -mostSystems,
  );
  await durableFile(systemsFile(folder), codec, systems, ports).write();
}

/** The store path of the system that was built here for a target; undefined if none was. */
export async function builtPathOf(ports: Ports, folder: string, id: string): Promise<string | undefined> {
  if (id.startsWith("/nix/store/")) return id;
  return (await readKnown(ports, folder)).findLast((system) => system.id === id)?.path;
}

/** The store path of the system in use; undefined: not a NixOS node. */
export async function currentSystem(ports: Ports): Promise<string | undefined> {
  return ports.readLink(links.current);
}

/** The store path of the system of the last boot; in a container, which has none, of the system in use. */
export async function bootedSystem(ports: Ports): Promise<string | undefined> {
  return (await ports.readLink(links.booted)) ?? currentSystem(ports);
}

/**
 * The NixOS system in use, identified by the target that it was last built for, else by its store path. `lasting`: the
 * profile's system, if it is another one: then the system in use is on trial, or the profile's waits for a boot.
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
  { id: path, generation }: Pick<NodeVersion, "id" | "generation">,
): Promise<NodeVersion> {
  const id = (await readKnown(ports, folder)).findLast((system) => system.path === path)?.id ?? path;
  return { id, version: await nixosVersionOf(ports, path), ...omitUndefined({ generation }) };
}

/** A system's `nixos-version`, cut to the length that a report allows. */
export async function nixosVersionOf(ports: Ports, path: string): Promise<string> {
  return ((await ports.read(join(path, "nixos-version"))) ?? "").trim().slice(0, 200);
}

/** Exit code of switch-to-configuration: the system is in use, but some of its units have failed. */
const unitsFailed = 4;

/**
 * Has a system's own program bring it into use (`test`), make it the boot default (`boot`), or both (`switch`). Failed
 * units are a failure, except in a rollback: there they failed before, or wait for an operator.
 * @throws UpdateFailure
 */
export async function switchTo(
  ports: Ports,
  path: string,
  action: "test" | "switch" | "boot",
  { kind, msLeft }: { readonly kind: FailureKind; readonly msLeft: () => number },
): Promise<void> {
  const program = join(path, "bin/switch-to-configuration");
  const ended = await runOutside(ports, [program, action], msLeft);
  if (ended.code === 0 || (ended.code === unitsFailed && kind === "rollback")) return;
  throw new UpdateFailure(ended.code === unitsFailed ? "service" : kind, `${program} ${action} ${describeEnd(ended)}`);
}
