import { z } from "zod";
import { defineModule, type StepContext } from "../step/define.ts";
import {
  deviceFields,
  deviceGuid,
  DiskId,
  diskName,
  PartitionName,
  physicalVolumeUuid,
  VolumeName,
  type PartitionOf,
} from "../step/disk-names.ts";
import { ByteSize } from "../step/fields.ts";
import { quietLvm } from "../step/fragments/lvm.ts";
import { sh, shLines } from "../step/sh.ts";

const MiB = 1024 ** 2;

const args = z.strictObject({
  name: VolumeName.describe("The volume group's name."),
  disks: z
    .array(DiskId)
    .min(1)
    .max(256)
    .describe("The disks whose physical volumes are in the group; other members stay in the group."),
  partition: PartitionName.describe("The name of the partition that is a physical volume on each of the disks."),
  encrypted: deviceFields.encrypted,
  extentSize: ByteSize.refine((size) => size >= MiB && Number.isInteger(Math.log2(size / MiB)), {
    message: "must be a power of two, at least 1M",
  })
    .optional()
    .describe("The size of the group's extents, used when the group is made (default: LVM's, 4M)."),
});

/**
 * ```yaml
 * lvm.volume_group:
 *   name: vg_kcore
 *   disks: [{ serial: S3Z8NB0K }, { serial: S3Z8NB1M }]
 *   partition: data
 * ```
 * A group of physical volumes that `lvm.physical_volume` made. Disks that are added to the list extend the group; none is
 * removed from it. An existing group of this name without any of these physical volumes is foreign, and refused.
 */
export const lvmVolumeGroup = defineModule({
  name: "lvm.volume_group",
  summary: "Keeps an LVM volume group of the node's physical volumes.",
  alsoKnownAs: ["lvg", "lvm.vg_present", "vgcreate"],
  args,
  refusals: ["LVM_GROUP_TAKEN", "LVM_PV_MISSING", "LVM_PV_TAKEN", "TOOL_MISSING"],
  step: ({ name, disks, partition, encrypted, extentSize }, context) => {
    const members = disks.map((disk) => memberOf({ disk, partition }, encrypted, context));
    const readState = sh`${quietLvm}
members=$(pvs --noheadings --separator ' ' -o pv_uuid,pv_name,vg_name 2>/dev/null)
# member UUID: sets device and group of a physical volume; group is empty if there is no such volume, - if it is in no group.
member() {
  line=$(printf '%s\n' "$members" | sed -n "s/^ *$1 //p") group=
  [ -n "$line" ] || return 0
  device=\${line%% *} rest=\${line#"\${line%% *}"}
  rest=\${rest#"\${rest%%[! ]*}"} group=\${rest%% *} group=\${group:--}
}`;
    const judge = sh`have vgcreate || refuse TOOL_MISSING "vgcreate is not on this node; package lvm2 has it"
${readState}
set --
has_member=
${shLines(
  members.map(
    ({ uuid, shown }) => sh`member ${uuid}
case $group in
  '') refuse LVM_PV_MISSING ${`${shown} is no physical volume of kcore's: lvm.physical_volume makes one`} ;;
  -) set -- "$@" "$device" ;;
  ${name}) has_member=yes ;;
  *) refuse LVM_PV_TAKEN ${`${shown} belongs to the volume group `}"$group" ;;
esac`,
  ),
)}
there=$(vgs --noheadings -o vg_name ${name} 2>/dev/null)
[ -z "$there" ] || [ -n "$has_member" ] ||
  refuse LVM_GROUP_TAKEN ${`there is a volume group ${name} already, and none of the physical volumes named are in it`}"$K_NL$(vgs -o +pv_name ${name} 2>&1)"`;
    return {
      effects: {
        writes: [{ is: "disk", name }, ...members.map(({ resource }) => resource)],
        reads: [{ is: "disk", name }, ...members.map(({ resource }) => resource), { is: "program", name: "vgcreate" }],
      },
      want: Object.fromEntries(members.map(({ shown }) => [`physical volume ${shown}`, name])),
      probe: sh`${readState}
${shLines(
  members.map(
    ({ uuid, shown }) => sh`member ${uuid}
[ "$group" != - ] || group='no group'
fact ${`physical volume ${shown}`} "\${group:-missing}"`,
  ),
)}`,
      guard: judge,
      apply: sh`${judge}
if [ -n "$has_member" ]; then vgextend -q ${name} "$@"; else vgcreate -q ${extentSize === undefined ? [] : ["-s", `${extentSize / MiB}m`]} ${name} "$@"; fi || exit 1
sync`,
      timeout: 120,
    };
  },
});

interface Member {
  readonly uuid: string;
  readonly shown: string;
  readonly resource: { readonly is: "disk"; readonly name: string };
}

function memberOf(at: PartitionOf, encrypted: boolean, context: StepContext): Member {
  const { value } = diskName(at.disk);
  return {
    uuid: physicalVolumeUuid(deviceGuid(context, { ...at, encrypted })),
    shown: `${value}/${at.partition}`,
    resource: { is: "disk", name: value },
  };
}
