import type { BlockDevice, DiskInventory } from "#engine/program/disk-inventory.ts";

/** A block device as a test describes it; `size` and `start` in MiB. */
export type DescribedDevice = Partial<BlockDevice> & { readonly name: string };

const MiB = 1024 ** 2;

export function inventoryOf(devices: readonly DescribedDevice[], mode?: string): DiskInventory {
  const usual = { type: "disk", disk: "", serial: "", wwn: "", model: "", fstype: "", label: "" };
  const lists = { mounts: [], holders: [], links: [] };
  return {
    devices: devices.map(({ size = 1024, start = 0, ...device }) => ({
      ...usual,
      pttype: "",
      ptuuid: "",
      partuuid: "",
      partlabel: "",
      ...lists,
      path: `/dev/${device.name}`,
      size: size * MiB,
      start: start * MiB,
      ...device,
    })),
    ...(mode !== undefined && { mode }),
  };
}
