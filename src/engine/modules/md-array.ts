import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { ArrayName, deviceGuid, deviceName, DiskId, diskName, PartitionName } from "../step/disk-names.ts";
import { arrayLink, arrayUuid, diskTools, eachPartition } from "../step/fragments/disk.ts";
import { grantFunctions, wipeGranted } from "../step/fragments/granted.ts";
import { unmark } from "../step/fragments/unmark.ts";
import { sh } from "../step/sh.ts";

/** RAID levels and the fewest members of each (md(4)). */
const fewestMembers = { 0: 2, 1: 2, 5: 3, 6: 4, 10: 2 } as const;
type Level = keyof typeof fewestMembers;

const args = z
  .strictObject({
    name: ArrayName.describe("The array's name."),
    level: z
      .literal(Object.keys(fewestMembers).map(Number) as [Level, ...Level[]])
      .default(1)
      .describe("The RAID level: 0, 1, 5, 6 or 10."),
    disks: z.array(DiskId).min(2).max(64).describe("The disks whose partitions are the array's active members."),
    partition: PartitionName.describe("The name of the member partition on each of the disks."),
  })
  .refine(({ level, disks }) => disks.length >= fewestMembers[level], "too few disks for this RAID level");

/**
 * ```yaml
 * md.array:
 *   name: data
 *   disks: [{ serial: S3Z8NB0K }, { serial: S3Z8NB1M }]
 *   partition: raid
 * ```
 * The array's UUID follows from the node's id and the array's name: by it kcore knows its own arrays. Members must be
 * blank or granted by the name of their disk (requirement F-18). A missing member of a running array, on a new disk for
 * instance, is added. The number of members and the level are never changed. The first synchronisation continues in the
 * background. Steps that use the array have `array: NAME`.
 */
export const mdArray = defineModule({
  name: "md.array",
  summary: "Keeps a Linux software RAID array (md) of partitions.",
  alsoKnownAs: ["mdadm", "raid.present", "raid"],
  args,
  refusals: [
    "ARRAY_DIFFERS",
    "DISK_AMBIGUOUS",
    "DISK_IN_USE",
    "DISK_NOT_FOUND",
    "DISK_NOT_SAVED",
    "FILESYSTEM_DIFFERS",
    "PARTITION_NOT_FOUND",
    "TOOL_MISSING",
  ],
  step: ({ name, level, disks, partition }, context) => {
    const guid = deviceGuid(context, { array: name });
    const members = disks.map((disk) => ({ disk, partition }));
    const factNames = members.map(({ disk }) => `member ${diskName(disk).value}`);
    const path = `/dev/md/${name}`;
    const wantedShape = `raid${level} of ${disks.length}`;
    const readState = sh`array=$(readlink -f ${arrayLink(guid)}) && [ -b "$array" ] || array=
running=\${array##*/} shape=absent making=$K_STATE/fresh/${guid}.making
[ -z "$running" ] || { read -r level <"/sys/class/block/$running/md/level" && read -r count <"/sys/class/block/$running/md/raid_disks" && shape="$level of $count"; }
# read_member: sets member to none, unfinished, "not running", "not in it", "in the array", or another state that the kernel reports.
read_member() {
  member=none
  [ "$(blkid -p -o value -s TYPE "$device" 2>/dev/null):$(blkid -p -o value -s UUID "$device" 2>/dev/null)" = ${`linux_raid_member:${guid}`} ] || return 0
  member='not running'
  [ ! -e "$making" ] || member=unfinished
  [ -z "$running" ] || { read -r member <"/sys/class/block/$running/md/dev-$name/state"; } 2>/dev/null || member='not in it'
  # The array has a slot for each member, so a spare is one that md rebuilds.
  case $member in in_sync* | spare | write_mostly*) member='in the array' ;; esac
}`;
    const judge = sh`have mdadm || refuse TOOL_MISSING 'mdadm is not on this node; package mdadm has it'
${readState}
[ -z "$running" ] || [ -e "$making" ] || [ "$shape" = ${wantedShape} ] || refuse ARRAY_DIFFERS ${`the array ${name} is there, but not as wanted (${wantedShape}), and kcore reshapes none: `}"$shape"
${grantFunctions}
ours= add= all= wipe=
${eachPartition(
  members,
  context,
  sh`read_member
  all="$all $device"
  case $member in
    'in the array') return 0 ;;
    none | unfinished) ;;
    'not running')
      ours="$ours $device"
      return 0
      ;;
    *faulty*) refuse ARRAY_DIFFERS "$device is in the array, and faulty: mdadm --remove takes it out; then it is taken in again, or another one" ;;
  esac
  add="$add $device"
  # Users do not count here: udev may hold the member for the unfinished array.
  [ "$member" != unfinished ] || return 0
  refuse_users "$name"
  [ "$member" != 'not in it' ] || return 0
  found=$(contents_of "$name")
  # After an interrupted --create only signatures count: the synchronisation may have written other bytes.
  [ ! -e "$making" ] || found=$(signatures_of "$device")
  [ -z "$found" ] || is_granted "$disk_name" "$2" "$K_STATE/fresh/$3" "$found" "$name" || refuse FILESYSTEM_DIFFERS ${`a member of the array ${name} is wanted on `}"$device, which holds something else; if that may go: --grant $grant$K_NL$found"
  [ -z "$found" ] || wipe="$wipe $name=$judged"`,
)}`;
    return {
      effects: {
        writes: [{ is: "disk", name: deviceName({ array: name }) }, ...members.map(memberDisk)],
        reads: [
          { is: "disk", name: deviceName({ array: name }) },
          ...members.map(memberDisk),
          { is: "program", name: "mdadm" },
        ],
      },
      want: { array: wantedShape, ...Object.fromEntries(factNames.map((fact) => [fact, "in the array"])) },
      probe: sh`${readState}
if [ -e "$making" ]; then fact array "unfinished $shape"; else fact array "$shape"; fi
${eachPartition(
  members,
  context,
  sh`read_member
  fact "member $2" "$member"`,
)}`,
      guard: judge,
      apply: sh`${judge}
# A former member is added again with its data, if possible.
add_member() {
  mdadm --manage "$1" --re-add "$device" 2>/dev/null && return 0
  mdadm --zero-superblock "$device" 2>/dev/null
  mdadm --manage "$1" --add "$device"
}
${wipeGranted}
for one in $wipe; do wipe_granted "\${one%%=*}" "\${one#*=}"; done
set -f
if [ -e "$making" ] && [ "$shape" = ${wantedShape} ] && [ -z "$add" ]; then
  ${unmark(sh`"$making"`)}
elif [ -n "$running" ] && [ ! -e "$making" ]; then
  for device in $add; do add_member "$array" || exit 1; done
elif [ -n "$ours" ] && [ ! -e "$making" ]; then
  mdadm --assemble ${path} --run ${`--uuid=${arrayUuid(guid)}`} $ours || exit 1
  for device in $add; do add_member ${path} || exit 1; done
else
  [ -z "$running" ] || mdadm --stop "$array" || exit 1
  # The file GUID.making marks an unfinished --create, the file GUID an unused array, whose members may hold old bytes.
  mkdir -p "$K_STATE/fresh" && : >"$making" && : >"$K_STATE/fresh/"${guid} && sync || exit 1
  mdadm --create ${path} --run --metadata=1.2 --homehost=any ${[`--name=${name}`, `--uuid=${arrayUuid(guid)}`, `--level=${level}`, `--raid-devices=${disks.length}`]} $all || exit 1
  ${unmark(sh`"$making"`)}
fi
! have udevadm || udevadm settle --timeout=10 || :`,
      tools: diskTools,
      timeout: 300,
    };
  },
});

function memberDisk({ disk }: { readonly disk: DiskId }): { readonly is: "disk"; readonly name: string } {
  return { is: "disk", name: diskName(disk).value };
}
