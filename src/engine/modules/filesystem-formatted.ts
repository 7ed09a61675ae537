import { z } from "zod";
import { defineModule } from "../step/define.ts";
import {
  deviceFields,
  deviceFrom,
  deviceGuid,
  deviceName,
  filesystemUuid,
  namesNoDevice,
  oneDeviceMessage,
  shownUuid,
} from "../step/disk-names.ts";
import { findDevice, findForeignPartition } from "../step/fragments/disk.ts";
import { formatRefusals, stepOfFormat, type DeviceFormat } from "../step/fragments/format.ts";
import { sh, type Sh } from "../step/sh.ts";

const labelLimits = { ext4: 16, xfs: 12, vfat: 11 } as const;

const args = z
  .strictObject({
    ...deviceFields,
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
      .describe("The filesystem's label (at most 16 characters, xfs 12, vfat 11)."),
    options: z
      .array(z.string().regex(/^[A-Za-z0-9=,._:^/-]+$/, "must be one word of an mkfs command"))
      .default([])
      .describe("More words for the mkfs command, such as -m and 0; used only when the filesystem is made."),
  })
  .refine(
    (given) => (given.partuuid === undefined ? deviceFrom(given) !== undefined : namesNoDevice(given)),
    `${oneDeviceMessage}, or partuuid`,
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
 * The filesystem's UUID is derived from the UUID of the partition, array or LUKS container, or from `vg` and `lv`; a later run recognizes kcore's filesystem by that UUID. Other contents are refused, never formatted,
 * unless the disk, `VG/LV` or `md/ARRAY` was granted by name (requirement F-18).
 */
export const filesystemFormatted = defineModule({
  name: "filesystem.formatted",
  summary:
    "Keeps a filesystem on a partition, logical volume, array or opened LUKS container, which must be blank or granted.",
  alsoKnownAs: ["filesystem", "blockdev.formatted", "mkfs", "ext4", "xfs", "vfat"],
  args,
  refusals: formatRefusals.toSorted(),
  step: (given, context) => {
    const { fstype, label } = given;
    const device = deviceFrom(given);
    const guid = device ? deviceGuid(context, device) : (given.partuuid ?? "");
    const uuid = filesystemUuid(guid);
    const resource = { is: "disk", name: device ? deviceName(device) : "*" } as const;
    const format: DeviceFormat = {
      find: device ? findDevice(device, context) : findForeignPartition(guid),
      guid,
      type: fstype,
      uuid: shownUuid(uuid, fstype),
      wanted: `${fstype}${label === undefined ? "" : ` “${label}”`}`,
      grant: device ? deviceName(device) : "",
      make: make(fstype, uuid, label, given.options),
      tool: { command: `mkfs.${fstype}`, package: packages[fstype] },
    };
    return {
      ...stepOfFormat(format, {
        facts: sh`fact label "$label"`,
        ...(label === undefined ? {} : { after: sh`[ -n "$todo" ] || ${relabel(fstype, label)} || exit 1` }),
      }),
      effects: { writes: [resource], reads: [resource, { is: "program", name: `mkfs.${fstype}` }] },
      want: { type: fstype, uuid: format.uuid, ...(label === undefined ? {} : { label }) },
      timeout: 600,
    };
  },
});

const packages = { ext4: "e2fsprogs", xfs: "xfsprogs", vfat: "dosfstools" } as const;

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
      return sh`e2label "$device" ${label}`;
    case "xfs":
      return sh`xfs_admin -L ${label} "$device"`;
    case "vfat":
      return sh`fatlabel "$device" ${label}`;
  }
}
