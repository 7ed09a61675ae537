import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import type { Apt } from "../apt.ts";
import { assetFolder } from "../assets.ts";
import { hash } from "../layer.ts";
import { bound, must } from "../run-command.ts";

/** The packages to build ZFS's kernel modules, besides the kernel's own; and its programs. */
const packages = ["zfs-dkms", "zfsutils-linux", "gcc", "make"] as const;

/** The version of the kernel that a machine's image has. */
export async function kernelOf(image: string): Promise<string> {
  const listed = await must("debugfs", ["-R", "ls -p /usr/lib/modules", join(image, "root.img")]);
  const names = listed.split("\n").map((line) => line.split("/")[5] ?? "");
  return names.find((name) => /^\d/.test(name)) ?? "";
}

/** Changes with everything that ZFS for a kernel is made from. */
export async function hashZfsLayer(): Promise<string> {
  return hash(...packages, await readFile(join(assetFolder(), "make-zfs"), "utf8"));
}

/** Builds ZFS for a kernel, two minutes of work, and packs it into the archive `zfs.tar` in `folder`; `tree` is the Debian image. */
export async function makeZfsLayer(
  folder: string,
  { kernel, tree, apt }: { readonly kernel: string; readonly tree: string; readonly apt: Apt },
): Promise<void> {
  const archive = `${folder}.archive`;
  try {
    await apt.download({
      packages: [...packages, `linux-headers-${kernel}`, `linux-image-${kernel}`],
      folder: archive,
      status: join(tree, "var/lib/dpkg/status"),
    });
  } catch (cause) {
    throw new KcoreError(
      {
        code: "LAB_COMMAND_FAILED",
        message: `what ZFS is built from cannot be had for the virtual machines' kernel ${kernel}`,
        detail: cause instanceof KcoreError ? cause.message : String(cause),
        hint: "Debian may have a newer kernel by now: remove images/vm-* below the lab's folder, and it is taken",
      },
      { cause },
    );
  }
  await must(...bound(join(assetFolder(), "make-zfs"), [tree, archive, kernel, folder]));
  await rm(archive, { recursive: true });
}
