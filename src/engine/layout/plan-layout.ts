import { deviceAndUpper, type BlockDevice, type DiskInventory } from "#engine/program/disk-inventory.ts";
import { diskGuid, partitionGuid, type DiskId } from "#engine/step/disk-names.ts";
import { diskOwnerId, type NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { findWholeDisk, pinDisk } from "./named-disks.ts";
import { sizeInBytes } from "./check-layout.ts";
import { insideOf, type Layout, type LayoutDisk, type LayoutPartition } from "./layout-schema.ts";
import { withReason, type LayoutRefusal } from "./reasons.ts";

const MiB = 1024 ** 2;

/** A piece of a disk as it is, or will be. */
export interface Slice {
  /** Bytes. */
  readonly size: number;
  /** The partition's name; absent: no partition. */
  readonly name?: string;
  /** Contents, and where they are mounted. */
  readonly holds: string;
  /** `lost`: there now, and not afterwards. `kept`: kcore's, and stays. `made`: there afterwards only. */
  readonly fate: "free" | "lost" | "kept" | "made";
}

/** One disk of a layout before and after; plain JSON. */
export interface DiskPlan {
  /** The disk's name in the layout. */
  readonly name: string;
  /** The disk's present path on the node. */
  readonly device: string;
  /** The lasting name of the disk. */
  readonly id: DiskId;
  readonly model: string;
  readonly serial: string;
  /** Bytes. */
  readonly size: number;
  readonly contents: readonly string[];
  readonly holders: readonly string[];
  readonly before: readonly Slice[];
  readonly after: readonly Slice[];
  /** `safe`: blank; `ours`: kcore made it; `holds data`: only as granted; `refused`: no grant helps. */
  readonly verdict: "safe" | "ours" | "holds data" | "refused";
}

/** A layout on the disks of a node, and the reasons why it cannot be applied. */
export interface LayoutPlan {
  readonly node: string;
  readonly disks: readonly DiskPlan[];
  readonly refusals: readonly LayoutRefusal[];
}

const modePath = "/etc/kcore/disk-management-mode";

/**
 * The plan of a layout for a node: the disks, each divided as before and after. The plan's refusals are only those that no step
 * of the layout would give; `withRefusals` adds the refusals of the steps' dry run.
 */
export function planLayout(
  node: Pick<NodeEntry, "name" | "id" | "formerIds" | "disks">,
  layout: Layout,
  inventory: DiskInventory,
): LayoutPlan {
  const refusals: LayoutRefusal[] = [];
  const refuse = (problem: Problem, disk?: string): void => void refusals.push(withReason(problem, disk));
  const { mode } = inventory;
  if (mode !== undefined && mode !== "controller-managed")
    refuse({
      code: "DISK_LAYOUT_INSTALLER",
      message: `${modePath} of ${node.name} says “${mode}”`,
      hint: `if layouts may change its disks, on the node: echo controller-managed >${modePath}`,
    });
  const seen = new Map<string, string>();
  const disks = layout.disks.flatMap((disk): readonly DiskPlan[] => {
    try {
      const device = findWholeDisk({ path: disk.device, serial: disk.serial }, inventory);
      const earlier = seen.get(device.name);
      if (earlier !== undefined)
        refuse(
          { code: "DISK_LAYOUT_INVALID", message: `${earlier} and ${disk.name} are the same disk, ${device.path}` },
          disk.name,
        );
      seen.set(device.name, disk.name);
      const { plan, unnamed } = planDisk(node, disk, device, inventory);
      for (const { path, partlabel } of unnamed)
        refuse(
          {
            code: "DISK_LAYOUT_KCORE_VOLUME",
            message: `${disk.name}: ${path}${partlabel === "" ? "" : ` “${partlabel}”`} is a partition on a table of kcore's, and the layout does not name it`,
            hint: "name it in the layout as well, or take another disk; no grant overrides it",
          },
          disk.name,
        );
      return [plan];
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      for (const problem of error.problems)
        refuse({ ...problem, message: `${disk.name}: ${problem.message}` }, disk.name);
      return [];
    }
  });
  return withVerdicts({ node: node.name, disks, refusals });
}

/** The plan with the refusals of a dry run of the layout's steps. */
export function withRefusals(
  plan: LayoutPlan,
  refused: readonly { readonly step: string; readonly problem: Problem }[],
  inventory: DiskInventory,
): LayoutPlan {
  const refusals = refused.map(({ step, problem }) => {
    // A step is called by the disk of the layout: partition[fast], filesystem[fast/home].
    const disk = plan.disks.find(({ name }) => step.includes(`[${name}]`) || step.includes(`[${name}/`));
    const code = disk && problem.code === "DISK_IN_USE" ? codeOfUse(disk, inventory) : problem.code;
    return withReason({ ...problem, code }, disk?.name);
  });
  return withVerdicts({ ...plan, refusals: [...plan.refusals, ...refusals] });
}

function withVerdicts(plan: LayoutPlan): LayoutPlan {
  const disks = plan.disks.map((disk): DiskPlan => {
    const reasons = plan.refusals.flatMap((one) => (one.disk === disk.name ? [one.reason] : []));
    if (reasons.length === 0) return disk;
    const isGrantable = reasons.every((reason) => reason === "target_device_holds_data");
    return { ...disk, verdict: isGrantable ? "holds data" : "refused" };
  });
  return { ...plan, disks };
}

/** The code for a disk in use, by the use that the forerunner would have reported. */
function codeOfUse({ device }: DiskPlan, inventory: DiskInventory): Problem["code"] {
  const upper = deviceAndUpper(inventory, device.slice("/dev/".length).replaceAll("/", "!"));
  const mounts = upper.flatMap((one) => one.mounts);
  if (mounts.some((place) => /^\/var\/lib\/kcore\/(?:volumes|images)/.test(place))) return "DISK_LAYOUT_KCORE_VOLUME";
  if (mounts.length > 0) return "DISK_LAYOUT_MOUNTED";
  if (upper.some(({ type }) => type === "lvm")) return "DISK_LAYOUT_LVM_MEMBER";
  return upper.some(({ fstype }) => fstype === "zfs_member") ? "DISK_LAYOUT_POOL_MEMBER" : "DISK_IN_USE";
}

function planDisk(
  node: Pick<NodeEntry, "name" | "id" | "formerIds" | "disks">,
  disk: LayoutDisk,
  device: BlockDevice,
  inventory: DiskInventory,
): { readonly plan: DiskPlan; readonly unnamed: readonly BlockDevice[] } {
  const id = pinDisk(device, inventory, node.disks);
  const context = { node: node.name, nodeId: diskOwnerId(node) };
  const guids = disk.gpt.partitions.map((one) => partitionGuid(context, { disk: id, partition: one.name }));
  const isOurs = device.ptuuid === diskGuid(context, id);
  const parts = partitionsOf(device, inventory);
  const contents = [device, ...parts].flatMap((one) => {
    const found = describeContents(one) || (one === device ? "" : "a partition");
    return found === "" ? [] : [`${one.path}: ${found}`];
  });
  const { model, serial, size, path } = device;
  const holders = deviceAndUpper(inventory, device.name).flatMap(({ path: below, mounts, holders: upon }) => [
    ...mounts.map((place) => (place === "[SWAP]" ? `${below} is swap` : `${below} at ${place}`)),
    ...upon.map((one) => `${below} below /dev/${one}`),
  ]);
  const isThere = (index: number): boolean => isOurs && parts.some(({ partuuid }) => partuuid === guids[index]);
  return {
    plan: {
      name: disk.name,
      device: path,
      id,
      model,
      serial,
      size,
      contents,
      holders,
      before: slicesBefore(device, isOurs ? guids : [], inventory),
      after: slicesAfter(size, disk.gpt.partitions, isThere),
      verdict: isOurs ? "ours" : contents.length > 0 ? "holds data" : "safe",
    },
    unnamed: isOurs ? parts.filter(({ partuuid }) => !guids.includes(partuuid)) : [],
  };
}

/** `ext4 “data”`, `gpt table`; empty for a device without a signature. */
function describeContents({ fstype, label, pttype }: BlockDevice): string {
  if (fstype !== "") return `${fstype}${label === "" ? "" : ` “${label}”`}`;
  return pttype === "" || pttype === "PMBR" ? pttype : `${pttype} table`;
}

/** The partitions of a disk, in the order in which they lie on it. */
function partitionsOf({ name }: BlockDevice, { devices }: DiskInventory): readonly BlockDevice[] {
  return devices.filter(({ disk }) => disk === name).toSorted((a, b) => a.start - b.start);
}

/** Bytes. Tables and alignment leave smaller gaps, which are not shown. */
const smallestGap = 4 * MiB;

/** The slices of a disk as it is; partitions with a GUID of `kept` stay. */
function slicesBefore(disk: BlockDevice, kept: readonly string[], inventory: DiskInventory): readonly Slice[] {
  const parts = partitionsOf(disk, inventory);
  if (parts.length === 0) {
    const holds = [describeContents(disk), ...mountPointsOf(disk, inventory)].filter((one) => one !== "").join(" ");
    return [{ size: disk.size, holds: holds === "" ? "blank" : holds, fate: holds === "" ? "free" : "lost" }];
  }
  const slices: Slice[] = [];
  let at = 0;
  const gap = (to: number): void => {
    if (to - at >= smallestGap) slices.push({ size: to - at, holds: "free", fate: "free" });
  };
  for (const part of parts) {
    gap(part.start);
    const holds = [describeContents(part), ...mountPointsOf(part, inventory)].filter((one) => one !== "").join(" ");
    const fate = kept.includes(part.partuuid) ? "kept" : "lost";
    slices.push({ size: part.size, name: part.partlabel || part.name, holds, fate });
    at = part.start + part.size;
  }
  gap(disk.size);
  return slices;
}

/** The mount points of a device and of the devices that use it; of a disk without those of its partitions. */
function mountPointsOf({ name }: BlockDevice, inventory: DiskInventory): readonly string[] {
  return deviceAndUpper(inventory, name).flatMap(({ mounts, disk }) => (disk === name ? [] : mounts));
}

function slicesAfter(
  size: number,
  partitions: readonly LayoutPartition[],
  isThere: (index: number) => boolean,
): Slice[] {
  // A MiB before the first partition; the backup GPT (33 sectors) after the last.
  const fixed = partitions.reduce((sum, one) => sum + (sizeInBytes(one.size) ?? 0), MiB + 33 * 512);
  const rest = Math.max(0, size - fixed);
  const slices = partitions.map((partition, index): Slice => ({
    size: sizeInBytes(partition.size) ?? rest,
    name: partition.name,
    holds: describePlanned(partition),
    fate: isThere(index) ? "kept" : "made",
  }));
  const takesAll = partitions.some((one) => sizeInBytes(one.size) === undefined);
  return takesAll || rest < smallestGap ? slices : [...slices, { size: rest, holds: "free", fate: "free" }];
}

function describePlanned(partition: LayoutPartition): string {
  const { encrypted, inner } = insideOf(partition);
  const words = {
    filesystem: [inner?.format, inner?.mountpoint],
    lvm_pv: ["lvm", inner?.vg],
    zfs: ["zfs", inner?.pool],
    swap: ["swap"],
  };
  const inside = inner === undefined ? [] : words[inner.type];
  return [...(encrypted ? ["luks"] : []), ...inside].filter((word) => word !== undefined).join(" ");
}
