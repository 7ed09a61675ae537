import { expect } from "chai";
import { LayoutSchema, type Layout } from "#engine/layout/layout-schema.ts";
import { withRefusals, planLayout } from "#engine/layout/plan-layout.ts";
import type { Problem } from "#errors/problem.ts";
import { diskGuid, partitionGuid } from "#engine/step/disk-names.ts";
import { inventoryOf, type DescribedDevice } from "#support/disk-inventory.ts";

const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
const node = { name: "n1", id, disks: [] };
const context = { node: "n1", nodeId: id };
const serial = { serial: "S1" };
const layout: Layout = LayoutSchema.parse({
  disks: [
    {
      name: "data1",
      device: "/dev/sdb",
      gpt: { partitions: [{ name: "kcore0", size: "100%", content: { type: "filesystem", format: "ext4" } }] },
    },
  ],
});
const disk = (more: Partial<DescribedDevice> = {}): DescribedDevice => ({ name: "sdb", serial: "S1", ...more });
const part = (more: Partial<DescribedDevice> = {}): DescribedDevice => ({
  name: "sdb1",
  type: "part",
  disk: "sdb",
  start: 1,
  ...more,
});
const table = { pttype: "gpt", ptuuid: "11111111-2222-4333-8444-555555555555" };
const lv: DescribedDevice = { name: "dm-0", type: "lvm" };

/** The disk's verdict, and the codes and reasons of refusals; `code` is the one with which a dry run refused the disk. */
const judged = (
  devices: readonly DescribedDevice[],
  { code, mode }: { code?: Problem["code"]; mode?: string } = {},
) => {
  const inventory = inventoryOf(devices, mode);
  const found = planLayout(node, layout, inventory);
  const refused = code === undefined ? [] : [{ step: "partition[data1]", problem: { code, message: "m" } }];
  const plan = withRefusals(found, refused, inventory);
  return [plan.disks[0]?.verdict, ...plan.refusals.map((one) => `${one.code} ${one.reason ?? ""}`)];
};

/** Uses for which a dry run refuses a disk, with the code and the reason (a word of kcore's predecessor). */
const usedDisks: Readonly<Record<string, readonly [devices: readonly DescribedDevice[], code: string]>> = {
  "a partition mounted at /srv": [
    [disk(table), part({ fstype: "xfs", mounts: ["/srv"] })],
    "DISK_LAYOUT_MOUNTED target_device_has_active_system_mount",
  ],
  "a partition with kcore's volumes, of another node id": [
    [disk(table), part({ fstype: "ext4", mounts: ["/var/lib/kcore/volumes"] })],
    "DISK_LAYOUT_KCORE_VOLUME target_device_has_active_kcore_volume",
  ],
  "a physical volume with an active volume": [
    [disk(table), part({ holders: ["dm-0"] }), lv],
    "DISK_LAYOUT_LVM_MEMBER target_device_is_active_lvm_pv",
  ],
  "an active volume that is mounted": [
    [disk({ holders: ["dm-0"] }), { ...lv, mounts: ["/var/lib/postgresql"] }],
    "DISK_LAYOUT_MOUNTED target_device_has_active_system_mount",
  ],
  "a member of a pool": [
    [disk(table), part({ fstype: "zfs_member" })],
    "DISK_LAYOUT_POOL_MEMBER target_device_is_active_zpool_member",
  ],
  "a holder that the inventory does not list": [[disk({ holders: ["bcache0"] })], "DISK_IN_USE target_device_in_use"],
};

describe("a disk layout on a node", () => {
  for (const [what, [devices, code]] of Object.entries(usedDisks))
    it(`reports the use of a disk that a dry run refused: ${what}`, () => {
      expect(judged(devices, { code: "DISK_IN_USE" })).to.deep.equal(["refused", code]);
    });

  it("reports a disk that holds data, also where the dry run refuses it for lack of a grant", () => {
    for (const devices of [[disk({ fstype: "ext4" })], [disk(table)], [disk(table), part()]])
      expect(judged(devices)).to.deep.equal(["holds data"]);
    expect(judged([disk()], { code: "DISK_HAS_DATA" })).to.deep.equal([
      "holds data",
      "DISK_HAS_DATA target_device_holds_data",
    ]);
    expect(judged([disk()], { code: "DISK_TOO_SMALL" })).to.deep.equal(["refused", "DISK_TOO_SMALL invalid_layout"]);
  });

  it("accepts a blank disk, and kcore's own disk unless it has a partition that the layout lacks", () => {
    expect(judged([disk()])).to.deep.equal(["safe"]);
    const own = disk({ pttype: "gpt", ptuuid: diskGuid(context, serial) });
    const partuuid = partitionGuid(context, { disk: serial, partition: "kcore0" });
    const mounted = part({ partuuid, fstype: "ext4", mounts: ["/var/lib/kcore/volumes1"] });
    expect(judged([own, mounted])).to.deep.equal(["ours"]);
    expect(judged([own, part({ partuuid: id, partlabel: "data" })])).to.deep.equal([
      "refused",
      "DISK_LAYOUT_KCORE_VOLUME target_device_has_active_kcore_volume",
    ]);
  });

  it("accepts a disk that kcore made under an adopted node's first former id", () => {
    const adopted = { ...node, id: "7a1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e22", formerIds: [id, "other"] };
    const made = disk({ pttype: "gpt", ptuuid: diskGuid(context, serial) });
    expect(planLayout(adopted, layout, inventoryOf([made])).disks[0]?.verdict).to.equal("ours");
  });

  it("refuses a node whose disk management is not controller-managed", () => {
    expect(judged([disk()], { mode: "controller-managed" })).to.deep.equal(["safe"]);
    for (const mode of ["installer-only", "", "controller managed"])
      expect(judged([disk()], { mode })).to.deep.equal([
        "safe",
        "DISK_LAYOUT_INSTALLER disk_management_installer_only",
      ]);
  });

  it("pins a disk to its identity in the roster, else serial number, WWN or by-id link", () => {
    const pinned = (devices: readonly DescribedDevice[], { disks = [] as object[], device = "/dev/sdb" } = {}) => {
      const wanted = { ...layout, disks: [{ ...layout.disks[0], device }] } as Layout;
      const plan = planLayout({ ...node, disks: disks as never }, wanted, inventoryOf(devices));
      return plan.disks[0]?.id ?? plan.refusals.map(({ code, message }) => `${message} [${code}]`);
    };
    const linked = { links: ["/dev/disk/by-id/ata-x_S1"] };
    expect(pinned([disk()])).to.deep.equal({ serial: "S1" });
    expect(pinned([disk(linked)], { device: "/dev/disk/by-id/ata-x_S1" })).to.deep.equal({ serial: "S1" });
    expect(pinned([disk(linked)], { disks: [{ byId: "ata-x_S1", use: "volumes" }] })).to.deep.equal({
      byId: "ata-x_S1",
    });
    expect(pinned([disk({ wwn: "0x5000C5" })], { disks: [{ wwn: "naa.5000c5", use: "volumes" }] })).to.deep.equal({
      wwn: "naa.5000c5",
    });
    expect(pinned([disk({ serial: "", wwn: "0x5" })])).to.deep.equal({ wwn: "0x5" });
    expect(pinned([disk({ serial: "", ...linked })])).to.deep.equal({ byId: "ata-x_S1" });
    expect(pinned([disk({ serial: "" })])).to.deep.equal([
      "data1: /dev/sdb has no serial number, no WWN and no link in /dev/disk/by-id [DISK_NOT_FOUND]",
    ]);
    expect(pinned([disk(), { name: "sdc", serial: "S1" }])).to.deep.equal([
      "data1: /dev/sdb and /dev/sdc are both the disk with the serial number S1 [DISK_AMBIGUOUS]",
    ]);
    expect(pinned([disk(), part()], { device: "/dev/sdb1" })).to.deep.equal([
      "data1: /dev/sdb1 is a part, not a whole disk [DISK_NOT_FOUND]",
    ]);
    expect(pinned([disk()], { device: "/dev/sdz" })).to.deep.equal([
      "data1: the machine has no disk /dev/sdz [DISK_NOT_FOUND]",
    ]);
  });

  it("refuses two entries for one disk, and an unknown serial number", () => {
    const [one] = layout.disks as [Layout["disks"][number]];
    const { device: _, ...rest } = one;
    const twice = { ...layout, disks: [one, { ...rest, name: "data2", serial: "S1" }] };
    const messages = (wanted: Layout) =>
      planLayout(node, wanted, inventoryOf([disk()])).refusals.map(({ message }) => message);
    expect(messages(twice)).to.deep.equal(["data1 and data2 are the same disk, /dev/sdb"]);
    expect(messages({ ...layout, disks: [{ ...rest, serial: "S2" }] })).to.deep.equal([
      "data1: no disk has the serial number S2",
    ]);
  });
});
