import type { NodeEntry } from "#engine/roster/roster.ts";
import type { DiskInventory } from "#engine/program/disk-inventory.ts";
import { deviceAt, idOf, isDevice, isWhole, describeDiskId } from "#engine/layout/named-disks.ts";
import { KcoreError } from "#errors/problem.ts";
import type { InstallPlan } from "./request.ts";

/**
 * Refuses a name below /dev that means another disk than the roster does. Such names change from boot to boot, so a
 * repeated command could mean other disks. The roster's pins stay valid.
 * @throws KcoreError USAGE
 */
export function refuseMoved(
  { name, disks: known }: NodeEntry,
  { osDisk, dataDisks }: InstallPlan,
  inventory: DiskInventory,
): void {
  for (const [path, use] of [[osDisk, "os"] as const, ...dataDisks.map((one) => [one, "volumes"] as const)]) {
    const device = deviceAt(path, inventory);
    if (!device || !isWhole(device)) continue;
    const other = known.find((one) => isDevice(one, device) && (one.use ?? use) !== use);
    const pinned = use === "os" ? known.find((one) => one.use === "os" && isDevice(one, device) === false) : undefined;
    if (!other && !pinned) continue;
    const is = `${path} is the disk ${describeDiskId(idOf(device) ?? {})} now`;
    const now = inventory.devices.find((found) => pinned && isWhole(found) && isDevice(pinned, found));
    throw new KcoreError({
      code: "USAGE",
      message: other
        ? `${is}, which the roster has as a disk of ${name} with use: ${other.use ?? ""}`
        : `${is}, and the roster has ${now ? `${now.path}, ` : ""}the one ${describeDiskId(pinned ?? {})}${now ? "," : ""} as the OS disk of ${name}`,
      hint: "names of disks change from boot to boot: look with kcore node disks; if another disk is meant, correct the roster by hand",
    });
  }
}
