import { expect } from "chai";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { filesystemFormatted } from "#engine/modules/filesystem-formatted.ts";
import { mountMounted } from "#engine/modules/mount-mounted.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { SharedLine } from "#support/shared-line.ts";
import { grantOf } from "#support/grants.ts";
import { runStepOn, stepOf, type StepRun, type StepRunOptions } from "#support/steps.ts";
import { ownLab } from "#support/own-lab.ts";

const partitions = [{ name: "data" }];
const serial = (number: number): string => `n1-disk${number}`;
const link = (number: number): string => `/dev/disk/by-id/lab-${serial(number)}`;

/** Contents of a disk: how to make them, and the words that a refusal names. */
const holdings: Readonly<Record<string, readonly [make: string, says: RegExp]>> = {
  "a filesystem": ["mkfs.ext4 -q -F DISK", /holds ext4/],
  "a filesystem in a partition": ["sgdisk -n1:0:0 DISK && mkfs.ext4 -q DISK-part1", /loop\d+p1 holds ext4/],
  "a GPT of which only the backup is left": [
    "sgdisk -n1:0:0 DISK && dd if=/dev/zero of=DISK bs=512 count=34 conv=notrunc,fsync",
    /holds gpt/,
  ],
  "a filesystem beneath a wiped table": [
    "sgdisk -n 1:0:0 DISK && mkfs.ext4 -q DISK-part1 && wipefs -a -q DISK",
    /holds bytes of unknown meaning/,
  ],
  "a swap area": ["mkswap DISK", /holds swap/],
  "an LVM volume": ["pvcreate -q DISK", /holds LVM2_member/],
  "bytes that no tool knows": [
    "dd if=/dev/urandom of=DISK bs=4096 count=1 seek=3 conv=notrunc",
    /holds bytes of unknown meaning/,
  ],
  "bytes at its end": [
    "echo here | dd of=DISK bs=1 seek=$((64 * 1048576 - 4096)) conv=notrunc,fsync",
    /holds bytes of unknown meaning in the last MiB/,
  ],
};

/** Uses of a disk: how each begins and ends, and the words that a refusal names. */
const uses: Readonly<Record<string, readonly [make: string, says: RegExp, end: string]>> = {
  "a mounted filesystem": ["mkfs.ext4 -qF DISK && mount -r DISK /mnt", /mounted at \/mnt/, "umount /mnt"],
  "a mounted partition": [
    "sgdisk -n1:0:0 DISK && udevadm settle && mkfs.ext4 -qF DISK-part1 && mount -r DISK-part1 /mnt",
    /mounted at \/mnt/,
    "umount /mnt",
  ],
  "a partition that another namespace alone has mounted": [
    "sgdisk -n1:0:0 DISK && udevadm settle && mkfs.ext4 -qF DISK-part1; setsid unshare -m sh -c 'mount -r DISK-part1 /mnt; exec sleep 1000' >/dev/null 2>&1 & echo $! >/run/holder; until grep -qs ' /mnt ' /proc/$(cat /run/holder)/mounts; do sleep 0.1; done",
    /cannot be opened alone/,
    "kill $(cat /run/holder); while [ -d /proc/$(cat /run/holder) ]; do sleep 0.1; done",
  ],
  "a process that has a partition open, as a guest its disk": [
    "sgdisk -n1:0:0 DISK && udevadm settle; setsid sleep 1000 <DISK-part1 >/dev/null 2>&1 & echo $! >/run/holder; until [ -b /proc/$(cat /run/holder)/fd/0 ]; do sleep 0.1; done",
    /is open in process \d+ \(sleep\)/,
    "kill $(cat /run/holder)",
  ],
  "a lock against writing": ["blockdev --setro DISK", /is read-only/, "blockdev --setrw DISK"],
};

describe("disks of real nodes", () => {
  let lab: Lab;
  let line: SharedLine;

  before(async () => {
    lab = await ownLab();
    const [n1] = (await lab.up([{ name: "n1", kind: "debian", disks: ["64M", "64M", "400M"] }])) as [LabNode];
    line = new SharedLine(n1);
    await shell("apt-get -q update && apt-get -q -y install --no-install-recommends lvm2 xfsprogs dosfstools");
  });
  after(async () => {
    line?.close();
    await lab?.down();
  });

  function shell(command: string): Promise<string> {
    return Promise.resolve(line.shell(command));
  }
  const run = (module: ModuleDefinition, args: object, options: StepRunOptions = {}): Promise<StepRun> =>
    runStepOn(line.via, stepOf(module, args), options);
  const sumOf = (number: number): Promise<string> => shell(`sha256sum <${link(number)}`);
  const blankDisk = (number: number): Promise<string> =>
    shell(
      `wipefs -a -q ${link(number)}-part1 2>/dev/null; wipefs -a -q ${link(number)}; sgdisk -Z ${link(number)} >/dev/null 2>&1; dd if=/dev/zero of=${link(number)} bs=1M count=64 conv=notrunc,fsync 2>/dev/null; udevadm settle`,
    );
  const asText = (step: StepRun): string => JSON.stringify(step, undefined, 1);

  it("a blank disk gets its partition, filesystem and mount, and the second run changes nothing", async () => {
    const disk = { serial: serial(0) };
    const plan = await run(diskPartitioned, { disk, partitions }, { dryRun: true });
    expect(plan.outcome, asText(plan)).to.equal("would-change");
    expect(plan.notes.join()).to.match(/^\/dev\/\S+ {2}64 MiB {2}.*serial n1-disk0.*: blank$/);
    const steps = [
      [diskPartitioned, { disk, partitions }],
      [filesystemFormatted, { disk, partition: "data", label: "kcore-data" }],
      [mountMounted, { path: "/srv/data", source: { disk, partition: "data" }, fstype: "ext4" }],
    ] as const;
    for (const outcome of ["changed", "ok"])
      for (const [module, args] of steps) {
        const step = await run(module as ModuleDefinition, args);
        expect(step.outcome, asText(step)).to.equal(outcome);
      }
    expect(await shell("findmnt -no SOURCE /srv/data")).to.equal(await shell(`readlink -f ${link(0)}-part1`));
  });

  it("a disk in use is refused under each of its names, whatever is granted (F-18)", async () => {
    const args = { disk: { serial: serial(0) }, partitions: [{ name: "other" }] };
    const mounted = await run(
      diskPartitioned,
      { ...args, disk: { byId: `lab-${serial(0)}` } },
      { granted: [serial(0)] },
    );
    expect(mounted.problem?.code, asText(mounted)).to.equal("DISK_IN_USE");
    expect(mounted.problem?.detail).to.contain("mounted at /srv/data");
    await shell("umount /srv/data; sed -i /srv.data/d /etc/fstab");
  });

  it("a disk is found by its size if exactly one fits, and a grant names its serial number", async () => {
    await shell(`echo dear | dd of=${link(2)} conv=notrunc`);
    for (const [disk, code] of [
      [{ size: "400M" }, "DISK_HAS_DATA"],
      [{ size: "396M" }, "DISK_HAS_DATA"],
      [{ size: "388M" }, "DISK_NOT_FOUND"],
      [{ size: "64M" }, "DISK_AMBIGUOUS"],
      [{ model: "none" }, "DISK_NOT_FOUND"],
    ] as const) {
      const step = await run(diskPartitioned, { disk, partitions });
      expect(step.problem?.code, asText(step)).to.equal(code);
      if (code === "DISK_HAS_DATA") expect(step.problem?.message).to.match(/--grant n1-disk2:[0-9a-f]{16}$/);
    }
    await shell(`dd if=/dev/zero of=${link(2)} bs=512 count=1 conv=notrunc`);
  });

  it("different partitions are refused, and additional ones are added", async () => {
    const disk = { serial: serial(1) };
    const two = [
      { name: "a", size: "16M" },
      { name: "b", size: "16M" },
    ];
    expect((await run(diskPartitioned, { disk, partitions: two })).outcome).to.equal("changed");
    await shell(`mkfs.ext4 -q ${link(1)}-part1 && mount ${link(1)}-part1 /mnt && echo kept >/mnt/file`);
    const more = await run(diskPartitioned, { disk, partitions: [...two, { name: "c" }] });
    expect(more.outcome, asText(more)).to.equal("changed");
    expect(await shell("cat /mnt/file; umount /mnt")).to.equal("kept");
    const other = await run(diskPartitioned, { disk, partitions: [{ name: "a", size: "32M" }, two[1] as object] });
    expect(other.problem?.code, asText(other)).to.equal("DISK_PARTITIONS_DIFFER");
    await blankDisk(1);
  });

  const here = { disk: { serial: serial(1) }, partitions };
  /** Expects a refusal despite a grant without fingerprint or for other contents, and no byte written. */
  const expectRefused = async (
    [make, says]: readonly [string, RegExp, ...unknown[]],
    code = "DISK_HAS_DATA",
  ): Promise<void> => {
    await blankDisk(1);
    await shell(
      `{ ${make.replaceAll("DISK", link(1))}\n} >/run/made 2>&1; s=$?; udevadm settle; [ $s = 0 ] || cat /run/made; exit $s`,
    );
    const before = await sumOf(1);
    const refused = await run(diskPartitioned, here, { granted: [serial(1), `${serial(1)}:${"0".repeat(16)}`] });
    expect(refused.problem?.code, asText(refused)).to.equal(code);
    expect(`${refused.problem?.message}\n${refused.problem?.detail}`).to.match(says);
    expect(await sumOf(1)).to.equal(before);
  };

  for (const [what, use] of Object.entries(uses))
    it(`a disk in use as ${what} is refused and unchanged (F-18)`, async () => {
      try {
        await expectRefused(use, "DISK_IN_USE");
      } finally {
        await shell(use[2].replaceAll("DISK", link(1)));
      }
    });

  for (const [what, holding] of Object.entries(holdings)) {
    it(`a disk that holds ${what} is refused and unchanged until a grant allows the wipe (F-18)`, async () => {
      await expectRefused(holding);
      const before = await sumOf(1);
      const planned = await run(diskPartitioned, here, { dryRun: true });
      expect(planned.problem?.code).to.equal("DISK_HAS_DATA");
      expect(planned.problem?.detail?.split("\n")[0]).to.match(/ {2}64 MiB {2}.*serial n1-disk1/);
      const grant = grantOf(planned);
      const foreseen = await run(diskPartitioned, here, { dryRun: true, granted: [grant] });
      expect(foreseen.notes.join()).to.match(/serial n1-disk1.*: wiped, as granted, with \/dev\//);
      expect(await sumOf(1)).to.equal(before);
      expect(grant).to.match(new RegExp(`^${serial(1)}:`));
      // Contents of a partition that was just made belong to the past, as its mark says.
      await shell("mkdir -p /root/state");
      const options = { granted: [grant], stateDir: "/root/state" };
      const granted = await run(diskPartitioned, here, options);
      expect(granted.outcome, asText(granted)).to.equal("changed");
      const made = await run(filesystemFormatted, { disk: { serial: serial(1) }, partition: "data" }, options);
      expect(await shell("ls /root/state/fresh; rm -r /root/state")).to.equal("");
      expect(made.outcome, asText(made)).to.equal("changed");
      await blankDisk(1);
    });
  }

  it("a disk is locked while its table is written (ADR 0006)", async () => {
    await blankDisk(1);
    const args = { disk: { serial: serial(1) }, partitions };
    // The view of another program that wants the disk while sgdisk writes.
    const look = `/usr/sbin/wipefs -a -n ${link(1)} >/dev/null 2>&1; echo $? >>/run/others`;
    const tool = `printf '%s\\n' '#!/bin/sh' '${look}' 'exec /usr/sbin/sgdisk.real "$@"' >/usr/sbin/sgdisk`;
    await shell(`mv /usr/sbin/sgdisk /usr/sbin/sgdisk.real && ${tool} && chmod +x /usr/sbin/sgdisk`);
    try {
      const blank = await run(diskPartitioned, args);
      expect(blank.outcome, asText(blank)).to.equal("changed");
      expect(await shell("cat /run/others")).to.equal("1");
      await blankDisk(1);
      await shell(`rm /run/others; mkfs.ext4 -q -F ${link(1)}`);
      const wiped = await run(diskPartitioned, args, { granted: [grantOf(await run(diskPartitioned, args))] });
      expect(wiped.outcome, asText(wiped)).to.equal("changed");
      expect(await shell("cat /run/others")).to.equal("1");
    } finally {
      await shell("mv /usr/sbin/sgdisk.real /usr/sbin/sgdisk");
    }
    await blankDisk(1);
  });

  it("old bytes in a partition that was just made are accepted, a later signature is refused (ADR 0006)", async () => {
    await blankDisk(1);
    // Beyond the first and last MiBs of the disk, which disk.partitioned examines.
    await shell(`mkdir -p /root/state && dd if=/dev/urandom of=${link(1)} bs=1M count=4 seek=20 conv=notrunc,fsync`);
    const disk = { serial: serial(1) };
    const options = { stateDir: "/root/state" };
    const two = [{ name: "a", size: "18M" }, { name: "b" }];
    const partitioned = await run(diskPartitioned, { disk, partitions: two }, options);
    expect(partitioned.outcome, asText(partitioned)).to.equal("changed");
    expect((await shell("ls /root/state/fresh")).split("\n")).to.have.length(2);
    const formatted = await run(filesystemFormatted, { disk, partition: "b" }, options);
    expect(formatted.outcome, asText(formatted)).to.equal("changed");
    expect((await shell("ls /root/state/fresh")).split("\n")).to.have.length(1);
    for (const command of [`sgdisk -n 1:0:0 ${link(1)}-part1`, `mkswap ${link(1)}-part1`]) {
      await shell(`${command}; udevadm settle`);
      const refused = await run(filesystemFormatted, { disk, partition: "a" }, options);
      expect(refused.problem?.code, asText(refused)).to.equal("FILESYSTEM_DIFFERS");
    }
    await shell("rm -r /root/state");
    await blankDisk(1);
  });

  it("a partition with other contents is refused until a grant allows its wipe (F-18)", async () => {
    const disk = { serial: serial(2) };
    await run(diskPartitioned, { disk, partitions });
    const args = { disk, partition: "data", fstype: "xfs" };
    await shell(`mkfs.ext4 -q ${link(2)}-part1`);
    const refused = await run(filesystemFormatted, args);
    expect(refused.problem?.code, asText(refused)).to.equal("FILESYSTEM_DIFFERS");
    const granted = await run(filesystemFormatted, args, { granted: [grantOf(refused)] });
    expect(granted.outcome, asText(granted)).to.equal("changed");
    expect((await run(filesystemFormatted, args)).outcome).to.equal("ok");
    expect(await shell(`blkid -p -o value -s TYPE ${link(2)}-part1`)).to.equal("xfs");
    // A grant is void once its contents have changed.
    const boot = { ...args, fstype: "vfat", label: "BOOT" };
    const spent = await run(filesystemFormatted, boot, { granted: [grantOf(refused)] });
    expect(spent.problem?.code, asText(spent)).to.equal("FILESYSTEM_DIFFERS");
    const vfat = await run(filesystemFormatted, boot, { granted: [grantOf(spent)] });
    expect(vfat.outcome, asText(vfat)).to.equal("changed");
  });
});
