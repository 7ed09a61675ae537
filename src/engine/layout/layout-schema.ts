import { z } from "zod";
import { PartitionName, VolumeName } from "#engine/step/disk-names.ts";
import { AbsolutePath } from "#engine/step/fields.ts";
import { PoolName, Properties, encryptionProperties } from "#engine/step/zfs-names.ts";

const Text = z.string().min(1);

/** The contents of a partition; `checkLayout` knows the keys of each type. */
const contentFields = {
  format: z.enum(["ext4", "xfs", "vfat"]).optional().describe("The format of a filesystem."),
  mountpoint: AbsolutePath.optional().describe("Where a filesystem is mounted."),
  mountOptions: z.array(Text).optional().describe("Mount options of a filesystem, such as noatime."),
  vg: VolumeName.optional().describe("The volume group of an lvm_pv."),
  pool: PoolName.optional().describe("The pool of a zfs."),
};
const Inner = z.strictObject({
  type: z.enum(["filesystem", "lvm_pv", "zfs", "swap"]).describe("The kind of contents."),
  ...contentFields,
});
export const ContentSchema = z.strictObject({
  type: z.enum(["filesystem", "lvm_pv", "zfs", "swap", "luks"]).describe("The kind of contents."),
  ...contentFields,
  allowDiscards: z.boolean().optional().describe("A luks lets discards through to the disk."),
  content: Inner.optional().describe("The content of a luks."),
});
export type Content = z.output<typeof ContentSchema>;
export type InnerContent = z.output<typeof Inner>;

const Identifier = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a name of letters, digits and “_”");

const PartitionSchema = z.strictObject({
  name: Identifier.pipe(PartitionName).describe("The partition's name in the table."),
  size: z.union([z.string(), z.number()]).describe("16G, or 100% for what the others leave."),
  content: ContentSchema.optional().describe("The partition's content."),
});

const DiskSchema = z.strictObject({
  name: Identifier.describe("The disk's name in this layout."),
  device: Text.optional().describe("Any name of the disk below /dev; or serial."),
  serial: Text.optional().describe("The disk's serial number; or device."),
  gpt: z
    .strictObject({ partitions: z.array(PartitionSchema).describe("In the order in which they lie on the disk.") })
    .describe("The disk's partition table."),
});

/** The kinds of vdevs of a pool. */
const modes = ["stripe", "mirror", "raidz1", "raidz2", "raidz3"] as const;

/** `spec.diskLayout` of a `DiskLayout`; disko's layouts are translated into it. */
export const LayoutSchema = z.strictObject({
  disks: z.array(DiskSchema).default([]).describe("The disks."),
  lvmVolumeGroups: z
    .array(z.strictObject({ name: VolumeName.describe("The volume group's name.") }))
    .default([])
    .describe("Volume groups of the partitions that are lvm_pv."),
  zfsPools: z
    .array(
      z.strictObject({
        name: PoolName.describe("The pool's name."),
        mode: z.enum(modes).default("stripe").describe("The kind of the pool's vdevs."),
        rootProperties: Properties([...encryptionProperties, "mountpoint"])
          .default({ compression: "lz4" })
          .describe("Properties of the pool's root dataset."),
      }),
    )
    .default([])
    .describe("Pools of the partitions that are zfs."),
});
export type Layout = z.output<typeof LayoutSchema>;
export type LayoutDisk = Layout["disks"][number];
export type LayoutPartition = LayoutDisk["gpt"]["partitions"][number];

/** The innermost contents of a partition, and whether a LUKS container is around them. */
export function insideOf({ content }: LayoutPartition): { readonly encrypted: boolean; readonly inner?: InnerContent } {
  if (content === undefined) return { encrypted: false };
  if (content.type !== "luks") return { encrypted: false, inner: content as InnerContent };
  return { encrypted: true, ...(content.content === undefined ? {} : { inner: content.content }) };
}

export type Path = readonly (string | number)[];

/** Reports a problem at a path below a layout. */
export type Refuse = (path: Path, message: string, hint?: string) => void;

/** Refuses a name that the list has twice. */
export function checkNames(what: string, list: readonly { readonly name: string }[], path: Path, refuse: Refuse): void {
  for (const [index, { name }] of list.entries())
    if (list.findIndex((other) => other.name === name) < index)
      refuse([...path, index, "name"], `the ${what} ${name} is here twice`, "give one of them another name");
}
