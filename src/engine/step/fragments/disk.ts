import type { ErrorCode } from "#errors/codes.ts";
import type { StepContext } from "../define.ts";
import {
  deviceGuid,
  deviceName,
  diskName,
  mappingName,
  type DeviceOf,
  type DiskId,
  type PartitionOf,
} from "../disk-names.ts";
import { sh, shLines, type Sh } from "../sh.ts";
import { diskFunctions } from "./disk-functions.ts";

/** `diskFunctions`, and `find_disk` for this disk: sets `disk` and `disk_name`, or refuses. */
export function findDisk(id: DiskId): Sh {
  const { kind, value } = diskName(id);
  return sh`${diskFunctions}
find_disk ${kind} ${value}`;
}

/** `diskFunctions`, and the search for the disk with this partition: sets `disk` and `disk_name`, or refuses. */
function findPartition(partuuid: string): Sh {
  return sh`${diskFunctions}
disk_name=$(whole_disks | while read -r name; do
  ! read_table "$(device_of "$name")" | grep -q " "${partuuid}" " || echo "$name"
done)
case $disk_name in
  '') refuse PARTITION_NOT_FOUND ${`no disk has a partition with PARTUUID ${partuuid}`}"$K_NL$(list_disks)" ;;
  *"$K_NL"*) refuse DISK_AMBIGUOUS ${`several disks have a partition with PARTUUID ${partuuid}`}"$K_NL$(list_disks)" ;;
esac
disk=$(device_of "$disk_name")`;
}

/** The codes with which `findDevice` refuses. */
export const deviceRefusals: readonly ErrorCode[] = [
  "ARRAY_NOT_FOUND",
  "DISK_AMBIGUOUS",
  "DISK_NOT_FOUND",
  "LUKS_CLOSED",
  "PARTITION_NOT_FOUND",
  "VOLUME_NOT_FOUND",
];

/**
 * Sets `device` (/dev/…) and `name` (its name in sysfs), or refuses. Sets `disk` and `disk_name` to the disk of an
 * unencrypted partition; for every other device both are empty.
 */
export function findDevice(source: DeviceOf, context: StepContext): Sh {
  const guid = deviceGuid(context, source);
  const shown = deviceName(source);
  if (source.encrypted === true)
    return findByLink(
      `/dev/mapper/${mappingName(guid)}`,
      sh`refuse LUKS_CLOSED ${`there is no opened container ${mappingName(guid)} (on ${shown})`}`,
    );
  if ("vg" in source)
    return findByLink(
      `/dev/${source.vg}/${source.lv}`,
      sh`refuse VOLUME_NOT_FOUND ${`there is no logical volume ${shown}, or it is not active`}"$K_NL$(lvs 2>&1)"`,
    );
  if ("array" in source)
    return findByLink(
      arrayLink(guid),
      sh`refuse ARRAY_NOT_FOUND ${`there is no array ${source.array} of kcore's, or it does not run`}"$K_NL$(cat /proc/mdstat 2>&1)"`,
    );
  return sh`${findDisk(source.disk)}
${findOnDisk(guid)}`;
}

/** {@link findDevice} for the partition of a root filesystem, then {@link readRunning}. */
export function findRoot(source: PartitionOf, context: StepContext): Sh {
  return sh`${findDevice(source, context)}
${readRunning}`;
}

/** Sets `running`: not empty if the device `name`, or the opened container on it, has the node's root filesystem. */
export const readRunning = sh`running=$(cat "/sys/class/block/$name/dev" "/sys/class/block/$name/holders/"*/dev 2>/dev/null |
  grep -Fx "$(awk '$5 == "/" { found = $3 } END { print found }' /proc/self/mountinfo)")`;

/** {@link findDevice} for a device of device-mapper or md, by udev's link to it. */
function findByLink(link: string, refusal: Sh): Sh {
  return sh`${diskFunctions}
disk= disk_name=
device=$(readlink -f ${link}) && [ -b "$device" ] || device=
[ -n "$device" ] || ! unsure || exit 1
[ -n "$device" ] || ${refusal}
name=$(printf '%s\n' "\${device#/dev/}" | tr / '!')`;
}

/** An array's UUID as md writes it: four words of eight hex digits. */
export function arrayUuid(guid: string): string {
  return (guid.replaceAll("-", "").match(/.{8}/g) ?? []).join(":");
}

/** udev's link to a running array. */
export function arrayLink(guid: string): string {
  return `/dev/disk/by-id/md-uuid-${arrayUuid(guid)}`;
}

/**
 * `diskFunctions`, and `body` once for each of these partitions, or of the opened LUKS containers on them. Before each `body`
 * it sets `disk`, `disk_name`, `device`, `name`, and `part`: the partition's PARTUUID or the container's UUID.
 */
export function eachPartition(
  parts: readonly (PartitionOf & { readonly encrypted?: boolean })[],
  context: StepContext,
  body: Sh,
): Sh {
  const inside = sh`part=$4 device=$(readlink -f "/dev/mapper/luks-$4") && [ -b "$device" ] || device=
  [ -n "$device" ] || ! unsure || exit 1
  [ -n "$device" ] || refuse LUKS_CLOSED "there is no opened container luks-$part (on $2)"
  name=$(printf '%s\n' "\${device#/dev/}" | tr / '!')`;
  return sh`${diskFunctions}
each_partition() {
  find_disk "$1" "$2"
  part=$3 name=$(partition_of "$3")
  [ -n "$name" ] || ! unsure || exit 1
  [ -n "$name" ] || refuse PARTITION_NOT_FOUND "$disk has no partition with PARTUUID $3"
  device=$(device_of "$name")
  ${parts.some(({ encrypted = false }) => encrypted) ? inside : sh``}
  ${body}
}
${shLines(
  parts.map(({ disk, partition, encrypted = false }) => {
    const { kind, value } = diskName(disk);
    const container = encrypted ? [deviceGuid(context, { disk, partition, encrypted })] : [];
    return sh`each_partition ${[kind, value, deviceGuid(context, { disk, partition }), ...container]}`;
  }),
)}`;
}

/** {@link findDevice} for a partition that kcore did not make. */
export function findForeignPartition(partuuid: string): Sh {
  return sh`${findPartition(partuuid)}
${findOnDisk(partuuid)}`;
}

/** Sets `device` and `name` to the partition with this PARTUUID on the disk `disk`, or refuses. */
function findOnDisk(partuuid: string): Sh {
  return sh`name=$(partition_of ${partuuid})
[ -n "$name" ] || ! unsure || exit 1
[ -n "$name" ] || refuse PARTITION_NOT_FOUND "$disk has no partition with PARTUUID "${partuuid}
device=$(device_of "$name")`;
}

export const diskTools = ["blkid", "lsblk", "partx", "wipefs"].map((command) => ({ command, package: "util-linux" }));
