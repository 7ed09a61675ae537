import type { NodeEntry } from "#engine/roster/roster.ts";
import { plainWwn } from "#engine/step/disk-names.ts";
import { KcoreError } from "#errors/problem.ts";
import type { BlockDevice } from "./look.ts";
import type { InstallPlan } from "./request.ts";

/** A disk as the roster names it: by what the disk says of itself, never by the path that the next boot may change. */
type NamedDisk = { readonly serial: string } | { readonly wwn: string };

/**
 * The names below /dev change from boot to boot: the same command, given again, may mean other disks. What the roster pinned stays what it is.
 * @throws KcoreError USAGE
 */
export function refuseMoved(
  { name, disks: known }: NodeEntry,
  { osDisk, dataDisks }: InstallPlan,
  devices: readonly BlockDevice[],
): void {
  for (const [path, use] of [[osDisk, "os"] as const, ...dataDisks.map((one) => [one, "volumes"] as const)]) {
    const device = devices.find((found) => found.path === path && isWhole(found));
    if (!device) continue;
    const other = known.find((one) => isDevice(one, device) && (one.use ?? use) !== use);
    const pinned = use === "os" ? known.find((one) => one.use === "os" && isDevice(one, device) === false) : undefined;
    if (!other && !pinned) continue;
    const is = `${path} is the disk ${wordsOf(device)} now`;
    const now = devices.find((found) => pinned && isWhole(found) && isDevice(pinned, found));
    throw new KcoreError({
      code: "USAGE",
      message: other
        ? `${is}, which the roster has as a disk of ${name} with use: ${other.use ?? ""}`
        : `${is}, and the roster has ${now ? `${now.path}, ` : ""}the one ${wordsOf(pinned ?? {})}${now ? "," : ""} as the OS disk of ${name}`,
      hint: "names of disks change from boot to boot: look with kcore node disks; if another disk is meant, correct the roster by hand",
    });
  }
}

/** Undefined where the roster names it by something that is not looked at here. */
function isDevice({ serial, wwn }: { serial?: string; wwn?: string }, device: BlockDevice): boolean | undefined {
  if (serial !== undefined) return serial === device.serial;
  return wwn === undefined ? undefined : plainWwn(wwn) === plainWwn(device.wwn);
}

/** Whether an entry of the roster is a disk that was found here, though it may be named there by something else. */
export function isSameDisk(
  known: { serial?: string; wwn?: string },
  disk: { serial?: string; wwn?: string },
  devices: readonly BlockDevice[],
): boolean {
  const device = devices.find((found) => isWhole(found) && isDevice(disk, found));
  return device !== undefined && isDevice(known, device) === true;
}

function wordsOf({ serial = "", wwn = "" }: { readonly serial?: string; readonly wwn?: string }): string {
  return serial === "" ? `with the WWN ${wwn}` : `with the serial number ${serial}`;
}

/** @throws KcoreError DISK_NOT_FOUND, DISK_AMBIGUOUS */
export function findDisk(path: string, devices: readonly BlockDevice[]): NamedDisk {
  const device = devices.find((found) => found.path === path);
  const disk = device && isWhole(device) ? nameOf(device) : undefined;
  const alike = devices.filter((one) => disk && isWhole(one) && isDevice(disk, one));
  if (disk && alike.length > 1)
    throw new KcoreError({
      code: "DISK_AMBIGUOUS",
      message: `${alike.map((one) => one.path).join(" and ")} are both the disk ${wordsOf(disk)}`,
      hint: "one disk on several ways (multipath), or a maker's mistake: disks that cannot be told apart are left alone",
    });
  if (disk) return disk;
  throw new KcoreError({
    code: "DISK_NOT_FOUND",
    message:
      device === undefined
        ? `the machine has no disk ${path}`
        : `${path} is ${isWhole(device) ? "a disk without serial number and WWN" : `a ${device.type}, not a whole disk`}`,
    hint: "kcore --node HOST:9091 node disks",
  });
}

/** Loop devices are the lab's disks. */
export function isWhole({ type }: BlockDevice): boolean {
  return type === "disk" || type === "loop";
}

export function nameOf({ serial, wwn }: BlockDevice): NamedDisk | undefined {
  if (serial !== "") return { serial };
  return wwn === "" ? undefined : { wwn };
}
