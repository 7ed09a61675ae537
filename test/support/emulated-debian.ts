import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { assetFolder, hashTexts } from "#lab/assets.ts";
import { mustRun } from "#lab/run-command.ts";
import { cheapKernel } from "#lab/vm/qemu.ts";
import { debianImage } from "#system/debian-image.ts";

/** sh: makes OUT from the image FROM in the folder TREE, which must not exist; older images in CACHE are removed. */
const make = `set -eu
mkdir "$TREE"
tar -C "$TREE" --numeric-owner --xattrs --xattrs-include='*' -xpzf "$FROM"
rm -rf "$TREE"/usr/share/doc/* "$TREE"/usr/share/man/* "$TREE"/usr/share/locale/*
mkdir -p "$TREE/etc/default/grub.d"
echo 'GRUB_CMDLINE_LINUX_DEFAULT="${cheapKernel.join(" ")}"' >"$TREE/etc/default/grub.d/emulated.cfg"
echo MODULES=list >"$TREE/etc/initramfs-tools/conf.d/emulated"
"$SPARE" "$TREE"
printf '%s\\n' virtio_pci virtio_blk ext4 >>"$TREE/etc/initramfs-tools/modules"
chroot "$TREE" update-initramfs -u -k all
rm -f "$CACHE"/emulated-*.tar.gz
tar -C "$TREE" --numeric-owner --xattrs --xattrs-include='*' -cf - . | gzip >"$OUT"`;

/**
 * Returns the file of an image like that of `debianImage`, with less work for an emulated processor; it stays in the folder `cache`.
 * Its kernel computes less, and its initrd has only the drivers of the lab's disks. Units and documentation that the lab does not need are
 * left out.
 */
export async function emulatedDebian(cache: string): Promise<string> {
  const wanted = { suite: "bookworm", mirror: "", kernel: "linux-image-cloud-amd64", packages: [] };
  const { file, sha256 } = await debianImage(wanted, { cache, note: () => {}, signal: new AbortController().signal });
  const spare = join(assetFolder(), "spare-units");
  const made = join(cache, `emulated-${hashTexts(sha256, make, await readFile(spare, "utf8"))}.tar.gz`);
  if (existsSync(made)) return made;
  const aside = `${made}.${randomUUID()}`;
  const tree = `${aside}.tree`;
  try {
    await mustRun("/bin/sh", ["-c", make], { env: { FROM: file, CACHE: cache, OUT: aside, TREE: tree, SPARE: spare } });
    await rename(aside, made);
  } finally {
    await rm(tree, { recursive: true, force: true });
    await rm(aside, { force: true });
  }
  return made;
}
