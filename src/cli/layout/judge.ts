import type { ErrorCode } from "#errors/codes.ts";
import { above, type Device, type Sight } from "./look.ts";

/** The forerunner's word for why a disk is refused; where it had none, one of the same making. */
export type Reason = (typeof reasons)[keyof typeof reasons];

/** By our code, as programs that knew the forerunner look for them. */
export const reasons = {
  DISK_LAYOUT_KCORE_VOLUME: "target_device_has_active_kcore_volume",
  DISK_LAYOUT_MOUNTED: "target_device_has_active_system_mount",
  DISK_LAYOUT_PHYSICAL_VOLUME: "target_device_is_active_lvm_pv",
  DISK_LAYOUT_POOL_MEMBER: "target_device_is_active_zpool_member",
  DISK_LAYOUT_NO_DISKS: "no_target_devices",
  DISK_LAYOUT_INVALID: "invalid_layout",
  DISK_LAYOUT_UNSUPPORTED: "invalid_layout",
  DISK_LAYOUT_PROBE_FAILED: "lsblk_probe_failed",
  DISK_LAYOUT_INSTALLER_ONLY: "disk_management_installer_only",
  DISK_TOO_SMALL: "invalid_layout",
  DISK_IN_USE: "target_device_in_use",
  DISK_HAS_DATA: "target_device_holds_data",
  DISK_PARTITIONS_DIFFER: "target_device_holds_data",
  FILESYSTEM_DIFFERS: "target_device_holds_data",
  DISK_NOT_FOUND: "target_device_not_found",
  DISK_AMBIGUOUS: "target_device_ambiguous",
} as const satisfies Partial<Record<ErrorCode, string>>;

/** What stands against a layout on a disk. */
export interface Objection {
  readonly code: keyof typeof reasons;
  readonly message: string;
}

/** What kcore knows of a disk of its own: its table, and the partitions that the layout wants there. */
export interface Own {
  readonly tableGuid: string;
  readonly partitionGuids: readonly string[];
}

const volumes = /^\/var\/lib\/kcore\/(?:volumes|images)/;

/**
 * Everything that speaks against a layout on this disk, whatever is granted. What kcore made for this very layout does not: the
 * modules look at that more closely. A disk in use in a way that nobody thought of is refused, too.
 */
export function objectionsTo(disk: Device, own: Own, sight: Sight): readonly Objection[] {
  const parts = partitionsOf(disk, sight);
  if (disk.ptuuid === own.tableGuid) {
    const others = parts.filter(({ partuuid }) => !own.partitionGuids.includes(partuuid));
    return others.map(({ path, partlabel }) => ({
      code: "DISK_LAYOUT_KCORE_VOLUME",
      message: `${path}${partlabel === "" ? "" : ` “${partlabel}”`} is a partition on a table of kcore's, and the layout does not name it`,
    }));
  }
  return above(sight, disk.name).flatMap((device) => [...usesOf(device, sight)]);
}

function* usesOf(device: Device, sight: Sight): Generator<Objection> {
  const { path, mounts, holders, fstype } = device;
  for (const place of mounts) {
    const message = place === "[SWAP]" ? `${path} is swap` : `${path} is mounted at ${place}`;
    yield { code: volumes.test(place) ? "DISK_LAYOUT_KCORE_VOLUME" : "DISK_LAYOUT_MOUNTED", message };
  }
  if (fstype === "zfs_member" && [...sight.poolMembers].some((member) => member === device.name || member === "?"))
    yield { code: "DISK_LAYOUT_POOL_MEMBER", message: `${path} is a member of an imported ZFS pool` };
  for (const holder of holders) {
    const type = sight.devices.get(holder)?.type ?? "";
    const message = `${path} is held by ${sight.devices.get(holder)?.path ?? holder}${type === "" ? "" : ` (${type})`}`;
    yield { code: type === "lvm" ? "DISK_LAYOUT_PHYSICAL_VOLUME" : "DISK_IN_USE", message };
  }
  if (device.isReadOnly) yield { code: "DISK_IN_USE", message: `${path} is read-only` };
}

/** What lies on a disk that is not kcore's, in a few words each: it goes only as granted. */
export function contentsOf(disk: Device, sight: Sight): readonly string[] {
  return [disk, ...partitionsOf(disk, sight)].flatMap((device) => {
    const found = describeContents(device);
    if (found !== "") return [`${device.path}: ${found}`];
    return device === disk ? [] : [`${device.path}: a partition`];
  });
}

/** `ext4 “data”`, `gpt table`; empty where no tool knows anything. */
export function describeContents({ fstype, label, pttype }: Device): string {
  if (fstype !== "") return `${fstype}${label === "" ? "" : ` “${label}”`}`;
  return pttype === "" || pttype === "PMBR" ? pttype : `${pttype} table`;
}

/** The partitions of a disk, in the order in which they lie on it. */
export function partitionsOf({ name }: Device, { devices }: Sight): readonly Device[] {
  return [...devices.values()].filter(({ disk }) => disk === name).toSorted((a, b) => a.start - b.start);
}
