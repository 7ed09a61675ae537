import { z } from "zod";
import { defineModule, type StepContext } from "../step/define.ts";
import { diskGuid, DiskId, diskName, PartitionName, partitionGuid } from "../step/disk-names.ts";
import { ByteSize } from "../step/fields.ts";
import { exclusiveOpen } from "../step/fragments/exclusive-open.ts";
import { diskTools, findDisk } from "../step/fragments/disk.ts";
import { clearFunctions } from "../step/fragments/clear.ts";
import { unmark } from "../step/fragments/unmark.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

/** GPT partition types by the names that operators use (Discoverable Partitions, sgdisk -L). */
const types = {
  linux: "0fc63daf-8483-4772-8e79-3d69d8477de4",
  esp: "c12a7328-f81f-11d2-ba4b-00a0c93ec93b",
  lvm: "e6d6d379-f507-44c2-a23c-238f2a3df928",
  raid: "a19d880f-05fc-4d3b-a006-743f0f84911e",
  swap: "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",
  zfs: "6a898cc3-1dd2-11b2-99a6-080020736631",
  luks: "ca7d7ccb-63ed-4c53-861c-1742536059cc",
  bios: "21686148-6449-6e6f-744e-656564454649",
  root: "4f68bce3-e8cd-4db1-96e7-fbcaf984b709",
} as const;

const MiB = 1024 ** 2;

const Partition = z
  .strictObject({
    name: PartitionName.describe("The partition's name in the table, by which other steps name it."),
    size: z
      .union([z.literal("100%"), ByteSize])
      .default("100%")
      .describe("A size such as 512M, or 100% for all that is left (the last one only)."),
    type: z
      .enum(Object.keys(types) as (keyof typeof types)[])
      .default("linux")
      .describe("The purpose: linux, esp, lvm, raid, swap, zfs, luks, bios (GRUB's own) or root."),
  })
  .meta({
    examples: [
      { name: "esp", size: "512M", type: "esp" },
      { name: "data", size: "100%" },
    ],
  });

const args = z.strictObject({
  disk: DiskId.describe("The disk, by serial, wwn, byId, busPath, model or size; an entry of the roster's disks fits."),
  label: z.literal("gpt").default("gpt").describe("The kind of table."),
  partitions: z
    .array(Partition)
    .min(1)
    .max(128)
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, "two partitions have the same name")
    .refine((list) => list.slice(0, -1).every(({ size }) => size !== "100%"), "only the last partition may take 100%")
    .refine(
      (list) => list.every(({ size }) => size === "100%" || (size >= MiB && size % MiB === 0)),
      "sizes are whole MiB",
    )
    .describe("In the order in which they lie on the disk."),
});

/**
 * ```yaml
 * disk.partitioned:
 *   disk: { serial: S3Z8NB0K }
 *   partitions:
 *     - { name: data, size: 100% }
 * ```
 * The table and the partitions get GUIDs derived from the node's id and the names of disk and partition, which a later run
 * recognizes. Missing partitions are added to kcore's own table, even if the disk is in use; no partition is moved, resized
 * or removed. Every other change needs a disk that is not in use, and that is blank or was granted by name (requirement
 * F-18).
 */
export const diskPartitioned = defineModule({
  name: "disk.partitioned",
  summary: "Keeps a GPT partition table on a disk, which must be blank or granted.",
  alsoKnownAs: ["parted", "partition.mkpart", "sgdisk", "sfdisk", "gpt", "disko"],
  args,
  refusals: [
    "DISK_AMBIGUOUS",
    "DISK_HAS_DATA",
    "DISK_IN_USE",
    "DISK_NOT_FOUND",
    "DISK_NOT_SAVED",
    "DISK_PARTITIONS_DIFFER",
    "DISK_TOO_SMALL",
    "TOOL_MISSING",
  ],
  step: ({ disk, partitions }, context) => {
    const wanted = layoutOf(disk, partitions, context);
    const resource = { is: "disk", name: diskName(disk).value } as const;
    return {
      effects: { writes: [resource], reads: [resource, { is: "program", name: "sgdisk" }] },
      want: {
        table: `gpt ${diskGuid(context, disk)}`,
        ...Object.fromEntries(wanted.map(({ name, fact }) => [`partition ${name}`, fact])),
      },
      probe: sh`${findDisk(disk)}
${probe(wanted)}`,
      guard: sh`${findDisk(disk)}
${decide(disk, wanted, context)}
case $todo in
  create) note "$(about_disk "$disk_name"): blank" ;;
  wipe) note_wipe "$found$differ" ;;
esac
${needSgdisk}`,
      // The process that writes finds and checks the disk again, since names of disks may have changed. It opens a disk that
      // gets a new table exclusively.
      apply: sh`${findDisk(disk)}
${exclusiveOpen}
${decide(disk, wanted, context, sh`{ hold "$disk" || :; users=$unheld; }`)}
${write(wanted, diskGuid(context, disk))}`,
      tools: diskTools,
      timeout: 120,
    };
  },
});

interface WantedPartition {
  readonly number: number;
  readonly name: string;
  readonly guid: string;
  readonly type: string;
  /** Bytes; absent: all that is left of the disk. */
  readonly bytes?: number;
  /** The fact as a plan shows it: PARTUUID, type and size. */
  readonly fact: string;
}

function layoutOf(
  disk: DiskId,
  partitions: z.output<typeof args>["partitions"],
  context: StepContext,
): WantedPartition[] {
  return partitions.map(({ name, size, type }, index) => {
    const guid = partitionGuid(context, { disk, partition: name });
    return {
      number: index + 1,
      name,
      guid,
      type: types[type],
      ...(size === "100%" ? {} : { bytes: size }),
      fact: `${guid} ${types[type]} ${size === "100%" ? "all" : `${size / MiB} MiB`}`,
    };
  });
}

/** Sets `found_N` for each wanted partition to its fact as the disk has it, or to nothing. */
function readPartitions(wanted: readonly WantedPartition[]): Sh {
  return sh`table=$(read_table "$disk")
# The size of a partition of 100% is not compared: a virtual machine's disk may have grown.
find_partition() {
  printf '%s\n' "$table" | while read -r number start sectors uuid type name; do
    [ "$uuid" = "$1" ] || continue
    if [ "$3" = all ]; then size=all; else size="$((sectors / 2048)) MiB"; fi
    [ "$name" = "$2" ] || size="$size named $name"
    [ -n "$(partition_of "$uuid")" ] || size="$size, not known to the kernel"
    echo "$uuid $type $size"
  done
}
${shLines(
  wanted.map(
    ({ number, guid, name, bytes }) =>
      sh`found_${number}=$(find_partition ${guid} ${name} ${bytes === undefined ? "all" : "fixed"})`,
  ),
)}`;
}

function probe(wanted: readonly WantedPartition[]): Sh {
  return sh`fact disk "$disk"
kind=$(blkid -p -o value -s PTTYPE "$disk" 2>/dev/null)
uuid=$(blkid -p -o value -s PTUUID "$disk" 2>/dev/null | tr 'A-F' 'a-f')
fact table "\${kind:-none}\${uuid:+ $uuid}"
${readPartitions(wanted)}
${shLines(wanted.map(({ number, name }) => sh`fact ${`partition ${name}`} "\${found_${number}:-absent}"`))}`;
}

/**
 * Sets `todo`, or refuses: add (kcore's own table), create (a blank disk) or wipe (a granted disk). `open` sets `users` to
 * the error of an exclusive open.
 */
function decide(
  disk: DiskId,
  wanted: readonly WantedPartition[],
  context: StepContext,
  open = sh`users=$(refused_disk "$disk")`,
): Sh {
  const { kind, value } = diskName(disk);
  const needed = wanted.reduce((sum, { bytes = MiB }) => sum + bytes, 2 * MiB);
  return sh`${clearFunctions}
judge_open() { ${open}; }
judge_differ() {
  is_granted "$disk_name" ${value} "$mark" "$differ" "$disk_name" ||
    refuse DISK_PARTITIONS_DIFFER "$describe has other partitions than wanted; kcore moves none; if all of them may go: --grant $grant$differ"
}
describe="disk $disk ("${`${kind} ${value}`}")" found= differ= mark=$K_STATE/fresh/${diskGuid(context, disk)}
if is_ours ${diskGuid(context, disk)}; then
  todo=add
  ${readPartitions(wanted)}
  ${shLines(
    wanted.map(
      ({ number, name, fact }) => sh`case $found_${number} in
    '' | ${fact} | ${`${fact}, not known to the kernel`}) ;;
    *) differ=$differ$K_NL${`partition ${name}: wanted ${fact}, found `}$found_${number} ;;
  esac`,
    ),
  )}
  [ -z "$differ" ] || todo=wipe
else
  todo=create found=$(all_contents)
fi
# Beside the partitions: a MiB before the first one, and the table's copy after the last.
if [ "$(cat "/sys/class/block/$disk_name/size")" -lt ${needed / 512} ]; then
  refuse DISK_TOO_SMALL "$describe has $(($(cat "/sys/class/block/$disk_name/size") / 2048)) MiB, and the partitions need "${`${Math.ceil(needed / MiB)} MiB`}
fi
[ "$todo" = add ] || judge_use
# A disk in use may change between two reads: compare its contents only after the exclusive open.
[ -z "$differ" ] || judge_differ
[ "$todo" != create ] || judge_contents ${value}
[ -z "$found" ] || todo=wipe`;
}

const needSgdisk = sh`have sgdisk || refuse TOOL_MISSING "sgdisk is not on this node; package gdisk has it"`;

function write(wanted: readonly WantedPartition[], guid: string): Sh {
  const add = ({ number, name, guid: unique, type, bytes }: WantedPartition): Sh =>
    sh`: >"$K_STATE/fresh/"${unique} || exit 1
  set -- "$@" -n ${`${number}:0:${bytes === undefined ? "0" : `+${bytes / 1024}K`}`} -t ${`${number}:${type}`} -c ${`${number}:${name}`} -u ${`${number}:${unique}`}`;
  return sh`${needSgdisk}
set --
case $todo in
  wipe)
    clear_disk
    set -- --clear --disk-guid=${guid}
    ;;
  create) set -- --clear --disk-guid=${guid} ;;
esac
# A new partition may hold old bytes. Its mark, flushed first, tells filesystem.formatted that it is unused.
mkdir -p "$K_STATE/fresh" || exit 1
${shLines(wanted.map((one) => sh`if [ "$todo" != add ] || [ -z "$found_${one.number}" ]; then ${add(one)}; fi`))}
if [ $# -gt 0 ]; then
  sync && sgdisk "$@" "$disk" || exit 1
  ${unmark(sh`"$mark"`)}
fi
release
# While the disk was open exclusively, the kernel kept the old table.
[ "$todo" = add ] || blockdev --rereadpt "$disk" 2>/dev/null
# udev makes the partitions' devices; if the kernel has not read the table, partx adds them.
tries=0
missing() { for uuid in ${wanted.map(({ guid: unique }) => unique)}; do
  name=$(partition_of "$uuid")
  [ -n "$name" ] && [ -b "$(device_of "$name")" ] || echo "$uuid"
done; }
while ! have udevadm || udevadm settle --timeout=10; [ -n "$(missing)" ]; do
  tries=$((tries + 1))
  [ $tries -le 20 ] || { echo "the kernel does not show the new partitions of $disk" >&2 && exit 1; }
  [ $((tries % 5)) != 1 ] || partx -u "$disk" 2>/dev/null
  sleep 0.5
done
# Signatures of an old layout at the start of new partitions are no filesystems.
if [ "$todo" = wipe ]; then
  for uuid in ${wanted.map(({ guid: unique }) => unique)}; do
    wipefs -a -q "$(device_of "$(partition_of "$uuid")")" || exit 1
  done
fi`;
}
