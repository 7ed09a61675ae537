import { z } from "zod";
import type { StepContext } from "./define.ts";
import { ByteSize } from "./fields.ts";
import { uuidOf } from "./uuid.ts";

const Label = z
  .string()
  .max(128)
  .regex(/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/, "must be printable ASCII without spaces at its ends");

const LinkName = z
  .string()
  .regex(/^[A-Za-z0-9_+=@:#.,-]{1,255}$/, "must be the name of a link below /dev/disk, without the folder")
  .refine((name) => !/^\.\.?$/.test(name), "must be the name of a link");

/** The arguments that can identify a whole disk. */
export const diskFields = {
  serial: Label.optional().describe("The disk's serial number, as `lsblk -o SERIAL` shows it."),
  wwn: Label.optional().describe("The disk's World Wide Name, as `lsblk -o WWN` shows it."),
  byId: LinkName.optional().describe("The name of the disk's link in /dev/disk/by-id."),
  busPath: LinkName.optional().describe("The disk's place: the name of its link in /dev/disk/by-path."),
  model: Label.optional().describe("The disk's model, as `lsblk -o MODEL` shows it; alone or with size."),
  size: ByteSize.optional().describe("The disk's size as `lsblk -o SIZE` shows it, to 2 %; alone or with model."),
};

type DiskFields = { readonly [Key in keyof typeof diskFields]?: z.output<(typeof diskFields)[Key]> };

export const oneDiskMessage =
  "a disk is named by exactly one of serial, wwn, byId and busPath, or by model, size or both";

/** Whether these fields name a disk in exactly one way. */
export function isOneDisk({ serial, wwn, byId, busPath, model, size }: DiskFields): boolean {
  const modelOrSize = model ?? size;
  return [serial, wwn, byId, busPath, modelOrSize].filter((id) => id !== undefined).length === 1;
}

/**
 * A whole disk, identified by its own ids, by the place where it is plugged in, or by model and size: names such as
 * `/dev/sdb` change from boot to boot. Exactly one disk of the node must match.
 */
export const DiskId = z
  .strictObject(
    {
      ...diskFields,
      use: z.string().optional().describe("Ignored: so that an entry of the roster's `disks` fits as it is."),
    },
    {
      error: ({ code, input }) =>
        code === "invalid_type" && typeof input === "string"
          ? "must be a map that names it by itself, such as { serial: S3Z8NB0K }: names such as /dev/sda change from boot to boot"
          : undefined,
    },
  )
  .refine(isOneDisk, oneDiskMessage)
  .meta({
    examples: [
      { serial: "S3Z8NB0K", use: "volumes" },
      { wwn: "0x5000c500a1b2c3d4" },
      { byId: "nvme-eui.0025385b71b0a7e1" },
      { busPath: "pci-0000:00:17.0-ata-2" },
      { model: "Samsung SSD 980", size: "1T" },
    ],
  });
export type DiskId = z.output<typeof DiskId>;

type DiskKind = "serial" | "wwn" | "byId" | "busPath" | "model" | "size" | "size and model";

/** The kind and the value of the disk's name; the value of `size and model` begins with the size in bytes. */
export function diskName({ serial, wwn, byId, busPath, model, size }: DiskFields): { kind: DiskKind; value: string } {
  if (serial !== undefined) return { kind: "serial", value: serial };
  if (wwn !== undefined) return { kind: "wwn", value: wwn };
  if (byId !== undefined) return { kind: "byId", value: byId };
  if (busPath !== undefined) return { kind: "busPath", value: busPath };
  if (size === undefined) return { kind: "model", value: model ?? "" };
  return model === undefined
    ? { kind: "size", value: String(size) }
    : { kind: "size and model", value: `${size} ${model}` };
}

/** The WWN in one spelling: naa.5000c500…, 0x5000C500… and wwn-0x5000c500… are the same, as in `plain_wwn` (disk-functions.ts). */
export function plainWwn(wwn: string): string {
  return wwn
    .toLowerCase()
    .replace(/^(?:naa\.|eui\.|wwn-)/, "")
    .replace(/^0x/, "");
}

/** A partition's name in the GPT; ASCII, so that no tool shows it escaped. */
export const PartitionName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,35}$/, "must be a partition's name");

/** The disk and the name of a partition that `disk.partitioned` made. */
export const PartitionOf = z
  .strictObject({
    disk: DiskId.describe("The disk, by serial, wwn, byId, busPath, model or size."),
    partition: PartitionName.describe("The partition's name, as given to disk.partitioned."),
  })
  .meta({ examples: [{ disk: { serial: "S3Z8NB0K" }, partition: "data" }] });
export type PartitionOf = z.output<typeof PartitionOf>;

/** The name of a volume group or logical volume (lvm(8), Valid names): no option, no path, no reserved name. */
export const VolumeName = z
  .string()
  .regex(/^[A-Za-z0-9_+][A-Za-z0-9_.+-]{0,63}$/, "must be a name of letters, digits, “_”, “.”, “+” and “-”")
  .refine((name) => !/^(?:snapshot|pvmove)|_(?:mlog|mimage|rimage|rmeta|tdata|tmeta|vorigin|cdata|cmeta)/.test(name), {
    message: "is a name that LVM keeps for itself",
  });

/** The name of an md array below /dev/md/; md(4), ARRAY NAMES, allows 32 bytes with the host's name. */
export const ArrayName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,26}$/, "must be a name of letters, digits, “_” and “-”, at most 27");

/** A logical volume that `lvm.logical_volume` made. */
interface VolumeOf {
  readonly vg: string;
  readonly lv: string;
}

/**
 * The carrier of a filesystem, a swap area or a physical volume: the device itself, or the opened LUKS container on it.
 */
export type DeviceOf = (PartitionOf | VolumeOf | { readonly array: string }) & { readonly encrypted?: boolean };

/** Arguments that name a device that kcore made: a partition, a logical volume or an array. */
export const carrierFields = {
  disk: DiskId.optional().describe("The disk, as disk.partitioned names it, together with partition."),
  partition: PartitionName.optional().describe("The name that disk.partitioned gave the partition."),
  vg: VolumeName.optional().describe("Instead of disk and partition: a volume group, together with lv."),
  lv: VolumeName.optional().describe("The logical volume that lvm.logical_volume made."),
  array: ArrayName.optional().describe("Instead of a partition or a volume: the array that md.array made."),
};

/** {@link carrierFields}, and `encrypted` for the opened LUKS container on the device. */
export const deviceFields = {
  ...carrierFields,
  encrypted: z
    .boolean()
    .default(false)
    .describe("Use the LUKS container that luks.opened opened on the device, not the device itself."),
};

/** The message for arguments that name no device, or several. */
export const oneDeviceMessage = "needs disk and partition, vg and lv, or array";

/** A device of {@link deviceFields} as one argument. */
export const Device = z
  .strictObject(deviceFields)
  .meta({
    examples: [
      { disk: { serial: "S3Z8NB0K" }, partition: "data", encrypted: true },
      { vg: "vg_kcore", lv: "images" },
      { array: "data" },
    ],
  })
  .transform((given, context): DeviceOf => {
    const device = deviceFrom(given);
    if (device) return device;
    context.addIssue({ code: "custom", message: oneDeviceMessage });
    return z.NEVER;
  });

type DeviceFields = { readonly [Key in keyof typeof carrierFields]?: z.output<(typeof carrierFields)[Key]> } & {
  readonly encrypted?: boolean;
};

/** Whether no field is given. */
export function namesNoDevice({ disk, partition, vg, lv, array, encrypted = false }: DeviceFields): boolean {
  return [disk, partition, vg, lv, array].every((value) => value === undefined) && !encrypted;
}

/** The device that the fields name; undefined when they name none, or several. */
export function deviceFrom({ disk, partition, vg, lv, array, encrypted = false }: DeviceFields): DeviceOf | undefined {
  const given = [disk, partition, vg, lv, array].filter((value) => value !== undefined).length;
  const inside = encrypted ? { encrypted } : {};
  if (given === 1 && array !== undefined) return { array, ...inside };
  if (given !== 2) return undefined;
  if (disk && partition !== undefined) return { disk, partition, ...inside };
  return vg !== undefined && lv !== undefined ? { vg, lv, ...inside } : undefined;
}

type Node = Pick<StepContext, "node" | "nodeId">;

/** The disk GUID of a partition table that kcore makes on this disk of this node. */
export function diskGuid(node: Node, disk: DiskId): string {
  return uuidOf(...seed(node, disk), "table");
}

/** The unique GUID (PARTUUID) of a partition that kcore makes. */
export function partitionGuid(node: Node, { disk, partition }: PartitionOf): string {
  return uuidOf(...seed(node, disk), "partition", partition);
}

/**
 * The id of a device that kcore made: a partition's PARTUUID, an array's UUID, an opened LUKS container's UUID. A logical
 * volume's id is derived from its names, since LVM itself chooses the volume's UUID.
 */
export function deviceGuid(node: Node, device: DeviceOf): string {
  const guid = carrierGuid(node, device);
  return device.encrypted === true ? luksUuid(guid) : guid;
}

function carrierGuid(node: Node, device: DeviceOf): string {
  const owner = node.nodeId ?? node.node;
  if ("vg" in device) return uuidOf(owner, "volume", device.vg, device.lv);
  return "array" in device ? uuidOf(owner, "array", device.array) : partitionGuid(node, device);
}

/** The UUID of a LUKS container that kcore makes on the device with this guid. */
export function luksUuid(guid: string): string {
  return uuidOf(guid.toLowerCase(), "luks");
}

/** The device-mapper name of an opened container, as distributions' installers choose it: /dev/mapper/luks-UUID. */
export function mappingName(uuid: string): string {
  return `luks-${uuid}`;
}

/** A device's name in a dry run's conditions and in a grant; for a partition, the value of its disk's name. */
export function deviceName(device: DeviceOf): string {
  if ("vg" in device) return `${device.vg}/${device.lv}`;
  return "array" in device ? `md/${device.array}` : diskName(device.disk).value;
}

/** The UUID of a filesystem that kcore makes on the device with this guid. */
export function filesystemUuid(guid: string): string {
  return uuidOf(guid.toLowerCase(), "filesystem");
}

/** The UUID of a physical volume that kcore makes on the device with this guid, as LVM writes UUIDs: 6-4-4-4-4-4-6. */
export function physicalVolumeUuid(guid: string): string {
  const hex = uuidOf(guid.toLowerCase(), "physical volume").replaceAll("-", "");
  return hex.replace(/^(.{6})(.{4})(.{4})(.{4})(.{4})(.{4})(.{6})$/, "$1-$2-$3-$4-$5-$6-$7");
}

/** The filesystem's UUID as tools show it: a vfat filesystem has only a volume id of 32 bits. */
export function shownUuid(uuid: string, fstype: string): string {
  return fstype === "vfat" ? `${uuid.slice(0, 4)}-${uuid.slice(4, 8)}`.toUpperCase() : uuid;
}

// The seed has the node's id: a disk that kcore partitioned on another node is foreign here, so its data is safe.
function seed({ node, nodeId }: Node, disk: DiskId): string[] {
  const { kind, value } = diskName(disk);
  return [nodeId ?? node, kind, value];
}
