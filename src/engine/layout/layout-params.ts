import type { DiskId } from "#engine/step/disk-names.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { sizeInBytes, groupMembers } from "./check-layout.ts";
import { insideOf, type InnerContent, type Layout } from "./layout-schema.ts";

/** GPT types by the contents of a partition (`disk.partitioned`). */
const gptTypeNames = { filesystem: "linux", lvm_pv: "lvm", zfs: "zfs", swap: "swap" } as const;

/** Programs that a layout may need, with their packages in Debian. The state installs the packages of ZFS by itself (`zfs`). */
const programs = {
  sgdisk: "gdisk",
  "mkfs.xfs": "xfsprogs",
  "mkfs.vfat": "dosfstools",
  vgcreate: "lvm2",
  cryptsetup: "cryptsetup-bin",
} as const;

/** The parameters of the state `kcore/disk-layout`: the layout, by the disks that it is pinned to. */
export function layoutParams(
  { name, node }: { readonly name: string; readonly node: string },
  layout: Layout,
  pins: ReadonlyMap<string, DiskId>,
): Record<string, unknown> {
  const pinOf = (disk: string): DiskId => pins.get(disk) as DiskId;
  const parts = layout.disks.flatMap((disk) =>
    disk.gpt.partitions.map((partition) => {
      const { encrypted, inner } = insideOf(partition);
      const where = { disk: pinOf(disk.name), partition: partition.name, encrypted };
      return { name: `${disk.name}/${partition.name}`, where, inner, content: partition.content };
    }),
  );
  const of = <Type extends InnerContent["type"]>(type: Type) =>
    // Names become the titles of a run's steps.
    parts.flatMap(({ name: called, where, inner }) =>
      inner?.type === type ? [{ step: { name: called, ...where }, where, inner }] : [],
    );
  const containers = parts.filter(({ where }) => where.encrypted);
  const filesystems = of("filesystem").map((one) => ({ ...one, fstype: one.inner.format ?? "ext4" }));
  const needed: readonly (keyof typeof programs)[] = [
    "sgdisk",
    ...filesystems.flatMap(({ fstype }) => (fstype === "ext4" ? [] : [`mkfs.${fstype}` as const])),
    ...(layout.lvmVolumeGroups.length > 0 ? ["vgcreate" as const] : []),
    ...(containers.length > 0 ? ["cryptsetup" as const] : []),
  ];
  const group = (type: "lvm_pv" | "zfs", called: string) => {
    const members = groupMembers(layout, type, called);
    const { partition = "", encrypted = false } = members[0] ?? {};
    return { name: called, disks: members.map(({ disk }) => pinOf(disk)), partition, encrypted };
  };
  return {
    name,
    tools: [...new Set(needed)].map((command) => ({ name: programs[command], command })),
    zfs: layout.zfsPools.length > 0,
    disks: layout.disks.map((disk) => ({
      name: disk.name,
      disk: pinOf(disk.name),
      partitions: disk.gpt.partitions.map((partition) => {
        const { encrypted, inner } = insideOf(partition);
        const type = encrypted ? "luks" : gptTypeNames[inner?.type ?? "filesystem"];
        return { name: partition.name, size: sizeInBytes(partition.size) ?? "100%", type };
      }),
    })),
    containers: containers.map(({ name: called, where: { disk, partition }, content }) => ({
      name: called,
      disk,
      partition,
      discard: content?.allowDiscards ?? false,
    })),
    filesystems: filesystems.map(({ step, fstype }) => ({ ...step, fstype })),
    mounts: filesystems
      .flatMap(({ where, fstype, inner: { mountpoint, mountOptions = [] } }) =>
        mountpoint === undefined ? [] : [{ ...where, fstype, path: mountpoint, options: mountOptions }],
      )
      // A mountpoint within another one comes after it.
      .toSorted((a, b) => a.path.split("/").length - b.path.split("/").length),
    swaps: of("swap").map(({ step }) => step),
    physicalVolumes: of("lvm_pv").map(({ step }) => step),
    volumeGroups: layout.lvmVolumeGroups.map((one) => group("lvm_pv", one.name)),
    pools: layout.zfsPools.map(({ name: called, mode, rootProperties }) => ({
      ...group("zfs", called),
      layout: mode,
      rootProperties,
    })),
    record: recordOf(name, node, layout, pins),
  };
}

/** The text that records an applied layout. It names disks by their lasting names, so each apply writes the same text. */
function recordOf(name: string, node: string, layout: Layout, pins: ReadonlyMap<string, DiskId>): string {
  const disks = layout.disks.map(({ name: called, gpt }) => ({ name: called, ...pins.get(called), gpt }));
  return `# made by kcore apply -f: the layout that was applied last\n${printYaml({ kind: "DiskLayout", name, nodeId: node, diskLayout: { ...layout, disks } })}`;
}
