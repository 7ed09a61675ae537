import { z } from "zod";
import type { StepContext } from "./define.ts";
import { uuidOf } from "./uuid.ts";

const Label = z
  .string()
  .max(128)
  .regex(/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/, "must be printable ASCII without spaces at its ends");

/** A whole disk, named by what the disk itself says: names such as `/dev/sdb` change from boot to boot. */
export const DiskId = z
  .strictObject({
    serial: Label.optional().describe("Its serial number, as `lsblk -o SERIAL` shows it."),
    wwn: Label.optional().describe("Its World Wide Name, as `lsblk -o WWN` shows it."),
    byId: z
      .string()
      .regex(/^[A-Za-z0-9_+=@:#.-]{1,255}$/, "must be the name of a link in /dev/disk/by-id, without the folder")
      .refine((name) => !/^\.\.?$/.test(name), "must be the name of a link")
      .optional()
      .describe("The name of its link in /dev/disk/by-id."),
    use: z.string().optional().describe("Ignored: so that an entry of the roster's `disks` fits as it is."),
  })
  .refine(
    ({ serial, wwn, byId }) => [serial, wwn, byId].filter((id) => id !== undefined).length === 1,
    "needs exactly one of serial, wwn and byId",
  );
export type DiskId = z.output<typeof DiskId>;

/** The one way a disk is named: its kind and its value. */
export function diskName({ serial, wwn, byId }: DiskId): { kind: "serial" | "wwn" | "byId"; value: string } {
  if (serial !== undefined) return { kind: "serial", value: serial };
  return wwn !== undefined ? { kind: "wwn", value: wwn } : { kind: "byId", value: byId ?? "" };
}

/** A partition's name in the GPT; ASCII, so that no tool shows it escaped. */
export const PartitionName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,35}$/, "must be a partition's name");

/** A partition that `disk.partitioned` made: the disk and the partition's name. */
export const PartitionOf = z.strictObject({
  disk: DiskId.describe("The disk, by serial, wwn or byId."),
  partition: PartitionName.describe("The partition's name, as given to disk.partitioned."),
});
export type PartitionOf = z.output<typeof PartitionOf>;

type Node = Pick<StepContext, "node" | "nodeId">;

/** The disk GUID of a partition table that kcore makes on this disk of this node. */
export function diskGuid(node: Node, disk: DiskId): string {
  return uuidOf(...seed(node, disk), "table");
}

/** The unique GUID (PARTUUID) of a partition that kcore makes. */
export function partitionGuid(node: Node, { disk, partition }: PartitionOf): string {
  return uuidOf(...seed(node, disk), "partition", partition);
}

/** The UUID of a filesystem that kcore makes on the partition with this PARTUUID. */
export function filesystemUuid(partuuid: string): string {
  return uuidOf(partuuid.toLowerCase(), "filesystem");
}

/** The filesystem's UUID as tools show it: vfat has only the 32 bits of its volume id. */
export function shownUuid(uuid: string, fstype: string): string {
  return fstype === "vfat" ? `${uuid.slice(0, 4)}-${uuid.slice(4, 8)}`.toUpperCase() : uuid;
}

// The node's id is part of it: a disk that moved from another node is foreign, and its data is safe.
function seed({ node, nodeId }: Node, disk: DiskId): string[] {
  const { kind, value } = diskName(disk);
  return [nodeId ?? node, kind, value];
}
