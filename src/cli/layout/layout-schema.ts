import { z } from "zod";
import { PartitionName, VolumeName } from "#engine/step/disk-names.ts";
import { AbsolutePath } from "#engine/step/fields.ts";
import { PoolName, Properties, ofEncryption } from "#engine/step/zfs-names.ts";

const Text = z.string().min(1);

/** What lies in a partition; which keys go with which type, `checkLayout` says. */
const flat = {
  format: z.enum(["ext4", "xfs", "vfat"]).optional(),
  mountpoint: AbsolutePath.optional(),
  mountOptions: z.array(Text).optional(),
  vg: VolumeName.optional(),
  pool: PoolName.optional(),
};
const Inner = z.strictObject({ type: z.enum(["filesystem", "lvm_pv", "zfs", "swap"]), ...flat });
export const ContentSchema = z.strictObject({
  type: z.enum(["filesystem", "lvm_pv", "zfs", "swap", "luks"]),
  ...flat,
  allowDiscards: z.boolean().optional(),
  content: Inner.optional(),
});
export type Content = z.output<typeof ContentSchema>;
export type InnerContent = z.output<typeof Inner>;

const Identifier = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a name of letters, digits and “_”");

const PartitionSchema = z.strictObject({
  name: Identifier.pipe(PartitionName),
  size: z.union([z.string(), z.number()]),
  content: ContentSchema.optional(),
});

const DiskSchema = z.strictObject({
  name: Identifier,
  device: Text.optional(),
  serial: Text.optional(),
  gpt: z.strictObject({ partitions: z.array(PartitionSchema) }),
});

/** What a pool's disks may be to each other; `raidz` and nothing at all as disko writes them. */
const modes = ["stripe", "mirror", "raidz1", "raidz2", "raidz3"] as const;

/** `spec.diskLayout` of a `DiskLayout`; disko's layouts are translated into it. */
export const LayoutSchema = z.strictObject({
  disks: z.array(DiskSchema).default([]),
  lvmVolumeGroups: z.array(z.strictObject({ name: VolumeName })).default([]),
  zfsPools: z
    .array(
      z.strictObject({
        name: PoolName,
        mode: z.enum(modes).default("stripe"),
        rootProperties: Properties([...ofEncryption, "mountpoint"]).default({ compression: "lz4" }),
      }),
    )
    .default([]),
});
export type Layout = z.output<typeof LayoutSchema>;
export type LayoutDisk = Layout["disks"][number];
export type LayoutPartition = LayoutDisk["gpt"]["partitions"][number];

/** What lies in a partition in the end, and whether a LUKS container is around it. */
export function insideOf({ content }: LayoutPartition): { readonly encrypted: boolean; readonly inner?: InnerContent } {
  if (content === undefined) return { encrypted: false };
  if (content.type !== "luks") return { encrypted: false, inner: content as InnerContent };
  return { encrypted: true, ...(content.content === undefined ? {} : { inner: content.content }) };
}
