import { join } from "node:path";
import { UpdateFailure } from "./failure.ts";
import { must } from "./nix.ts";
import { runOutside } from "./outside.ts";
import type { Ports } from "./ports.ts";

/** A boot loader that can boot a generation once. */
export type BootOnce = "systemd-boot" | "grub";

/** The name of the boot loader that started the machine, in UTF-16. */
const loaderInfo = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
const grubMenu = "/boot/grub/grub.cfg";
const submenu = "NixOS - All configurations";
const quickMs = 60_000;

/** The boot loader's way to boot a generation once; undefined without one, or for an unknown loader. */
export async function bootOnceOf(ports: Ports): Promise<BootOnce | undefined> {
  const info = ((await ports.read(loaderInfo)) ?? "").replaceAll("\0", "");
  if (info.includes("systemd-boot")) return (await hasOneDefault(ports)) ? "systemd-boot" : undefined;
  const menu = (await ports.read(grubMenu)) ?? "";
  const canBoot = menu.includes("next_entry") && menu.includes(`submenu "${submenu}"`);
  return canBoot && (await canGrubWrite(ports)) ? "grub" : undefined;
}

/**
 * GRUB clears its entry for the next boot only on file systems that it can write; on others it would boot that entry
 * for ever.
 */
async function canGrubWrite(ports: Ports): Promise<boolean> {
  const mounts = ((await ports.read("/proc/self/mounts")) ?? "").split("\n").map((line) => line.split(" "));
  const below = mounts.filter(([, point = ""]) => point === "/" || `${grubMenu}/`.startsWith(`${point}/`));
  // Of two mounts at one place the later one hides the earlier.
  const [device, , type] = below.toSorted(([, a = ""], [, b = ""]) => a.length - b.length).at(-1) ?? [];
  return type !== undefined && !/^(?:btrfs|zfs)$/.test(type) && !/^\/dev\/(?:mapper\/|dm-|md)/.test(device ?? "");
}

/**
 * If its default is a pattern, systemd-boot boots the newest generation, so the present one would not stay the default.
 */
async function hasOneDefault(ports: Ports): Promise<boolean> {
  const { code, stdout } = await runOutside(ports, ["bootctl", "--print-esp-path"], () => quickMs);
  if (code !== 0) return false;
  const settings = (await ports.read(join(stdout.trim(), "loader/loader.conf"))) ?? "";
  return /^default\s+nixos-generation-\d+\.conf\s*$/m.test(settings);
}

/**
 * Makes the next boot, and no other, begin with a generation of the system's profile that is in the boot loader's menu.
 */
export async function bootOnce(ports: Ports, loader: BootOnce, generation: number, left: () => number): Promise<void> {
  if (loader === "systemd-boot")
    return succeed(ports, ["bootctl", "set-oneshot", `nixos-generation-${generation}.conf`], left);
  const menu = (await ports.read(grubMenu)) ?? "";
  const title = new RegExp(`menuentry "(NixOS - Configuration ${generation} \\([^"]*)"`).exec(menu)?.[1];
  // GRUB would boot the default, and only that boot would show it.
  if (title === undefined)
    throw new UpdateFailure("activation", `${grubMenu} has no entry for generation ${generation}`);
  await succeed(ports, ["grub-reboot", "--boot-directory=/boot", `${submenu}>${title}`], left);
}

/** Undoes bootOnce, unless the machine has booted since. */
export async function forgetBootOnce(ports: Ports, loader: BootOnce, left: () => number): Promise<void> {
  const words =
    loader === "systemd-boot"
      ? ["bootctl", "set-oneshot", ""]
      : ["grub-editenv", "/boot/grub/grubenv", "unset", "next_entry"];
  await runOutside(ports, words, left);
}

async function succeed(ports: Ports, words: readonly string[], left: () => number): Promise<void> {
  await must({ run: (all) => runOutside(ports, all, left) }, words, { kind: "activation", limitMs: left() });
}
