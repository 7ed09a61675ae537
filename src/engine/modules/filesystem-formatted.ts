import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { DiskId, diskName, filesystemUuid, partitionGuid, PartitionName, shownUuid } from "../step/disk-names.ts";
import { diskTools, findDisk, findPartition } from "../step/fragments/disk.ts";
import { sh, type Sh } from "../step/sh.ts";

const labelLimits = { ext4: 16, xfs: 12, vfat: 11 } as const;

const args = z
  .strictObject({
    disk: DiskId.optional().describe("The disk, by serial, wwn or byId, together with partition."),
    partition: PartitionName.optional().describe("The name that disk.partitioned gave the partition."),
    partuuid: z
      .uuid()
      .transform((uuid) => uuid.toLowerCase())
      .optional()
      .describe("Instead of disk and partition: the PARTUUID of a partition that kcore did not make."),
    fstype: z.enum(["ext4", "xfs", "vfat"]).default("ext4").describe("The kind of filesystem: ext4, xfs or vfat."),
    label: z
      .string()
      .regex(/^[A-Za-z0-9._][A-Za-z0-9._-]{0,15}$/, "must be a label of letters, digits, “.”, “_” and “-”")
      .optional()
      .describe("Its label (at most 16 characters, xfs 12, vfat 11)."),
    options: z
      .array(z.string().regex(/^[A-Za-z0-9=,._:^/-]+$/, "must be one word of an mkfs command"))
      .default([])
      .describe("More words for the mkfs command, such as -m and 0; used only when it is made."),
  })
  .refine(
    ({ disk, partition, partuuid }) =>
      partuuid === undefined
        ? disk !== undefined && partition !== undefined
        : disk === undefined && partition === undefined,
    "needs disk and partition, or partuuid",
  )
  .refine(
    ({ fstype, label }) => label === undefined || label.length <= labelLimits[fstype],
    "the label is too long for this kind of filesystem",
  );
type Args = z.output<typeof args>;

/**
 * ```yaml
 * filesystem.formatted:
 *   disk: { serial: S3Z8NB0K }
 *   partition: data
 *   fstype: ext4
 *   label: kcore-volumes
 * ```
 * The filesystem's UUID is made of the partition's, which proves later that kcore made it. A partition that holds
 * anything else is refused, never formatted anew, unless its disk was granted by name (requirement F-18).
 */
export const filesystemFormatted = defineModule({
  name: "filesystem.formatted",
  summary: "Keeps a filesystem on a partition, which must be blank or granted.",
  args,
  refusals: [
    "DISK_AMBIGUOUS",
    "DISK_IN_USE",
    "DISK_NOT_FOUND",
    "FILESYSTEM_DIFFERS",
    "PARTITION_NOT_FOUND",
    "TOOL_MISSING",
  ],
  step: (given, context) => {
    const { disk, partition, fstype, label, options } = given;
    const partuuid =
      disk && partition !== undefined ? partitionGuid(context, { disk, partition }) : (given.partuuid ?? "");
    const uuid = filesystemUuid(partuuid);
    const place = { is: "disk", name: disk ? diskName(disk).value : "*" } as const;
    const find = sh`${disk ? findDisk(disk) : findPartition(partuuid)}
name=$(partition_of ${partuuid})
[ -n "$name" ] || ! unsure || exit 1
[ -n "$name" ] || refuse PARTITION_NOT_FOUND "$disk has no partition with PARTUUID "${partuuid}
device=$(device_of "$name") mark=$K_STATE/fresh/${partuuid}
${look}`;
    return {
      reach: { changes: [place], restsOn: [place, { is: "program", name: `mkfs.${fstype}` }] },
      want: { type: fstype, uuid: shownUuid(uuid, fstype), ...(label === undefined ? {} : { label }) },
      probe: sh`${find}
fact device "$device"
# A mark that is still there: disk.partitioned has just made it, or a run died in the middle of mkfs.
if [ -e "$mark" ] && [ -n "$type" ]; then fact type "unfinished $type"; else fact type "\${type:-none}"; fi
fact uuid "\${uuid:-none}"
fact label "$label"`,
      guard: sh`${find}
${guard(given, shownUuid(uuid, fstype))}
[ "$todo" = label ] || ${needMkfs(fstype)}`,
      apply: sh`${find}
${guard(given, shownUuid(uuid, fstype))}
if [ "$todo" = label ]; then
  ${relabel(fstype, label ?? "")}
else
  ${needMkfs(fstype)}
  mkdir -p "$K_STATE/fresh" && : >"$mark" && sync || exit 1
  [ "$todo" != wipe ] || { note "wiping $device, as granted" && wipefs -a -q "$device"; } || exit 1
  ${make(fstype, uuid, label, options)} "$device" || exit 1
  sync && rm -f "$mark"
fi
# udev's links by uuid and label, which mounts name, follow on their own.
! have udevadm || udevadm settle --timeout=10 || :`,
      tools: diskTools,
      timeout: 600,
    };
  },
});

/** A tool that is wanted only where something is made. */
function needMkfs(fstype: keyof typeof packages): Sh {
  return sh`have ${`mkfs.${fstype}`} || refuse TOOL_MISSING ${`mkfs.${fstype} is not on this node; package ${packages[fstype]} has it`}`;
}

const packages = { ext4: "e2fsprogs", xfs: "xfsprogs", vfat: "dosfstools" } as const;

/** `type`, `uuid`, `label`: what libblkid reads on the device itself, past every cache. */
const look = sh`type=$(blkid -p -o value -s TYPE "$device" 2>/dev/null)
uuid=$(blkid -p -o value -s UUID "$device" 2>/dev/null)
label=$(blkid -p -o value -s LABEL "$device" 2>/dev/null)`;

/** Sets `todo` to make, wipe or label, or refuses. */
function guard({ disk, fstype, label }: Args, uuid: string): Sh {
  const grant =
    disk === undefined ? sh`is_granted "$disk_name" ""` : sh`is_granted "$disk_name" ${diskName(disk).value}`;
  return sh`if [ "$type" = ${fstype} ] && [ "$uuid" = ${uuid} ] && [ ! -e "$mark" ]; then
  todo=label
else
  todo=make
  users=$(users_of "$name")
  [ -n "$users" ] || users=$(refused_open "$device")
  [ -z "$users" ] || refuse DISK_IN_USE "$device is in use, which no grant overrides$K_NL$users"
  found=$(contents_of "$name")
  # Bytes of the past in a new partition, or half a filesystem of ours: no signature, or our own uuid.
  if [ -e "$mark" ]; then
    case $type:$uuid in
      :) found=$(signatures_of "$device") ;;
      ${fstype}:${uuid}) found= ;;
    esac
  fi
  if [ -n "$found" ]; then
    ${grant} || refuse FILESYSTEM_DIFFERS ${`wanted ${fstype}${label === undefined ? "" : ` “${label}”`} with UUID ${uuid} on `}"$device$K_NL$found"
    todo=wipe
  fi
fi`;
}

function make(fstype: Args["fstype"], uuid: string, label: string | undefined, options: readonly string[]): Sh {
  switch (fstype) {
    case "ext4":
      return sh`mkfs.ext4 -q -F -U ${uuid} ${label === undefined ? [] : ["-L", label]} ${options}`;
    case "xfs":
      return sh`mkfs.xfs -q -f -m ${`uuid=${uuid}`} ${label === undefined ? [] : ["-L", label]} ${options}`;
    case "vfat":
      return sh`mkfs.vfat -i ${uuid.slice(0, 8)} ${label === undefined ? [] : ["-n", label]} ${options}`;
  }
}

function relabel(fstype: Args["fstype"], label: string): Sh {
  switch (fstype) {
    case "ext4":
      return sh`e2label "$device" ${label} || exit 1`;
    case "xfs":
      return sh`xfs_admin -L ${label} "$device" || exit 1`;
    case "vfat":
      return sh`fatlabel "$device" ${label} || exit 1`;
  }
}
