import { expect } from "chai";
import { translateDisko } from "#engine/layout/disko.ts";
import { LayoutSchema } from "#engine/layout/layout-schema.ts";

const gpt = (partitions: object, more: object = {}) => ({
  data1: { type: "disk", device: "/dev/vdb", content: { type: "gpt", partitions }, ...more },
});
const onlyPartition = (partition: object) => ({ disk: gpt({ a: { size: "100%", ...partition } }) });
const ext4 = { type: "filesystem", format: "ext4", mountpoint: "/srv" };

/** Parts of disko that kcore does not support, with the problems reported for them. */
const unsupported: Readonly<Record<string, readonly [devices: unknown, ...problems: readonly string[]]>> = {
  "devices as a list": [[], "disko.devices: it must be a set"],
  "file systems without a disk": [
    { disk: gpt({}), nodev: { "/tmp": { fsType: "tmpfs" } } },
    "disko.devices.nodev: it is about no disk",
  ],
  arrays: [{ mdadm: { raid1: {} } }, "disko.devices.mdadm: md.array makes arrays"],
  "a partition table that is not GPT": [
    { disk: { data1: { type: "disk", device: "/dev/vdb", content: { type: "table", format: "msdos" } } } },
    'disko.devices.disk.data1.content.type: it must be "gpt"',
    "disko.devices.disk.data1.content.format: kcore does not know it",
  ],
  "a partition's start": [
    onlyPartition({ start: "1M", content: ext4 }),
    "disko.devices.disk.data1.content.partitions.a.start: kcore does not know it",
  ],
  "a partition type that contradicts the contents": [
    onlyPartition({ type: "EF00", content: ext4 }),
    "disko.devices.disk.data1.content.partitions.a.type: kcore gives it the type of a filesystem partition: leave it out",
  ],
  "arguments for mkfs": [
    onlyPartition({ content: { ...ext4, extraArgs: ["-m", "0"] } }),
    "disko.devices.disk.data1.content.partitions.a.content.extraArgs: kcore does not know it",
  ],
  "a passphrase or key file": [
    onlyPartition({
      content: { type: "luks", name: "x", passwordFile: "/tmp/secret", settings: { keyFile: "/k" }, content: ext4 },
    }),
    "disko.devices.disk.data1.content.partitions.a.content.passwordFile: kcore makes the key on the node and keeps it there",
    "disko.devices.disk.data1.content.partitions.a.content.settings.keyFile: kcore makes the key on the node and keeps it there",
  ],
  "logical volumes and datasets": [
    { lvm_vg: { vg0: { type: "lvm_vg", lvs: { root: { size: "1G" } } } }, zpool: { tank0: { datasets: { a: {} } } } },
    "disko.devices.lvm_vg.vg0.lvs: a layout makes the volume group; lvm.logical_volume makes volumes",
    "disko.devices.zpool.tank0.datasets: a layout makes the pool; zfs.dataset makes datasets",
  ],
};

describe("translateDisko", () => {
  it("translates disks, volume groups and pools, with partitions in disko's order", () => {
    const { layout, unsupported: none } = translateDisko({
      nodev: {},
      disk: {
        ...gpt({
          all: {
            size: "100%",
            type: "8309",
            content: {
              type: "luks",
              name: "crypt",
              settings: { allowDiscards: true },
              content: { type: "lvm_pv", vg: "vg_kcore" },
            },
          },
          late: { size: "1G", priority: 2000, content: { type: "swap" } },
          soon: { name: "first", size: "2G", content: { ...ext4, mountOptions: ["defaults"] } },
        }),
        data2: {
          device: "/dev/vdc",
          content: {
            type: "gpt",
            partitions: { zfs: { size: "100%", type: "BF00", content: { type: "zfs", pool: "tank0" } } },
          },
        },
      },
      lvm_vg: { vg_kcore: { type: "lvm_vg", lvs: {} } },
      zpool: { tank0: { type: "zpool", mode: "", rootFsOptions: { compression: "zstd" }, datasets: {} } },
    });
    expect(none).to.deep.equal([]);
    expect(layout).to.deep.equal({
      disks: [
        {
          name: "data1",
          device: "/dev/vdb",
          gpt: {
            partitions: [
              { name: "first", size: "2G", content: ext4 },
              { name: "late", size: "1G", content: { type: "swap" } },
              {
                name: "all",
                size: "100%",
                content: { type: "luks", allowDiscards: true, content: { type: "lvm_pv", vg: "vg_kcore" } },
              },
            ],
          },
        },
        {
          name: "data2",
          device: "/dev/vdc",
          gpt: { partitions: [{ name: "zfs", size: "100%", content: { type: "zfs", pool: "tank0" } }] },
        },
      ],
      lvmVolumeGroups: [{ name: "vg_kcore" }],
      zfsPools: [{ name: "tank0", mode: "stripe", rootProperties: { compression: "zstd" } }],
    });
    expect(LayoutSchema.safeParse(layout).success).to.equal(true);
  });

  for (const [what, [devices, ...problems]] of Object.entries(unsupported))
    it(`reports what kcore does not support: ${what}`, () =>
      expect(translateDisko(devices).unsupported.map(({ path, why }) => `${path}: ${why}`)).to.deep.equal(problems));
});
