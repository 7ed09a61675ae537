import { z } from "zod";
import { defineModule, type StepContext } from "../step/define.ts";
import {
  ArrayName,
  deviceFrom,
  deviceName,
  diskGuid,
  DiskId,
  diskName,
  VolumeName,
  type DeviceOf,
} from "../step/disk-names.ts";
import { Sha256, ByteSize } from "../step/fields.ts";
import { exclusiveOpen } from "../step/fragments/exclusive-open.ts";
import { diskTools, findDevice, findDisk } from "../step/fragments/disk.ts";
import { grantFunctions } from "../step/fragments/granted.ts";
import { luksFolder } from "../step/fragments/luks.ts";
import { unmark } from "../step/fragments/unmark.ts";
import { sh, type Sh } from "../step/sh.ts";
import { uuidOf } from "../step/uuid.ts";

const sector = 512;
/** A number of bytes that is a multiple of a sector. */
const WholeSectors = z
  .int()
  .min(0)
  .refine((bytes) => bytes % sector === 0, "must be a number of whole sectors of 512 bytes");

const SavedPiece = z
  .strictObject({
    offset: WholeSectors.describe("The place of the piece, in bytes from the beginning."),
    length: WholeSectors.min(sector).describe("Bytes."),
    sha256: Sha256.describe("The SHA-256 of these bytes."),
  })
  .meta({ examples: [{ offset: 0, length: 1048576, sha256: "0".repeat(64) }] });

const args = z
  .strictObject({
    disk: DiskId.optional().describe("The disk, by serial, wwn or byId."),
    vg: VolumeName.optional().describe("Instead of disk: a volume group, together with lv."),
    lv: VolumeName.optional().describe("The logical volume."),
    array: ArrayName.optional().describe("Instead of disk, vg and lv: an array."),
    size: ByteSize.describe("The size of the device when it was saved; another size is refused."),
    source: z.string().describe("The pieces one behind the other, packed by gzip: pieces.gz of a save."),
    pieces: z
      .array(SavedPiece)
      .min(1)
      .refine(
        (list) => list.every(({ offset }, at) => at === 0 || offset >= pieceEnd(list[at - 1])),
        "pieces lie in the order of their offsets and do not overlap",
      )
      .describe("The saved pieces, in the order of their offsets."),
  })
  .refine(
    ({ disk, ...other }) => (deviceFrom(other) === undefined) === (disk !== undefined),
    "needs disk, vg and lv, or array",
  )
  .refine(({ size, pieces }) => pieceEnd(pieces.at(-1)) <= size, "a piece lies behind the end");

function pieceEnd(piece: { readonly offset: number; readonly length: number } | undefined): number {
  return piece ? piece.offset + piece.length : 0;
}

/**
 * ```yaml
 * disk.restored:
 *   disk: { serial: S3Z8NB0K }
 *   size: 4MiB
 *   source: .kcore/tables/n1/S3Z8NB0K/0b1c/pieces.gz
 *   pieces:
 *     - { offset: 0, length: 4096, sha256: 9f64a747e1b97f131fabb6b447296c9b6f0201e79fb3c5356e6c77e89b6a806a }
 * ```
 * The node's part of `kcore disk restore-table`: writes a disk's saved table, headers and labels back to their offsets, but
 * no contents of files. With `--grant NAME:restore` (NAME: the device's name), which the command adds, the bastion saves the
 * present table first; without that grant, the step refuses. A disk in use is always refused, and a disk with data unless
 * the data was granted (requirement F-18).
 */
export const diskRestored = defineModule({
  name: "disk.restored",
  summary: "Puts the saved table, headers and labels of a disk, logical volume or array back.",
  alsoKnownAs: ["dd"],
  args,
  refusals: [
    "ARRAY_NOT_FOUND",
    "DISK_AMBIGUOUS",
    "DISK_HAS_DATA",
    "DISK_IN_USE",
    "DISK_NOT_FOUND",
    "DISK_NOT_SAVED",
    "DISK_SAVE_UNFIT",
    "VOLUME_NOT_FOUND",
  ],
  step: ({ disk, size, source, pieces, ...other }, context) => {
    const given = deviceFrom(other) as DeviceOf;
    const name = disk ? diskName(disk).value : deviceName(given);
    const findTarget = sh`${
      disk
        ? sh`${findDisk(disk)}
device=$disk name=$disk_name`
        : findDevice(given, context)
    }
describe="$device ("${name}")"
[ "$(($(cat "/sys/class/block/$name/size") * 512))" = ${size} ] ||
  refuse DISK_SAVE_UNFIT "$describe has $(($(cat "/sys/class/block/$name/size") * 512)) bytes, and the saved disk had "${size}`;
    const judgeTarget = (open = sh`users=$(refused_disk "$device")`): Sh => sh`${findTarget}
${refuseUnfit({ name, disk, open }, context)}`;
    const resource = { is: "disk", name } as const;
    return {
      effects: { writes: [resource, { is: "tree", path: luksFolder }], reads: [resource] },
      want: { bytes: "as saved", partitions: "as the table says" },
      probe: sh`${findTarget}
${compare(pieces)}
fact device "$device"
if [ "$differ" = 0 ]; then fact bytes "as saved"; else fact bytes "$differ of "${`${pieces.length} pieces differ`}; fi
${kernelsPartitions}
fact partitions "\${strange:-as the table says}"`,
      guard: judgeTarget(),
      // The process that writes finds and checks the device again, since names of disks may have changed, and opens it
      // exclusively.
      apply: sh`${exclusiveOpen}
${judgeTarget(sh`{ hold "$device" || :; users=$unheld; }`)}
wiping ${`${name}:restore`}
note "putting ${`${pieces.length} pieces back on `}$describe"
mkdir -p "$K_STATE/fresh" && echo "\${grant:-none}" >"$mark" && sync || exit 1
printf '%s\n' ${gapsOf(pieces)} >"$K_TMP/gaps"
# The device is opened once for all pieces: at each close udev reads it, and may activate what it finds.
gzip -dc ${context.readFile(source)} | {
  while read -r block gap count <&4; do
    dd bs="$block" seek="$gap" count="$count" iflag=fullblock conv=notrunc 2>"$K_TMP/dd" || { cat "$K_TMP/dd" >&2 && exit 1; }
  done
} 4<"$K_TMP/gaps" 1<>"$device" || exit 1
sync
${compare(pieces)}
[ "$differ" = 0 ] || { echo "$differ pieces are not on $device as they were written" >&2 && exit 1; }
release
${reread}
${forget}`,
      tools: [...diskTools, { command: "gzip", package: "gzip" }],
      timeout: 600,
    };
  },
});

type Pieces = z.output<typeof args>["pieces"];

/** The largest block size, up to a MiB, that divides all these numbers of bytes. */
function blockSize(...bytes: readonly number[]): number {
  let block = 1024 ** 2;
  while (bytes.some((count) => count % block !== 0)) block /= 2;
  return block;
}

/** `BLOCK SKIP COUNT SHA256` of each piece. */
function sumsOf(pieces: Pieces): string {
  return pieces
    .map(({ offset, length, sha256 }) => {
      const block = blockSize(offset, length);
      return `${block} ${offset / block} ${length / block} ${sha256}`;
    })
    .join("\n");
}

/** `BLOCK GAP COUNT` of each piece; the gap begins at the end of the piece before. */
function gapsOf(pieces: Pieces): string {
  return pieces
    .map(({ offset, length }, index) => {
      const gap = offset - pieceEnd(pieces[index - 1]);
      const block = blockSize(gap, length);
      return `${block} ${gap / block} ${length / block}`;
    })
    .join("\n");
}

/**
 * Sets `differ` to the number of pieces that differ on the device. Flushes the caches first: a partition's cache is
 * separate from the cache of the whole disk.
 */
function compare(pieces: Pieces): Sh {
  return sh`sync
blockdev --flushbufs "$device" 2>/dev/null
differ=$(printf '%s\n' ${sumsOf(pieces)} | {
  count=0
  while read -r block skip blocks sum; do
    [ "$(dd if="$device" bs="$block" skip="$skip" count="$blocks" 2>/dev/null | sha256sum)" = "$sum  -" ] || count=$((count + 1))
  done
  echo "$count"
})`;
}

/** Sets `strange`, not empty if the partitions of the table and of the kernel differ. */
const kernelsPartitions = sh`in_kernel=$(for part in $(partitions_of "$name"); do
  echo "$(cat "/sys/class/block/$part/partition") $(cat "/sys/class/block/$part/start")"
done | sort -n)
in_table=$([ -z "$disk" ] || read_table "$device" | sed -n 's/^\([0-9][0-9]* [0-9][0-9]*\) .*/\1/p' | sort -n)
strange=
[ "$in_kernel" = "$in_table" ] || strange="the kernel's differ"`;

/**
 * Refuses a disk in use, data that was not granted, and contents that were not saved. `open` sets `users` to the error of
 * an exclusive open.
 */
function refuseUnfit(
  { name, disk, open }: { readonly name: string; readonly disk: DiskId | undefined; readonly open: Sh },
  context: StepContext,
): Sh {
  const ours = disk ? diskGuid(context, disk) : "";
  return sh`${grantFunctions}
mark=$K_STATE/fresh/${uuidOf(context.nodeId ?? context.node, "restore", name)}
users=$(for part in "$name" $(partitions_of "$name"); do users_of "$part"; done)
[ -n "$users" ] || ${open}
[ -z "$users" ] || refuse DISK_IN_USE "$describe is in use, which no grant overrides$K_NL$users"
granted ${`${name}:restore`} ||
  refuse DISK_NOT_SAVED "the present tables of $describe have to be saved before any are restored: kcore disk restore-table does; in a state of your own: --grant "${`${name}:restore`}
# kcore's own table, and its unused partitions, are no data.
if [ -n ${ours} ] && [ "$(blkid -p -o value -s PTUUID "$device" 2>/dev/null | tr 'A-F' 'a-f')" = ${ours} ]; then
  found=$(signatures_of "$device" | grep -v -e ' holds gpt at ' -e ' holds PMBR at ')
  for part in $(partitions_of "$name"); do
    uuid=$(blkid -p -o value -s PART_ENTRY_UUID "$(device_of "$part")" 2>/dev/null | tr 'A-F' 'a-f')
    if [ -n "$uuid" ] && [ -e "$K_STATE/fresh/$uuid" ] && [ ! -s "$K_STATE/fresh/$uuid" ]; then
      found=$found$(signatures_of "$(device_of "$part")")
    else
      found=$found$(contents_of "$part")
    fi
  done
else
  found=$(for part in "$name" $(partitions_of "$name"); do contents_of "$part"; done)
fi
grant=
if [ -n "$found" ]; then
  is_granted "$disk_name" ${name} "$mark" "$found" "$name" ||
    refuse DISK_HAS_DATA "$describe holds data; if it may be written over: --grant $grant$K_NL$found"
fi`;
}

/** Makes the kernel read the table again, until the kernel shows the table's partitions. */
const reread = sh`tries=0
while :; do
  if [ -n "$disk" ]; then blockdev --rereadpt "$device" 2>/dev/null || partx -u "$device" 2>/dev/null; fi
  ! have udevadm || udevadm settle --timeout=10
  ${kernelsPartitions}
  [ -n "$strange" ] || break
  tries=$((tries + 1))
  [ $tries -le 10 ] || { echo "the kernel does not show the partitions of $device" >&2 && exit 1; }
  sleep 0.5
done`;

/**
 * Removes the marks in $K_STATE/fresh of devices that kcore made and did not finish: with a mark left, the next run could
 * format a restored device. The state of a container's recovery key is removed, too, since the restored header may hold
 * another key. The mark of a logical volume does not name its disk, so for a physical volume all marks are removed: at
 * worst kcore asks for a grant.
 */
const forget = sh`for part in "$name" $(partitions_of "$name"); do
  for tag in PTUUID PART_ENTRY_UUID UUID; do
    uuid=$(blkid -p -o value -s $tag "$(device_of "$part")" 2>/dev/null | tr 'A-F' 'a-f')
    # A LUKS header may hold any text as UUID, even a path.
    case $uuid in '' | *[!0-9a-f-]*) ;; *) rm -f "$K_STATE/fresh/$uuid" ${luksFolder}"/$uuid.recovery" ;; esac
  done
  [ "$(blkid -p -o value -s TYPE "$(device_of "$part")" 2>/dev/null)" != LVM2_member ] || rm -f "$K_STATE/fresh/"*
done
${unmark(sh`"$mark"`)}`;
