import { join } from "node:path";
import { z } from "zod";
import { durableJson, readCached } from "#base/durable-file.ts";
import { UpdateFailure } from "./failure.ts";
import { runOrFail, readProfile, setProfile } from "./nix.ts";
import { switchTo, systemProfile } from "./nixos-systems.ts";
import { runOutside } from "./outside.ts";
import type { Ports } from "./ports.ts";

/** A boot on trial: its system (`path`), and the boot default until that system has held (`before`). */
const BootTrial = z.object({ loader: z.enum(["systemd-boot", "grub"]), path: z.string(), before: z.string() });
type BootTrial = z.infer<typeof BootTrial>;

const trialFile = (folder: string): string => join(folder, "boot-once.json");

interface BootContext {
  readonly ports: Ports;
  /** The folder of updates. */
  readonly folder: string;
  readonly msLeft: () => number;
}

function readTrial({ ports, folder }: Pick<BootContext, "ports" | "folder">): Promise<BootTrial | undefined> {
  return readCached(trialFile(folder), BootTrial, ports);
}

/** The present trial; undefined if an operator has changed the profile since. */
async function presentTrial(boot: BootContext, profile: string | undefined): Promise<BootTrial | undefined> {
  const trial = await readTrial(boot);
  return trial?.path === profile ? trial : undefined;
}

/**
 * Makes the next boot begin with this system. If the boot loader can boot a system once, the boot default stays;
 * otherwise this system becomes the default.
 */
export async function prepareBoot(boot: BootContext, path: string): Promise<void> {
  const { ports, folder, msLeft } = boot;
  const forward = { kind: "activation", msLeft } as const;
  const loader = await bootOnceOf(ports);
  const profile = (await readProfile(ports, systemProfile))?.id;
  const before = (await presentTrial(boot, profile))?.before ?? profile;
  if (loader === undefined || before === undefined || before === path) return makeDefault(boot, path);
  await durableJson(trialFile(folder), BootTrial, { loader, path, before }, ports).write();
  await setProfile(ports, systemProfile, { id: path }, { kind: "activation", limitMs: msLeft() });
  // The former system writes the menu, so that the new generation is in it and the former one stays the default.
  await switchTo(ports, before, "boot", forward);
  await bootOnce(ports, loader, (await readProfile(ports, systemProfile))?.generation ?? 0, msLeft);
}

/** Makes the system in use the default of every boot, unless it is already. @throws UpdateFailure if a power cut ended its trial */
export async function keepDefault(boot: BootContext, path: string): Promise<void> {
  const { ports } = boot;
  const profile = (await readProfile(ports, systemProfile))?.id;
  const trial = await presentTrial(boot, profile);
  // A power cut booted the former system after the new one had held, but before it became the default.
  if (trial?.before === path)
    throw new UpdateFailure("reboot", `the node was booted again, with ${path}, before the new system was kept`);
  if (trial || profile !== path) await makeDefault(boot, path);
  else await ports.remove(trialFile(boot.folder));
}

async function makeDefault({ ports, folder, msLeft }: BootContext, path: string): Promise<void> {
  await setProfile(ports, systemProfile, { id: path }, { kind: "activation", limitMs: msLeft() });
  await switchTo(ports, path, "boot", { kind: "activation", msLeft });
  await ports.remove(trialFile(folder));
}

/** Cancels a trial that has not booted yet. */
export async function endTrial(boot: BootContext): Promise<void> {
  const trial = await readTrial(boot);
  if (!trial) return;
  await forgetBootOnce(boot.ports, trial.loader, boot.msLeft);
  await boot.ports.remove(trialFile(boot.folder));
}

/** A boot loader that can boot a generation once. */
type BootOnce = "systemd-boot" | "grub";

/** The name of the boot loader that started the machine, in UTF-16. */
const loaderInfo = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
const grubMenu = "/boot/grub/grub.cfg";
const submenu = "NixOS - All configurations";
const quickMs = 60_000;

/** The boot loader, if it can boot a generation once; undefined for any other. */
export async function bootOnceOf(ports: Ports): Promise<BootOnce | undefined> {
  const info = ((await ports.read(loaderInfo)) ?? "").replaceAll("\0", "");
  if (info.includes("systemd-boot")) return (await hasOneDefault(ports)) ? "systemd-boot" : undefined;
  const menu = (await ports.read(grubMenu)) ?? "";
  const canBoot = menu.includes("next_entry") && menu.includes(`submenu "${submenu}"`);
  return canBoot && (await canGrubWrite(ports)) ? "grub" : undefined;
}

/**
 * Whether GRUB can write its file system. Otherwise it cannot clear the entry for the next boot, and would boot that entry
 * for ever.
 */
async function canGrubWrite(ports: Ports): Promise<boolean> {
  const mounts = ((await ports.read("/proc/self/mounts")) ?? "").split("\n").map((line) => line.split(" "));
  const below = mounts.filter(([, point = ""]) => point === "/" || `${grubMenu}/`.startsWith(`${point}/`));
  // Of two mounts at one path the later one hides the earlier.
  const [device, , type] = below.toSorted(([, a = ""], [, b = ""]) => a.length - b.length).at(-1) ?? [];
  return type !== undefined && !/^(?:btrfs|zfs)$/.test(type) && !/^\/dev\/(?:mapper\/|dm-|md)/.test(device ?? "");
}

/**
 * Whether systemd-boot's default is one generation. If it is a pattern, systemd-boot boots the newest generation, so the
 * present one would not stay the default.
 */
async function hasOneDefault(ports: Ports): Promise<boolean> {
  const { code, stdout } = await runOutside(ports, ["bootctl", "--print-esp-path"], () => quickMs);
  if (code !== 0) return false;
  const settings = (await ports.read(join(stdout.trim(), "loader/loader.conf"))) ?? "";
  return /^default\s+nixos-generation-\d+\.conf\s*$/m.test(settings);
}

/**
 * Makes only the next boot begin with this generation of the system's profile, which must be in the boot loader's menu.
 */
async function bootOnce(ports: Ports, loader: BootOnce, generation: number, msLeft: () => number): Promise<void> {
  if (loader === "systemd-boot")
    return succeed(ports, ["bootctl", "set-oneshot", `nixos-generation-${generation}.conf`], msLeft);
  const menu = (await ports.read(grubMenu)) ?? "";
  const title = new RegExp(`menuentry "(NixOS - Configuration ${generation} \\([^"]*)"`).exec(menu)?.[1];
  // GRUB would boot the default, and no error would show it.
  if (title === undefined)
    throw new UpdateFailure("activation", `${grubMenu} has no entry for generation ${generation}`);
  await succeed(ports, ["grub-reboot", "--boot-directory=/boot", `${submenu}>${title}`], msLeft);
}

/** Undoes bootOnce, unless the machine has booted since. */
async function forgetBootOnce(ports: Ports, loader: BootOnce, msLeft: () => number): Promise<void> {
  const words =
    loader === "systemd-boot"
      ? ["bootctl", "set-oneshot", ""]
      : ["grub-editenv", "/boot/grub/grubenv", "unset", "next_entry"];
  await runOutside(ports, words, msLeft);
}

async function succeed(ports: Ports, words: readonly string[], msLeft: () => number): Promise<void> {
  await runOrFail({ run: (all) => runOutside(ports, all, msLeft) }, words, { kind: "activation", limitMs: msLeft() });
}
