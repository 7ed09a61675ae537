import { z } from "zod";
import { fileBlob, type Blob } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { deviceGuid, DiskId, diskName, filesystemUuid, mappingName, PartitionName } from "../step/disk-names.ts";
import { AbsolutePath, Sha256, UserName } from "../step/fields.ts";
import { findRoot } from "../step/fragments/disk.ts";
import { luksFolder } from "../step/fragments/luks.ts";
import { bootLoader, judgeLive, liveFunctions, configureDebian } from "../step/fragments/os-debian.ts";
import { finishedLabel, finishTarget, mountTarget, targetFolder } from "../step/fragments/os-target.ts";
import { containerUuid, judgeUnlock, configureUnlock, unfinishedLabel } from "../step/fragments/os-unlock.ts";
import { sh, type Sh } from "../step/sh.ts";

const Image = z
  .strictObject({
    file: AbsolutePath.describe("The file on the bastion."),
    sha256: Sha256.describe("The file's SHA-256."),
    size: z.int().positive().describe("The file's size in bytes."),
  })
  .meta({ examples: [{ file: "/var/cache/kcore/debian.img.gz", sha256: "0".repeat(64), size: 1048576 }] });

const args = z.strictObject({
  disk: DiskId.describe("The disk, by serial, wwn, byId, busPath, model or size."),
  root: PartitionName.default("root").describe("The partition of the root filesystem, formatted as ext4."),
  esp: PartitionName.default("esp").describe("The EFI system partition, formatted as vfat."),
  encrypted: z
    .boolean()
    .default(false)
    .describe(
      "Whether the root filesystem lies in the container of luks.root, which SSH or the console unlocks at each boot.",
    ),
  boot: PartitionName.default("boot").describe(
    "With encrypted: the partition of /boot, unencrypted, formatted as ext4.",
  ),
  image: Image.describe("The output of the action system.image: a Debian tree as a tar compressed by gzip."),
  hostname: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/, "must be a host's name")
    .describe("The installed system's name."),
  user: UserName.default("root").describe(
    "The user as whom kcore logs in; a user other than root is made, with sudo without a password.",
  ),
  authorizedKeys: z
    .array(z.string().regex(/^[^\n\r]{16,}$/, "must be a line of authorized_keys"))
    .default([])
    .describe("SSH keys besides those that the live system lets in."),
  kernelParameters: z
    .array(z.string().regex(/^[A-Za-z0-9_.,:;=/@+%~-]+$/, "must be one word that no shell reads anything into"))
    .default([])
    .describe("Words for the kernel's command line, such as nomodeset."),
});

/**
 * ```yaml
 * os.installed:
 *   disk: { serial: S3Z8NB0K }
 *   image: { file: /var/cache/debian.tar.gz, sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855, size: 1 }
 *   hostname: n1
 * ```
 * Debian on a machine's own disk, from a live system that runs on the machine. The image is unpacked into an empty
 * partition; the boot loader for BIOS and UEFI is written last. The new system gets the live system's host keys, authorized
 * keys, addresses, name servers and package sources, so that clients recognize the machine. A machine that runs from this
 * disk is in order, even if its system has changed since. With `encrypted` root is in the container that luks.root made.
 * Then the initrd lets the system's users in by their SSH keys, at port 2222 and for one command, which asks for the
 * container's passphrase.
 */
export const osInstalled = defineModule({
  name: "os.installed",
  summary: "Keeps Debian installed on a machine's own disk, which then boots by BIOS and UEFI.",
  alsoKnownAs: ["debootstrap", "preseed", "image"],
  args,
  refusals: [
    "DISK_AMBIGUOUS",
    "DISK_NOT_FOUND",
    "LIVE_UNSUITED",
    "LUKS_CLOSED",
    "LUKS_KEY_MISSING",
    "OS_FOUND",
    "PARTITION_NOT_FOUND",
    "TOOL_MISSING",
  ],
  step: ({ disk, root, esp, boot, encrypted, image, hostname, user, authorizedKeys, kernelParameters }, context) => {
    const find = findRoot({ disk, partition: root }, context);
    const { value } = diskName(disk);
    const resource = { is: "disk", name: value } as const;
    const blob = fileBlob(image);
    const access = { user, authorizedKeys };
    const container = containerUuid({ disk, partition: root }, context);
    const findOther = (partition: string) =>
      sh`other=$(partition_of ${deviceGuid(context, { disk, partition })})
[ -n "$other" ] || refuse PARTITION_NOT_FOUND ${`there is no partition ${partition} on the disk`}
other=$(device_of "$other")`;
    // Without the unfinished label the container has a system, which cannot be inspected without the container's key.
    const isInstalled = encrypted
      ? sh`blkid -p "$device" 2>/dev/null | grep 'TYPE="crypto_LUKS"' | grep -qv ${`LABEL="${unfinishedLabel}"`}`
      : sh`[ -n "$running" ] || [ "$(blkid -p -o value -s LABEL "$device" 2>/dev/null)" = ${finishedLabel} ]`;
    return {
      effects: { writes: [resource, { is: "tree", path: targetFolder }], reads: [resource, { is: "system" }] },
      want: { system: "installed" },
      probe: sh`${find}
if ${isInstalled}; then fact system installed; else fact system "\${running:+runs, }absent"; fi`,
      guard: sh`${liveFunctions}
${judgeLive(access)}
${encrypted ? judgeUnlock(access) : sh``}`,
      apply: sh`${find}
${
  encrypted
    ? sh`${findOpenedContainer(container)}
# For luks.root a boot loader means that the container has a system: an earlier one is removed. The partition table stays.
dd if=/dev/zero of="$disk" bs=440 count=1 conv=notrunc,fsync 2>"$K_TMP/dd" || { cat "$K_TMP/dd" >&2 && exit 1; }
mkfs.ext4 -q -F -U ${filesystemUuid(container)} "$device" || exit 1
${findOther(boot)}
boot=$other`
    : sh`boot=`
}
${findOther(esp)}
esp=$other
${liveFunctions}
${judgeLive(access)}
${encrypted ? judgeUnlock(access) : sh``}
${mountTarget}
: >"$t/.kcore-unfinished" && sync -f "$t" || exit 1
empty "$t" || exit 1
if [ -n "$boot" ]; then
  check_filesystem "$boot"
  mkdir "$t/boot" && mount -t ext4 -o noatime "$boot" "$t/boot" && empty "$t/boot" || exit 1
fi
note ${`unpacking ${Math.ceil(image.size / 1e6)} MB`}
${unpackImage(blob, image.size)} |
  tar -C "$t" --numeric-owner --xattrs --xattrs-include='*' -xpf - && [ ! -e "$K_TMP/broken" ] || exit 1
mkdir -p "$t/boot/efi" && mount -t vfat "$esp" "$t/boot/efi" || exit 1
${configureDebian({ hostname, ...access })}
${encrypted ? configureUnlock(container, access) : sh``}
sync
${bootLoader(kernelParameters, encrypted)}
${finishTarget}
${encrypted ? finishContainer(container) : sh``}`,
      tools: [
        { command: "mount", package: "mount" },
        { command: "e2label", package: "e2fsprogs" },
        { command: "ip", package: "iproute2" },
        { command: "gzip", package: "gzip" },
      ],
      timeout: 10_800,
      stall: 900,
    };
  },
});

/** Unpacks the blob of `size` bytes to stdout, notes the progress, and makes the file $K_TMP/broken for a damaged blob. */
export function unpackImage(blob: Blob, size: number): Sh {
  return sh`{
  gzip -dc <${blob} &
  unpacker=$!
  (while sleep 10 && read -r word at <"/proc/$unpacker/fdinfo/0"; do note "unpacked $((at / 1000000)) of "${`${Math.ceil(size / 1e6)} MB`}; done) >/dev/null 2>&1 3>&- &
  teller=$!
  wait "$unpacker" || echo broken >"$K_TMP/broken"
  kill "$teller"
}`;
}

/**
 * Sets `container` to the device, and `device` to the opened container, or refuses. If the machine runs from the container,
 * labels it as finished and ends the step.
 */
function findOpenedContainer(uuid: string): Sh {
  const mapping = mappingName(uuid);
  return sh`container=$device
if [ -n "$running" ]; then
  cryptsetup config --label ${finishedLabel} "$container" && rm -f /.kcore-unfinished && sync || exit 1
  exit 0
fi
device=$(readlink -f ${`/dev/mapper/${mapping}`}) && [ -b "$device" ] || refuse LUKS_CLOSED ${`the container ${mapping} is not open here; a live system that was started anew has lost the key of an unfinished container: run again, and luks.root makes the container anew`}
# The container holds an unfinished system, or nothing.
[ "$(blkid -p -o value -s LABEL "$container")" = ${unfinishedLabel} ] || refuse OS_FOUND "the container on $container is not marked as unfinished"
[ -s ${`${luksFolder}/${uuid}.recovery`} ] ||
  refuse LUKS_KEY_MISSING ${`the container ${mapping} has no recovery key, so no operator could unlock it: luks.escrowed gives it one`}`;
}

/** Labels the container as finished, so that no live system makes it again, and removes its keys from the live system. */
function finishContainer(uuid: string): Sh {
  return sh`cryptsetup config --label ${finishedLabel} "$container" && sync && rm -f ${luksFolder}/${uuid}.*`;
}
