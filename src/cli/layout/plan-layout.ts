import { diskGuid, diskName, partitionGuid, type DiskId } from "#engine/step/disk-names.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { bytesOf } from "./check-layout.ts";
import { contentsOf, describeContents, objectionsTo, partitionsOf } from "./judge.ts";
import { insideOf, type Layout, type LayoutDisk, type LayoutPartition } from "./layout-schema.ts";
import { above, type Device, type Sight } from "./look.ts";
import { pinDisk } from "./pin.ts";
import { refusal, type Refusal } from "./reasons.ts";

const MiB = 1024 ** 2;

/** A piece of a disk as it is, or will be. */
export interface Slice {
  readonly size: number;
  /** The partition's name; absent: no partition. */
  readonly name?: string;
  /** What lies there, and where it is mounted. */
  readonly holds: string;
  /** `lost`: there now, and not afterwards; `kept`: kcore's, and stays; `made`: there afterwards only. */
  readonly fate: "free" | "lost" | "kept" | "made";
}

/** What a layout means for one disk; plain JSON. */
export interface DiskPlan {
  /** In the layout. */
  readonly name: string;
  /** On the node, today. */
  readonly device: string;
  /** What it is pinned to. */
  readonly id: DiskId;
  readonly model: string;
  readonly serial: string;
  readonly size: number;
  readonly contents: readonly string[];
  readonly holders: readonly string[];
  readonly before: readonly Slice[];
  readonly after: readonly Slice[];
  /** `safe`: blank; `ours`: kcore made it; `holds data`: only as granted; `refused`: whatever is granted. */
  readonly verdict: "safe" | "ours" | "holds data" | "refused";
}

export interface LayoutPlan {
  readonly node: string;
  readonly disks: readonly DiskPlan[];
  readonly refusals: readonly Refusal[];
}

const modePath = "/etc/kcore/disk-management-mode";

/** What a layout means on a node that looks like this: a pure function, so that it can be looked at as a value. */
export function planLayout(node: Pick<NodeEntry, "name" | "id" | "disks">, layout: Layout, sight: Sight): LayoutPlan {
  const refusals: Refusal[] = [];
  const refuse = (problem: Problem, disk?: string): void => void refusals.push(refusal(problem, disk));
  const { mode } = sight;
  if (mode !== undefined && mode !== "controller-managed")
    refuse({
      code: "DISK_LAYOUT_INSTALLER",
      message: `${modePath} of ${node.name} says “${mode}”`,
      hint: `if layouts may change its disks, on the node: echo controller-managed >${modePath}`,
    });
  const seen = new Map<string, string>();
  const disks = layout.disks.flatMap((disk): readonly DiskPlan[] => {
    try {
      const { device, id } = pinDisk(disk, sight, node.disks);
      const earlier = seen.get(device.name);
      if (earlier !== undefined)
        refuse(
          { code: "DISK_LAYOUT_INVALID", message: `${earlier} and ${disk.name} are the same disk, ${device.path}` },
          disk.name,
        );
      seen.set(device.name, disk.name);
      const plan = planDisk(node, disk, { device, id }, sight);
      for (const problem of plan.problems) refuse(problem, disk.name);
      return [plan.disk];
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      for (const problem of error.problems) refuse(problem, disk.name);
      return [];
    }
  });
  return { node: node.name, disks, refusals };
}

function planDisk(
  { name, id: nodeId }: Pick<NodeEntry, "name" | "id">,
  disk: LayoutDisk,
  { device, id }: { readonly device: Device; readonly id: DiskId },
  sight: Sight,
): { readonly disk: DiskPlan; readonly problems: readonly Problem[] } {
  const context = { node: name, nodeId };
  const guids = disk.gpt.partitions.map((one) => partitionGuid(context, { disk: id, partition: one.name }));
  const own = { tableGuid: diskGuid(context, id), partitionGuids: guids };
  const isOurs = device.ptuuid === own.tableGuid;
  const objections = objectionsTo(device, own, sight);
  const contents = contentsOf(device, sight);
  const { model, serial, size, path } = device;
  const shown = `${disk.name} (${path}, ${diskName(id).kind} ${diskName(id).value})`;
  const problems: Problem[] = objections.map(({ code, message }) => ({
    code,
    message: `${shown}: ${message}`,
    hint: isOurs
      ? "name it in the layout as well, or take another disk; no grant overrides it"
      : "no grant overrides it; if it is the right disk, release it on the node first",
  }));
  const needed = disk.gpt.partitions.reduce((sum, one) => sum + (bytesOf(one.size) ?? MiB), 2 * MiB);
  if (needed > size)
    problems.push({
      code: "DISK_TOO_SMALL",
      message: `${shown} has ${Math.floor(size / MiB)} MiB, and its partitions need ${Math.ceil(needed / MiB)} MiB`,
    });
  const present = new Set(partitionsOf(device, sight).map(({ partuuid }) => partuuid));
  const holders = above(sight, device.name).flatMap(({ path: below, mounts, holders: upon }) => [
    ...mounts.map((place) => (place === "[SWAP]" ? `${below} is swap` : `${below} at ${place}`)),
    ...upon.map((one) => `${below} below ${sight.devices.get(one)?.path ?? one}`),
  ]);
  return {
    disk: {
      name: disk.name,
      device: path,
      id,
      model,
      serial,
      size,
      contents,
      holders,
      before: slicesBefore(device, own.partitionGuids, isOurs, sight),
      after: slicesAfter(size, disk.gpt.partitions, (index) => isOurs && present.has(guids[index] ?? "")),
      verdict: problems.length > 0 ? "refused" : isOurs ? "ours" : contents.length > 0 ? "holds data" : "safe",
    },
    problems,
  };
}

/** Smaller gaps are what tables and alignment leave. */
const smallestGap = 4 * MiB;

function slicesBefore(disk: Device, guids: readonly string[], isOurs: boolean, sight: Sight): readonly Slice[] {
  const parts = partitionsOf(disk, sight);
  if (parts.length === 0) {
    const holds = [describeContents(disk), ...placesOf(disk, sight)].filter((one) => one !== "").join(" ");
    return [{ size: disk.size, holds: holds === "" ? "blank" : holds, fate: holds === "" ? "free" : "lost" }];
  }
  const slices: Slice[] = [];
  let at = 0;
  const gap = (to: number): void => {
    if (to - at >= smallestGap) slices.push({ size: to - at, holds: "free", fate: "free" });
  };
  for (const part of parts) {
    gap(part.start);
    const holds = [describeContents(part), ...placesOf(part, sight)].filter((one) => one !== "").join(" ");
    const fate = isOurs && guids.includes(part.partuuid) ? "kept" : "lost";
    slices.push({ size: part.size, name: part.partlabel || part.name, holds, fate });
    at = part.start + part.size;
  }
  gap(disk.size);
  return slices;
}

/** Where a partition, or what is on it, is mounted. */
function placesOf({ name }: Device, sight: Sight): readonly string[] {
  return above(sight, name).flatMap(({ mounts, disk, name: one }) => (disk === name && one !== name ? [] : mounts));
}

function slicesAfter(
  size: number,
  partitions: readonly LayoutPartition[],
  isThere: (index: number) => boolean,
): Slice[] {
  // A MiB before the first one; behind the last one the table's copy.
  const fixed = partitions.reduce((sum, one) => sum + (bytesOf(one.size) ?? 0), MiB + 33 * 512);
  const rest = Math.max(0, size - fixed);
  const slices = partitions.map((partition, index): Slice => ({
    size: bytesOf(partition.size) ?? rest,
    name: partition.name,
    holds: holdsOf(partition),
    fate: isThere(index) ? "kept" : "made",
  }));
  const takesAll = partitions.some((one) => bytesOf(one.size) === undefined);
  return takesAll || rest < smallestGap ? slices : [...slices, { size: rest, holds: "free", fate: "free" }];
}

function holdsOf(partition: LayoutPartition): string {
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
