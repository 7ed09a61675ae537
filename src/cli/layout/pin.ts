import { formatBinary } from "#base/units.ts";
import type { DiskEntry } from "#engine/roster/roster.ts";
import { DiskId, diskName, plainWwn } from "#engine/step/disk-names.ts";
import { KcoreError } from "#errors/problem.ts";
import type { LayoutDisk } from "./layout-schema.ts";
import type { Device, Sight } from "./look.ts";

/** A disk of a layout, found on the node, and what it is called from now on: what it says of itself. */
export interface PinnedDisk {
  readonly device: Device;
  readonly id: DiskId;
}

/**
 * The one whole disk that a layout means. It is pinned to the name by which the roster has it already, else to its serial number, else
 * to its WWN, else to a link in /dev/disk/by-id: never to the path that the next boot may change.
 * @throws KcoreError DISK_NOT_FOUND, DISK_AMBIGUOUS
 */
export function pinDisk(disk: LayoutDisk, sight: Sight, known: readonly DiskEntry[]): PinnedDisk {
  const device = findDevice(disk, sight);
  const whole = wholeDisks(sight);
  const { serial, wwn } = device;
  const own = known.find((entry) => isEntryOf(entry, device, sight));
  if (own) {
    const { kind, value } = diskName(own);
    return { device, id: DiskId.parse({ [kind]: value }) };
  }
  for (const [kind, value] of [
    ["serial", serial],
    ["wwn", wwn],
  ] as const) {
    if (!DiskId.safeParse({ [kind]: value }).success) continue;
    const alike = whole.filter((one) => one[kind] === value);
    if (alike.length > 1) throw ambiguous(`${disk.name}: several disks have the ${kind} ${value}`, alike);
    return { device, id: DiskId.parse({ [kind]: value }) };
  }
  const link = linksTo(device, sight).find((name) => DiskId.safeParse({ byId: name }).success);
  if (link !== undefined) return { device, id: DiskId.parse({ byId: link }) };
  throw new KcoreError({
    code: "DISK_NOT_FOUND",
    message: `${disk.name}: ${device.path} has no serial number, no WWN and no link in /dev/disk/by-id`,
    hint: "kcore pins a disk by what it says of itself, as names such as /dev/sdb change from boot to boot",
  });
}

function findDevice({ name, device: path, serial }: LayoutDisk, sight: Sight): Device {
  const whole = wholeDisks(sight);
  const detail = whole.map(describe).join("\n");
  if (path === undefined) {
    const [found, other] = whole.filter((one) => one.serial === serial);
    if (found && other) throw ambiguous(`${name}: several disks have the serial ${serial ?? ""}`, [found, other]);
    if (found) return found;
    throw new KcoreError({
      code: "DISK_NOT_FOUND",
      message: `${name}: no disk has the serial ${serial ?? ""}`,
      detail,
    });
  }
  const target = sight.links.get(path) ?? path.slice("/dev/".length);
  const found = [...sight.devices.values()].find(
    (one) => one.path === path || one.name === target || one.path === `/dev/${target}`,
  );
  if (found && whole.includes(found)) return found;
  const hint = found?.disk === undefined ? undefined : `it lies on /dev/${found.disk}`;
  const what = found ? `${path} is a ${found.type || "device"}, not a whole disk` : `the node has no disk ${path}`;
  throw new KcoreError({ code: "DISK_NOT_FOUND", message: `${name}: ${what}`, detail, hint });
}

/** Loop devices are the lab's disks; what has no size is a drive without media. */
function wholeDisks({ devices }: Sight): readonly Device[] {
  return [...devices.values()].filter(({ type, size }) => (type === "disk" || type === "loop") && size > 0);
}

function linksTo({ name }: Device, { links }: Sight): readonly string[] {
  const folder = "/dev/disk/by-id/";
  return [...links]
    .filter(([link, target]) => link.startsWith(folder) && target === name)
    .map(([link]) => link.slice(folder.length))
    .toSorted();
}

function isEntryOf({ serial, wwn, byId }: DiskEntry, device: Device, sight: Sight): boolean {
  if (serial !== undefined) return serial === device.serial;
  if (wwn !== undefined) return plainWwn(wwn) === plainWwn(device.wwn);
  return byId !== undefined && linksTo(device, sight).includes(byId);
}

function ambiguous(message: string, alike: readonly Device[]): KcoreError {
  return new KcoreError({
    code: "DISK_AMBIGUOUS",
    message,
    detail: alike.map(describe).join("\n"),
    hint: "name the disk in the roster by byId, or mend what gives them one name",
  });
}

function describe({ path, size, serial, model }: Device): string {
  return `${path}  ${formatBinary(size)}  serial ${serial || "none"}${model === "" ? "" : `  ${model}`}`;
}
