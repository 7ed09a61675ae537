import { z } from "zod";
import { fileBlob } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { deviceGuid, DiskId, diskName, PartitionName } from "../step/disk-names.ts";
import { AbsolutePath, UserName } from "../step/fields.ts";
import { findRoot } from "../step/fragments/disk.ts";
import { bootLoader, functions, judgeLive, leaveTarget, settle, target } from "../step/fragments/os-debian.ts";
import { sh } from "../step/sh.ts";

/** The filesystem's label from the moment that all is there. */
const done = "kcore-system";

const Image = z.strictObject({
  file: AbsolutePath.describe("The file on the bastion."),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in hex")
    .describe("Its SHA-256."),
  size: z.int().positive().describe("Its size in bytes."),
});

const args = z.strictObject({
  disk: DiskId.describe("The disk, by serial, wwn, byId, busPath, model or size."),
  root: PartitionName.default("root").describe("The partition of the root filesystem, formatted as ext4."),
  esp: PartitionName.default("esp").describe("The EFI system partition, formatted as vfat."),
  image: Image.describe("What the action system.image made: a Debian tree as a tar compressed by gzip."),
  hostname: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/, "must be a host's name")
    .describe("The installed system's name."),
  user: UserName.default("root").describe(
    "Whom kcore logs in as; made if it is not root, with sudo without a password.",
  ),
  authorizedKeys: z
    .array(z.string().regex(/^[^\n\r]{16,}$/, "must be a line of authorized_keys"))
    .default([])
    .describe("SSH keys besides those that the live system lets in."),
  kernelParameters: z
    .array(z.string().regex(/^[A-Za-z0-9_.,:;=/@+%~-]+$/, "must be one word that no shell reads anything into"))
    .default([])
    .describe("For the kernel's command line, such as nomodeset."),
});

/**
 * ```yaml
 * os.installed:
 *   disk: { serial: S3Z8NB0K }
 *   image: { file: /var/cache/debian.tar.gz, sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855, size: 1 }
 *   hostname: n1
 * ```
 * Debian on a machine's own disk, from a live system that runs on the machine: unpacked into a partition that is empty, with a boot loader for BIOS and
 * UEFI, which is written last. Host keys, authorized keys, addresses, name servers and sources of packages are those of the live system, so that the machine is the
 * same one to whoever knew it. A machine that runs from this disk is in order, whatever became of the system since.
 */
export const osInstalled = defineModule({
  name: "os.installed",
  summary: "Keeps Debian installed on a machine's own disk, which then boots by BIOS and UEFI.",
  args,
  refusals: ["DISK_AMBIGUOUS", "DISK_NOT_FOUND", "LIVE_UNSUITED", "OS_FOUND", "PARTITION_NOT_FOUND", "TOOL_MISSING"],
  step: ({ disk, root, esp, image, hostname, user, authorizedKeys, kernelParameters }, context) => {
    const find = findRoot({ disk, partition: root }, context);
    const { value } = diskName(disk);
    const place = { is: "disk", name: value } as const;
    const blob = fileBlob(image);
    const access = { user, authorizedKeys };
    return {
      reach: { changes: [place, { is: "tree", path: target }], restsOn: [place, { is: "system" }] },
      want: { system: "installed" },
      probe: sh`${find}
if [ -n "$running" ] || [ "$(blkid -p -o value -s LABEL "$device" 2>/dev/null)" = ${done} ]; then fact system installed; else fact system absent; fi`,
      guard: sh`${functions}
${judgeLive(access)}`,
      apply: sh`${find}
esp=$(partition_of ${deviceGuid(context, { disk, partition: esp })})
[ -n "$esp" ] || refuse PARTITION_NOT_FOUND ${`there is no partition ${esp} on the disk`}
esp=$(device_of "$esp")
${functions}
${judgeLive(access)}
${leaveTarget}
t=${target}
# A live system that lost its power forgot what it had not finished, this filesystem perhaps.
leave_target && e2fsck -fp "$device" >"$K_TMP/fsck" 2>&1
[ $? -le 1 ] || refuse OS_FOUND "the filesystem on $device is damaged$K_NL$(cat "$K_TMP/fsck")"
mkdir -p "$t" && mount -t ext4 -o noatime "$device" "$t" || exit 1
trap leave_target EXIT
if [ ! -e "$t/.kcore-unfinished" ]; then
  found=$(cd "$t" && find . -mindepth 1 -maxdepth 1 ! -name lost+found | tr '\n' ' ')
  [ -z "$found" ] || refuse OS_FOUND "the filesystem on $device, which should be empty, holds $found"
  : >"$t/.kcore-unfinished" && sync -f "$t" || exit 1
fi
# What an installation that was cut off left.
find "$t" -mindepth 1 -maxdepth 1 ! -name lost+found ! -name .kcore-unfinished -exec rm -rf --one-file-system {} + || exit 1
note ${`unpacking ${Math.ceil(image.size / 1e6)} MB`}
{ gzip -dc <${blob} || echo broken >"$K_TMP/broken"; } |
  tar -C "$t" --numeric-owner --xattrs --xattrs-include='*' -xpf - && [ ! -e "$K_TMP/broken" ] || exit 1
mkdir -p "$t/boot/efi" && mount -t vfat "$esp" "$t/boot/efi" || exit 1
${settle({ hostname, ...access })}
sync
${bootLoader(kernelParameters)}
rm -f "$t/.kcore-unfinished" && sync
leave_target && e2label "$device" ${done} && sync`,
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
