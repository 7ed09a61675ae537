import { formatBinary } from "#base/units.ts";
import type { BlockDevice, DiskInventory } from "#engine/program/disk-inventory.ts";
import type { DiskEntry } from "#engine/roster/roster.ts";
import { DiskId, diskName, plainWwn } from "#engine/step/disk-names.ts";
import { KcoreError } from "#errors/problem.ts";

/** Whether a disk has this name; undefined if the name describes no property of the disk itself. */
export function isDevice({ serial, wwn, byId }: Partial<DiskId>, device: BlockDevice): boolean | undefined {
  if (serial !== undefined) return serial === device.serial;
  if (wwn !== undefined) return plainWwn(wwn) === plainWwn(device.wwn);
  return byId === undefined ? undefined : device.links.includes(`${idFolder}${byId}`);
}

const idFolder = "/dev/disk/by-id/";

/** A disk's id in words, to follow “the disk”. */
export function describeDiskId({ serial, wwn, byId = "" }: Partial<DiskId>): string {
  if (serial !== undefined) return `with the serial number ${serial}`;
  return wwn === undefined ? `with the link ${byId}` : `with the WWN ${wwn}`;
}

/** The device at this path, which may be a link. */
export function deviceAt(path: string, { devices }: DiskInventory): BlockDevice | undefined {
  return devices.find((device) => device.path === path || device.links.includes(path));
}

/** The whole disk at this path, or the first one with this serial number. @throws KcoreError DISK_NOT_FOUND */
export function findWholeDisk(
  { path, serial = "" }: { readonly path?: string | undefined; readonly serial?: string | undefined },
  inventory: DiskInventory,
): BlockDevice {
  const whole = inventory.devices.filter(isWhole);
  const found = path === undefined ? whole.find((one) => one.serial === serial) : deviceAt(path, inventory);
  if (found && isWhole(found)) return found;
  const missing = path === undefined ? `no disk has the serial number ${serial}` : `the machine has no disk ${path}`;
  throw new KcoreError({
    code: "DISK_NOT_FOUND",
    message: found ? `${path ?? ""} is a ${found.type}, not a whole disk` : missing,
    detail: whole
      .map((one) => `${one.path}  ${formatBinary(one.size)}  serial ${one.serial || "none"}  ${one.model}`.trimEnd())
      .join("\n"),
    ...(found && found.disk !== "" && { hint: `it lies on /dev/${found.disk}` }),
  });
}

/**
 * The lasting name of a disk: its name in the roster, else its serial number, WWN or link in /dev/disk/by-id; never its path, which the
 * next boot may change. @throws KcoreError DISK_NOT_FOUND, DISK_AMBIGUOUS
 */
export function pinDisk(device: BlockDevice, { devices }: DiskInventory, known: readonly DiskEntry[] = []): DiskId {
  const own = known.find((entry) => isDevice(entry, device));
  if (own) {
    const { kind, value } = diskName(own);
    return DiskId.parse({ [kind]: value });
  }
  const id = idOf(device);
  if (!id)
    throw new KcoreError({
      code: "DISK_NOT_FOUND",
      message: `${device.path} has no serial number, no WWN and no link in /dev/disk/by-id`,
      hint: "kcore names a disk by what it says of itself, as names such as /dev/sdb change from boot to boot",
    });
  const alike = devices.filter((one) => isWhole(one) && isDevice(id, one));
  if (alike.length === 1) return id;
  throw new KcoreError({
    code: "DISK_AMBIGUOUS",
    message: `${alike.map((one) => one.path).join(" and ")} are both the disk ${describeDiskId(id)}`,
    hint: "one disk on several ways (multipath), or a maker's mistake: disks that cannot be told apart are left alone",
  });
}

/** The id that a disk itself gives; undefined for a disk without one. */
export function idOf({ serial, wwn, links }: BlockDevice): DiskId | undefined {
  const byId = links.find((link) => link.startsWith(idFolder))?.slice(idFolder.length);
  for (const id of [{ serial }, { wwn }, { byId }]) {
    const { data } = DiskId.safeParse(id);
    if (data) return data;
  }
  return undefined;
}

/** Whether the device is a whole disk. Loop devices are the lab's disks. */
export function isWhole({ type }: BlockDevice): boolean {
  return type === "disk" || type === "loop";
}
