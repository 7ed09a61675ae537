import { above, type Device, type Sight } from "./look.ts";
import type { reasons } from "./reasons.ts";

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
    yield { code: type === "lvm" ? "DISK_LAYOUT_LVM_MEMBER" : "DISK_IN_USE", message };
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
