import { expect } from "chai";
import { LayoutSchema, type Layout } from "#cli/layout/layout-schema.ts";
import { readSight } from "#cli/layout/look.ts";
import { planLayout } from "#cli/layout/plan-layout.ts";
import { diskGuid, partitionGuid } from "#engine/step/disk-names.ts";
import { printed, sightOf, type Shown } from "#support/disk-sight.ts";
import { problemsIn } from "#support/problems.ts";

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
const disk = (more: Partial<Shown> = {}): Shown => ({ name: "sdb", size: 1024, serial: "S1", ...more });
const part = (more: Partial<Shown> = {}): Shown => ({
  name: "sdb1",
  size: 1000,
  type: "part",
  on: ["sdb", 1],
  ...more,
});
const table = { PTTYPE: "gpt", PTUUID: "11111111-2222-4333-8444-555555555555" };

/** The codes by which a disk is refused, and what it is then. */
const judged = (devices: readonly Shown[], more: readonly string[] = []) => {
  const plan = planLayout(node, layout, sightOf(devices, more));
  return [plan.disks[0]?.verdict, ...new Set(plan.refusals.map(({ code, reason }) => `${code} ${reason ?? ""}`))];
};

/** Disks in use, and why they are refused whatever is granted. */
const used: Readonly<Record<string, readonly [readonly Shown[], ...string[]]>> = {
  "mounted at /home": [
    [disk({ holds: { TYPE: "ext4" }, mounts: ["/home"] })],
    "DISK_LAYOUT_MOUNTED target_device_has_active_system_mount",
  ],
  "a partition mounted at /srv": [
    [disk({ holds: table }), part({ holds: { TYPE: "xfs" }, mounts: ["/srv/a\\040b"] })],
    "DISK_LAYOUT_MOUNTED target_device_has_active_system_mount",
  ],
  "a partition with kcore's volumes, of another node id": [
    [disk({ holds: table }), part({ holds: { TYPE: "ext4" }, mounts: ["/var/lib/kcore/volumes"] })],
    "DISK_LAYOUT_KCORE_VOLUME target_device_has_active_kcore_volume",
  ],
  swap: [
    [disk({ holds: table }), part({ holds: { TYPE: "swap" }, swap: true })],
    "DISK_LAYOUT_MOUNTED target_device_has_active_system_mount",
  ],
  "a physical volume with an active volume": [
    [
      disk({ holds: table }),
      part({ holds: { TYPE: "LVM2_member" }, holders: ["dm-0"] }),
      { name: "dm-0", size: 8, type: "lvm" },
    ],
    "DISK_LAYOUT_LVM_MEMBER target_device_is_active_lvm_pv",
  ],
  "an active volume that is mounted": [
    [
      disk({ holds: { TYPE: "LVM2_member" }, holders: ["dm-0"] }),
      { name: "dm-0", size: 8, type: "lvm", mounts: ["/var/lib/postgresql"] },
    ],
    "DISK_LAYOUT_LVM_MEMBER target_device_is_active_lvm_pv",
    "DISK_LAYOUT_MOUNTED target_device_has_active_system_mount",
  ],
  "an open container": [
    [disk({ holds: { TYPE: "crypto_LUKS" }, holders: ["dm-0"] }), { name: "dm-0", size: 8, type: "crypt" }],
    "DISK_IN_USE target_device_in_use",
  ],
  "half a mirror that runs": [
    [disk({ holds: { TYPE: "linux_raid_member" }, holders: ["md0"] }), { name: "md0", size: 8, type: "raid1" }],
    "DISK_IN_USE target_device_in_use",
  ],
  "held by what nobody lists": [[disk({ holders: ["bcache0"] })], "DISK_IN_USE target_device_in_use"],
  "read-only": [[disk({ readOnly: true })], "DISK_IN_USE target_device_in_use"],
};

/** What lies on disks that nobody uses: gone only as granted. */
const holding: Readonly<Record<string, readonly Shown[]>> = {
  "a filesystem": [disk({ holds: { TYPE: "ext4", LABEL: "old" } })],
  "an empty table": [disk({ holds: table })],
  "signatures that contradict each other": [disk({ holds: { TYPE: "ambivalent" } })],
  "a partition with nothing that any tool knows": [disk({ holds: table }), part()],
  "a physical volume at rest": [disk({ holds: { TYPE: "LVM2_member" } })],
  "half a mirror that is stopped": [disk({ holds: { TYPE: "linux_raid_member" } })],
};

describe("a disk layout on a node", () => {
  for (const [what, [devices, ...codes]] of Object.entries(used))
    it(`refuses a disk in use: ${what}`, () => expect(judged(devices)).to.deep.equal(["refused", ...codes]));

  for (const [what, devices] of Object.entries(holding))
    it(`tells a disk that holds something: ${what}`, () => expect(judged(devices)).to.deep.equal(["holds data"]));

  it("takes a blank one, and one of kcore's own, mounted as it is", () => {
    expect(judged([disk()])).to.deep.equal(["safe"]);
    const own = { PTTYPE: "gpt", PTUUID: diskGuid(context, serial).toUpperCase() };
    const kcore0 = { PART_ENTRY_UUID: partitionGuid(context, { disk: serial, partition: "kcore0" }) };
    const mounted = part({ holds: { ...kcore0, TYPE: "ext4" }, mounts: ["/var/lib/kcore/volumes1"] });
    expect(judged([disk({ holds: own }), mounted])).to.deep.equal(["ours"]);
    const other = part({ holds: { PART_ENTRY_UUID: id, PART_ENTRY_NAME: "data" } });
    expect(judged([disk({ holds: own }), other])).to.deep.equal([
      "refused",
      "DISK_LAYOUT_KCORE_VOLUME target_device_has_active_kcore_volume",
    ]);
  });

  it("refuses a member of an imported pool, and any member when nobody can tell", () => {
    const member = [disk({ holds: table }), part({ holds: { TYPE: "zfs_member" } })];
    const refused = ["refused", "DISK_LAYOUT_POOL_MEMBER target_device_is_active_zpool_member"];
    expect(judged(member, ["Z sdb1"])).to.deep.equal(refused);
    expect(judged(member, ["Z ?"])).to.deep.equal(refused);
    expect(judged(member)).to.deep.equal(["holds data"]);
  });

  it("refuses a disk that is too small, and a node whose disks are the installer's", () => {
    expect(judged([disk({ size: 2 })])).to.deep.equal(["refused", "DISK_TOO_SMALL invalid_layout"]);
    const mode = (word: string) => judged([disk()], [`O ${word}`]);
    expect(mode("controller-managed")).to.deep.equal(["safe"]);
    for (const word of ["installer-only", "", "controller managed"])
      expect(mode(word)).to.deep.equal(["safe", "DISK_LAYOUT_INSTALLER disk_management_installer_only"]);
  });

  it("pins a disk to what it says of itself: as the roster has it, serial, WWN, link", () => {
    const pinned = (
      devices: readonly Shown[],
      { disks = [] as object[], more = [] as string[], device = "/dev/sdb" } = {},
    ) => {
      const wanted = { ...layout, disks: [{ ...layout.disks[0], device }] } as Layout;
      const plan = planLayout({ ...node, disks: disks as never }, wanted, sightOf(devices, more));
      return plan.disks[0]?.id ?? plan.refusals.map(({ code, message }) => `${message} [${code}]`);
    };
    const link = "L /dev/disk/by-id/ata-x_S1 sdb";
    expect(pinned([disk()])).to.deep.equal({ serial: "S1" });
    expect(pinned([disk()], { more: [link], device: "/dev/disk/by-id/ata-x_S1" })).to.deep.equal({ serial: "S1" });
    expect(pinned([disk()], { more: [link], disks: [{ byId: "ata-x_S1", use: "volumes" }] })).to.deep.equal({
      byId: "ata-x_S1",
    });
    expect(pinned([disk({ wwn: "0x5000C5" })], { disks: [{ wwn: "naa.5000c5", use: "volumes" }] })).to.deep.equal({
      wwn: "naa.5000c5",
    });
    expect(pinned([disk({ serial: "", wwn: "0x5" })])).to.deep.equal({ wwn: "0x5" });
    expect(pinned([disk({ serial: "" })], { more: [link] })).to.deep.equal({ byId: "ata-x_S1" });
    expect(pinned([disk({ serial: "" })])).to.deep.equal([
      "data1: /dev/sdb has no serial number, no WWN and no link in /dev/disk/by-id [DISK_NOT_FOUND]",
    ]);
    expect(pinned([disk(), { name: "sdc", size: 1024, serial: "S1" }])).to.deep.equal([
      "data1: several disks have the serial S1 [DISK_AMBIGUOUS]",
    ]);
    expect(pinned([disk(), part()], { device: "/dev/sdb1" })).to.deep.equal([
      "data1: /dev/sdb1 is a part, not a whole disk [DISK_NOT_FOUND]",
    ]);
    expect(pinned([disk()], { device: "/dev/sdz" })).to.deep.equal([
      "data1: the node has no disk /dev/sdz [DISK_NOT_FOUND]",
    ]);
  });

  it("finds two names of one disk, and a disk by its serial number", () => {
    const [one] = layout.disks as [Layout["disks"][number]];
    const { device: _, ...rest } = one;
    const twice = { ...layout, disks: [one, { ...rest, name: "data2", serial: "S1" }] };
    const plan = planLayout(node, twice, sightOf([disk()]));
    expect(plan.refusals.map(({ message }) => message)).to.deep.equal(["data1 and data2 are the same disk, /dev/sdb"]);
    const none = planLayout(node, { ...layout, disks: [{ ...rest, serial: "S2" }] }, sightOf([disk()]));
    expect(none.refusals.map(({ code, message }) => [code, message])).to.deep.equal([
      ["DISK_NOT_FOUND", "data1: no disk has the serial S2"],
    ]);
  });

  it("judges nothing by a look that breaks off", () => {
    const text = printed([disk()]);
    expect(problemsIn(() => readSight("n1", text.replace(/E\n$/, "")))).to.deep.equal([
      "what lsblk tells of n1's disks breaks off [DISK_LAYOUT_PROBE_FAILED]",
    ]);
    expect(() => readSight("n1", "E\n")).to.throw("breaks off");
  });
});
