import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { filesystemGrown } from "#engine/modules/filesystem-grown.ts";
import { filesystemFormatted } from "#engine/modules/filesystem-formatted.ts";
import { lvmLogicalVolume } from "#engine/modules/lvm-logical-volume.ts";
import { lvmPhysicalVolume } from "#engine/modules/lvm-physical-volume.ts";
import { lvmVolumeGroup } from "#engine/modules/lvm-volume-group.ts";
import { mountMounted } from "#engine/modules/mount-mounted.ts";
import { swapEnabled } from "#engine/modules/swap-enabled.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { diskSum } from "#support/disk-sum.ts";
import { runGranted } from "#support/grants.ts";
import { pluggedIn } from "#support/plugged.ts";
import type { SharedLine, Steps } from "#support/shared-line.ts";
import type { StepRun, StepRunOptions } from "#support/steps.ts";
import { LabMachine } from "#support/lab-machine.ts";

const serial = (number: number): string => `v1-disk${number}`;
const link = (number: number): string => `/dev/disk/by-id/virtio-${serial(number)}`;
const at = (number: number) => ({ disk: { serial: serial(number) }, partition: "lvm" });
const partitions = [{ name: "lvm", type: "lvm" }];

describe("disks of machines with a kernel of their own", function () {
  this.timeout(1_200_000);
  const machine = new LabMachine({ kind: "vm", disks: ["1G", "400M", "200M", "100M"] }, "vmdisks");
  const asText = (step: StepRun): string => JSON.stringify(step, undefined, 1);
  const shell = (command: string): string => machine.line.shell(command);
  const run: SharedLine["run"] = (...step) => machine.line.run(...step);

  const group = (...disks: readonly number[]) => ({
    name: "vg_kcore",
    disks: disks.map((number) => at(number).disk),
    partition: "lvm",
  });
  const images = { vg: "vg_kcore", lv: "images" };
  const made: Steps = [
    [diskPartitioned, { disk: { serial: serial(0) }, partitions }],
    [lvmPhysicalVolume, at(0)],
    [lvmVolumeGroup, group(0)],
    [lvmLogicalVolume, { vg: "vg_kcore", name: "images", size: "350M" }],
    [filesystemFormatted, { ...images, fstype: "xfs", label: "images" }],
    [mountMounted, { path: "/srv/images", source: images, fstype: "xfs" }],
  ];

  it("a blank disk becomes a physical volume, a volume group, a volume and a mounted filesystem; the second run changes nothing", async () => {
    await machine.line.expectAll(made, "changed");
    await machine.line.expectAll(made, "ok");
    expect(shell("vgs --noheadings -o vg_name,pv_count,lv_count").split(/\s+/)).to.deep.equal(["vg_kcore", "1", "1"]);
    expect(shell("findmnt -no SOURCE,FSTYPE /srv/images")).to.match(/^\/dev\/mapper\/vg_kcore-images\s+xfs$/);
    const found = JSON.parse(shell(`lsblk -Jo NAME,TYPE,MOUNTPOINT ${link(0)}`)) as object;
    expect(found).to.have.nested.property("blockdevices[0].children[0].children[0].mountpoint", "/srv/images");
  });

  it("a disk is found by its path, and a grant names its serial number", async () => {
    const place = `for l in /dev/disk/by-path/*; do [ "$(readlink -f "$l")" = "$(readlink -f ${link(3)})" ] && echo "\${l##*/}"; done`;
    const [busPath = ""] = shell(place).trim().split("\n");
    shell(`echo dear | dd of=${link(3)} conv=notrunc`);
    const step = await run(diskPartitioned, { disk: { busPath }, partitions });
    expect(step.problem?.code, asText(step)).to.equal("DISK_HAS_DATA");
    expect(step.problem?.message).to.match(/--grant v1-disk3:[0-9a-f]{16}$/);
    shell(`dd if=/dev/zero of=${link(3)} bs=512 count=1 conv=notrunc`);
  });

  it("an added disk extends the group, and the volume grows but never shrinks", async () => {
    const both: Steps = [
      [diskPartitioned, { disk: { serial: serial(1) }, partitions }],
      [lvmPhysicalVolume, at(1)],
      [lvmVolumeGroup, group(0, 1)],
      [lvmLogicalVolume, { vg: "vg_kcore", name: "images", size: "1100M" }],
      [filesystemGrown, images],
    ];
    // Each changed step has probed again: all is in order.
    await machine.line.expectAll(both, "changed");
    const smaller = await run(lvmLogicalVolume, { vg: "vg_kcore", name: "images", size: "400M" });
    expect(smaller.problem?.code, asText(smaller)).to.equal("LVM_VOLUME_DIFFERS");
    const larger = await run(lvmLogicalVolume, { vg: "vg_kcore", name: "images", size: "9G" }, { dryRun: true });
    expect(larger.problem?.code, asText(larger)).to.equal("LVM_NO_SPACE");
    expect(shell("lvs --noheadings --units m --nosuffix -o lv_size vg_kcore/images")).to.equal("1100.00");
  });

  it("swap on a partition and on a volume is used, and an ext4 grows mounted and unmounted", async () => {
    const disk = { serial: serial(3) };
    const areas = [
      { name: "swap", size: "40M", type: "swap" },
      { name: "data", size: "20M" },
    ];
    const swap: Steps = [
      [diskPartitioned, { disk, partitions: areas }],
      [swapEnabled, { disk, partition: "swap", priority: 7 }],
      [lvmLogicalVolume, { vg: "vg_kcore", name: "swap", size: "40M" }],
      [swapEnabled, { vg: "vg_kcore", lv: "swap" }],
      [lvmLogicalVolume, { vg: "vg_kcore", name: "small", size: "16M" }],
      [filesystemFormatted, { vg: "vg_kcore", lv: "small" }],
    ];
    await machine.line.expectAll(swap, "changed");
    expect(shell("swapon --show=PRIO,SIZE --noheadings --raw").split("\n")).to.include("7 40M");
    shell("swapoff -a && swapon -a");
    expect(shell("swapon --show=NAME --noheadings | wc -l")).to.equal("2");
    const small = { vg: "vg_kcore", lv: "small" };
    await machine.line.expectAll([[filesystemGrown, small]], "ok");
    for (const [size, mount] of [
      ["40M", "true"],
      ["60M", "mount /dev/vg_kcore/small /mnt"],
    ] as const) {
      const steps: Steps = [
        [lvmLogicalVolume, { vg: "vg_kcore", name: "small", size }],
        [filesystemGrown, small],
      ];
      shell(mount);
      await machine.line.expectAll(steps, "changed");
    }
    await machine.line.expectAll(swap.slice(0, 4), "ok");
    shell("umount /mnt && e2fsck -fn /dev/vg_kcore/small");
  });

  it("a thin pool and a thin volume are made, and found in order the second time", async () => {
    const thin: Steps = [
      [lvmLogicalVolume, { vg: "vg_kcore", name: "pool", type: "thinPool", size: "60%FREE" }],
      [lvmLogicalVolume, { vg: "vg_kcore", name: "thin", type: "thin", pool: "pool", size: "2G" }],
      [filesystemFormatted, { vg: "vg_kcore", lv: "thin" }],
    ];
    await machine.line.expectAll(thin, "changed");
    await machine.line.expectAll(thin, "ok");
    const other = await run(lvmLogicalVolume, { vg: "vg_kcore", name: "thin", size: "100M" });
    expect(other.problem?.code, asText(other)).to.equal("LVM_VOLUME_DIFFERS");
  });

  it("disks that kcore did not make are refused and unchanged (F-18)", async () => {
    const third = { disk: { serial: serial(2) }, partition: "lvm" };
    await machine.line.expectAll([[diskPartitioned, { disk: third.disk, partitions }]], "changed");
    // Another owner's volume group, on our partition and with our name.
    shell(
      `vgcreate -q -y vg_other ${link(2)}-part1 && lvcreate -q -y -n data -L 50M vg_other && mkfs.ext4 -q /dev/vg_other/data`,
    );
    const sums = async (): Promise<readonly string[]> => [
      shell("sync; head -c 8M /dev/vg_kcore/images | sha256sum"),
      await diskSum(machine.node, 2),
    ];
    const before = await sums();
    const refused: readonly (readonly [ModuleDefinition, object, string, StepRunOptions?])[] = [
      [lvmPhysicalVolume, third, "DISK_IN_USE"],
      [lvmPhysicalVolume, third, "DISK_IN_USE", { granted: [serial(2)] }],
      [diskPartitioned, { disk: { byId: `virtio-${serial(2)}` }, partitions }, "DISK_IN_USE", { granted: [serial(2)] }],
      [lvmVolumeGroup, group(0, 2), "LVM_PV_MISSING"],
      [lvmLogicalVolume, { vg: "vg_none", name: "a", size: "10M" }, "LVM_GROUP_MISSING"],
      [filesystemFormatted, { vg: "vg_other", lv: "data", fstype: "ext4" }, "FILESYSTEM_DIFFERS"],
      [
        filesystemFormatted,
        { vg: "vg_kcore", lv: "images", fstype: "ext4" },
        "DISK_IN_USE",
        { granted: ["vg_kcore/images"] },
      ],
      [filesystemFormatted, { vg: "vg_kcore", lv: "none" }, "VOLUME_NOT_FOUND"],
    ];
    for (const [module, args, code, options] of refused) {
      const step = await run(module, args, options);
      expect(step.problem?.code, `${module.name} ${asText(step)}`).to.equal(code);
    }
    shell("vgchange -q -a n vg_other");
    // A closed volume still has an owner; a grant by name makes it anew.
    const closed = await run(lvmPhysicalVolume, third);
    expect(closed.problem?.code, asText(closed)).to.equal("FILESYSTEM_DIFFERS");
    shell("vgchange -q -a y vg_other");
    expect(await sums()).to.deep.equal(before);
    shell("vgchange -q -a n vg_other");
    // A grant for earlier contents, or for none, does not cover the present ones.
    for (const granted of [[serial(2)], [`${serial(2)}:${"0".repeat(16)}`]])
      expect((await run(lvmPhysicalVolume, third, { granted })).problem?.code).to.equal("FILESYSTEM_DIFFERS");
    const granted = await runGranted((given) => run(lvmPhysicalVolume, third, { granted: given }));
    expect(granted.outcome, asText(granted)).to.equal("changed");
  });

  it("a group of the same name on other disks is refused", async () => {
    shell("vgrename -q vg_kcore vg_moved 2>/dev/null; pvs -o pv_name,vg_name >/dev/null");
    const step = await run(lvmVolumeGroup, group(0));
    expect(step.problem?.code, asText(step)).to.equal("LVM_PV_TAKEN");
    shell(`vgrename -q vg_moved vg_kcore; umount /srv/images; udevadm settle; mount /srv/images`);
    const fresh = await run(lvmVolumeGroup, group(2));
    expect(fresh.problem?.code, asText(fresh)).to.equal("LVM_GROUP_TAKEN");
  });

  it("group, volumes and mount are back after a power cut, and a run changes nothing", async () => {
    const steps: Steps = [...made.slice(0, 2), [lvmVolumeGroup, group(0, 1)], ...made.slice(4)];
    shell("echo kept >/srv/images/file && sync");
    machine.line.drop();
    await machine.node.powerCut();
    await machine.node.start();
    await machine.line.expectAll(steps, "ok");
    expect(shell("cat /srv/images/file")).to.equal("kept");
  });

  it("disks are found by their identity when their names change", async () => {
    shell("swapoff -a; umount /srv/images && vgchange -q -a n vg_kcore");
    const named = shell(`readlink -f ${link(0)}`);
    for (const index of [0, 1, 2]) await machine.node.unplug(index);
    for (const index of [2, 1, 0]) await machine.node.plug(index);
    shell(pluggedIn(link(0), link(1), link(2)));
    expect(shell(`readlink -f ${link(0)}`)).to.not.equal(named);
    shell("vgchange -q -a y vg_kcore && udevadm settle && mount /srv/images");
    await machine.line.expectAll(made.slice(0, 2), "ok");
    expect(shell("cat /srv/images/file")).to.equal("kept");
  });
});
