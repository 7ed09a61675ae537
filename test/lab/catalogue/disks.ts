import type { Sample } from "#support/sample.ts";

/** What the containers' loop disks can: all but what needs a device mapper or another kernel. */
const disk = { serial: "n1-disk1" };
const at = (partition: string) => ({ disk, partition });
const device = (number: number): string => `/dev/disk/by-id/lab-n1-disk1-part${number}`;
const blank = (path: string): string =>
  `dd if=/dev/zero of=${path} bs=1M count=16 conv=fsync 2>/dev/null; udevadm settle`;
const noTool = (forWantOf: string) => ({ refuses: "TOOL_MISSING", forWantOf }) as const;
const noBlkid = noTool("blkid");

export const samples: readonly Sample[] = [
  {
    id: "package.installed disks",
    module: "package.installed",
    args: { names: ["lvm2", "smartmontools"], updateCache: true },
    helps: true,
  },
  {
    id: "disk.health",
    module: "disk.health",
    args: { disk },
    isCheck: true,
    busybox: noTool("smartctl"),
    refusal: { args: { disk, required: true }, code: "DISK_FAILING" },
  },
  {
    id: "disk.partitioned several",
    module: "disk.partitioned",
    args: {
      disk,
      partitions: [
        { name: "spare", size: "16M", type: "lvm" },
        { name: "group", size: "16M", type: "lvm" },
        { name: "format", size: "16M" },
        { name: "grow", size: "16M" },
      ],
    },
    helps: true,
  },
  {
    id: "lvm.physical_volume",
    module: "lvm.physical_volume",
    args: at("spare"),
    busybox: noBlkid,
    drift: { by: `pvremove -qy ${device(1)}; ${blank(device(1))}`, finds: { type: "none" } },
    refusal: {
      args: at("spare"),
      code: "FILESYSTEM_DIFFERS",
      before: `pvremove -qy ${device(1)}; mkfs.ext4 -qF ${device(1)}`,
      after: blank(device(1)),
    },
  },
  {
    id: "lvm.physical_volume group",
    module: "lvm.physical_volume",
    args: at("group"),
    helps: true,
  },
  {
    id: "lvm.volume_group",
    module: "lvm.volume_group",
    args: { name: "vg_sample", disks: [disk], partition: "group" },
    busybox: noTool("vgcreate"),
    drift: { by: "vgremove -qy vg_sample", finds: { "physical volume n1-disk1/group": "no group" } },
    refusal: { args: { name: "vg_other", disks: [disk], partition: "group" }, code: "LVM_PV_TAKEN" },
  },
  {
    id: "filesystem.formatted",
    module: "filesystem.formatted",
    args: at("format"),
    busybox: noBlkid,
    drift: { by: blank(device(3)), finds: { type: "none" } },
  },
  {
    id: "filesystem.formatted grow",
    module: "filesystem.formatted",
    args: at("grow"),
    helps: true,
  },
  {
    id: "filesystem.grown",
    module: "filesystem.grown",
    args: at("grow"),
    // What was just made is as large as its device.
    isCheck: true,
    busybox: noBlkid,
    drift: { by: `e2fsck -fp ${device(4)} && resize2fs ${device(4)} 8M`, finds: { size: "8 of 16 MiB" } },
    refusal: { args: at("spare"), code: "FILESYSTEM_DIFFERS" },
  },
];
