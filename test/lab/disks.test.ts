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

/** What a disk may hold, and how it comes there. */
const holdings: Readonly<Record<string, string>> = {
  "a filesystem": "mkfs.ext4 -q -F DISK",
  "a partition table": "sgdisk -n 1:0:0 DISK",
  "a filesystem beneath a wiped table": "sgdisk -n 1:0:0 DISK && mkfs.ext4 -q DISK-part1 && wipefs -a -q DISK",
  "a swap area": "mkswap DISK",
  "an LVM volume": "pvcreate -q DISK",
  "bytes that no tool knows": "dd if=/dev/urandom of=DISK bs=4096 count=1 seek=3 conv=notrunc",
  "bytes at its end": "dd if=/dev/urandom of=DISK bs=1M count=1 seek=63 conv=notrunc",
};

describe("disks of real nodes", function () {
  this.timeout(600_000);
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
  const clean = (number: number): Promise<string> =>
    shell(
      `wipefs -a -q ${link(number)}-part1 2>/dev/null; wipefs -a -q ${link(number)}; sgdisk -Z ${link(number)} >/dev/null 2>&1; dd if=/dev/zero of=${link(number)} bs=1M count=64 conv=notrunc,fsync 2>/dev/null; udevadm settle`,
    );
  const told = (step: StepRun): string => JSON.stringify(step, undefined, 1);

  it("a blank disk gets its partition, filesystem and mount, and the second run changes nothing", async () => {
    const disk = { serial: serial(0) };
    const plan = await run(diskPartitioned, { disk, partitions }, { dryRun: true });
    expect(plan.outcome, told(plan)).to.equal("would-change");
    expect(plan.notes.join()).to.match(/^\/dev\/\S+ {2}64 MiB {2}.*serial n1-disk0.*: blank$/);
    const steps = [
      [diskPartitioned, { disk, partitions }],
      [filesystemFormatted, { disk, partition: "data", label: "kcore-data" }],
      [mountMounted, { path: "/srv/data", source: { disk, partition: "data" }, fstype: "ext4" }],
    ] as const;
    for (const outcome of ["changed", "ok"])
      for (const [module, args] of steps) {
        const step = await run(module as ModuleDefinition, args);
        expect(step.outcome, told(step)).to.equal(outcome);
      }
    expect(await shell("findmnt -no SOURCE /srv/data")).to.equal(await shell(`readlink -f ${link(0)}-part1`));
  });

  it("a disk in use is refused whatever was granted, also one that another namespace mounts (F-18)", async () => {
    const args = { disk: { serial: serial(0) }, partitions: [{ name: "other" }] };
    const mounted = await run(
      diskPartitioned,
      { ...args, disk: { byId: `lab-${serial(0)}` } },
      { granted: [serial(0)] },
    );
    expect(mounted.problem?.code, told(mounted)).to.equal("DISK_IN_USE");
    expect(mounted.problem?.detail).to.contain("mounted at /srv/data");
    await shell("umount /srv/data; sed -i /srv.data/d /etc/fstab");
    await shell(
      `setsid unshare -m sh -c 'mount ${link(0)}-part1 /mnt && exec sleep 100' >/dev/null 2>&1 </dev/null & echo $! >/run/holder; sleep 1; ! grep -q ' /mnt ' /proc/mounts`,
    );
    const elsewhere = await run(
      diskPartitioned,
      { ...args, disk: { byId: `lab-${serial(0)}` } },
      { granted: [serial(0)] },
    );
    await shell("kill $(cat /run/holder); sleep 0.5");
    expect(elsewhere.problem?.code, told(elsewhere)).to.equal("DISK_IN_USE");
    expect(elsewhere.problem?.detail).to.contain("cannot be opened alone");
  });

  it("other partitions than wanted are refused, and added ones are added", async () => {
    const disk = { serial: serial(1) };
    const two = [
      { name: "a", size: "16M" },
      { name: "b", size: "16M" },
    ];
    expect((await run(diskPartitioned, { disk, partitions: two })).outcome).to.equal("changed");
    await shell(`mkfs.ext4 -q ${link(1)}-part1 && mount ${link(1)}-part1 /mnt && echo kept >/mnt/file`);
    const more = await run(diskPartitioned, { disk, partitions: [...two, { name: "c" }] });
    expect(more.outcome, told(more)).to.equal("changed");
    expect(await shell("cat /mnt/file; umount /mnt")).to.equal("kept");
    const other = await run(diskPartitioned, { disk, partitions: [{ name: "a", size: "32M" }, two[1] as object] });
    expect(other.problem?.code, told(other)).to.equal("DISK_PARTITIONS_DIFFER");
    await clean(1);
  });

  for (const [what, command] of Object.entries(holdings)) {
    it(`a disk that holds ${what} is refused and not touched, and wiped only when granted (F-18)`, async () => {
      await clean(1);
      await shell(`${command.replaceAll("DISK", link(1))}; udevadm settle`);
      const before = await sumOf(1);
      // What a grant has to say does not depend on what the disk holds.
      const wrong = what === "a filesystem" ? [[serial(1)], [`${serial(1)}:${"0".repeat(16)}`]] : [];
      for (const granted of [[], ...wrong]) {
        const refused = await run(diskPartitioned, { disk: { serial: serial(1) }, partitions }, { granted });
        expect(refused.problem?.code, told(refused)).to.equal("DISK_HAS_DATA");
      }
      const planned = await run(diskPartitioned, { disk: { serial: serial(1) }, partitions }, { dryRun: true });
      expect(planned.problem?.code).to.equal("DISK_HAS_DATA");
      expect(planned.problem?.detail?.split("\n")[0]).to.match(/ {2}64 MiB {2}.*serial n1-disk1/);
      const grant = grantOf(planned);
      const foreseen = await run(
        diskPartitioned,
        { disk: { serial: serial(1) }, partitions },
        { dryRun: true, granted: [grant] },
      );
      expect(foreseen.notes.join()).to.match(/serial n1-disk1.*: wiped, as granted, with \/dev\//);
      expect(await sumOf(1)).to.equal(before);
      expect(grant).to.match(new RegExp(`^${serial(1)}:`));
      // What lies in a partition that was just made is of the past, as its mark says.
      await shell("mkdir -p /root/state");
      const options = { granted: [grant], stateDir: "/root/state" };
      const granted = await run(diskPartitioned, { disk: { serial: serial(1) }, partitions }, options);
      expect(granted.outcome, told(granted)).to.equal("changed");
      const made = await run(filesystemFormatted, { disk: { serial: serial(1) }, partition: "data" }, options);
      expect(await shell("ls /root/state/fresh; rm -r /root/state")).to.equal("");
      expect(made.outcome, told(made)).to.equal("changed");
      await clean(1);
    });
  }

  it("a disk is held alone while its table is written (ADR 0006)", async () => {
    await clean(1);
    const args = { disk: { serial: serial(1) }, partitions };
    // What somebody else finds that wants it while sgdisk writes.
    const look = `/usr/sbin/wipefs -a -n ${link(1)} >/dev/null 2>&1; echo $? >>/run/others`;
    const tool = `printf '%s\\n' '#!/bin/sh' '${look}' 'exec /usr/sbin/sgdisk.real "$@"' >/usr/sbin/sgdisk`;
    await shell(`mv /usr/sbin/sgdisk /usr/sbin/sgdisk.real && ${tool} && chmod +x /usr/sbin/sgdisk`);
    try {
      const blank = await run(diskPartitioned, args);
      expect(blank.outcome, told(blank)).to.equal("changed");
      expect(await shell("cat /run/others")).to.equal("1");
      await clean(1);
      await shell(`rm /run/others; mkfs.ext4 -q -F ${link(1)}`);
      const wiped = await run(diskPartitioned, args, { granted: [grantOf(await run(diskPartitioned, args))] });
      expect(wiped.outcome, told(wiped)).to.equal("changed");
      expect(await shell("cat /run/others")).to.equal("1\n1");
    } finally {
      await shell("mv /usr/sbin/sgdisk.real /usr/sbin/sgdisk");
    }
    await clean(1);
  });

  it("bytes of the past in a partition that was just made are no refusal, a later signature is (ADR 0006)", async () => {
    await clean(1);
    // Beyond what disk.partitioned looks at: the first and last MiBs of the disk.
    await shell(`mkdir -p /root/state && dd if=/dev/urandom of=${link(1)} bs=1M count=4 seek=20 conv=notrunc,fsync`);
    const disk = { serial: serial(1) };
    const options = { stateDir: "/root/state" };
    const two = [{ name: "a", size: "18M" }, { name: "b" }];
    const partitioned = await run(diskPartitioned, { disk, partitions: two }, options);
    expect(partitioned.outcome, told(partitioned)).to.equal("changed");
    expect((await shell("ls /root/state/fresh")).split("\n")).to.have.length(2);
    const formatted = await run(filesystemFormatted, { disk, partition: "b" }, options);
    expect(formatted.outcome, told(formatted)).to.equal("changed");
    expect((await shell("ls /root/state/fresh")).split("\n")).to.have.length(1);
    for (const command of [`sgdisk -n 1:0:0 ${link(1)}-part1`, `mkswap ${link(1)}-part1`]) {
      await shell(`${command}; udevadm settle`);
      const refused = await run(filesystemFormatted, { disk, partition: "a" }, options);
      expect(refused.problem?.code, told(refused)).to.equal("FILESYSTEM_DIFFERS");
    }
    await shell("rm -r /root/state");
    await clean(1);
  });

  it("a partition that holds something else is refused, and made anew only when granted (F-18)", async () => {
    const disk = { serial: serial(2) };
    await run(diskPartitioned, { disk, partitions });
    const args = { disk, partition: "data", fstype: "xfs" };
    await shell(`mkfs.ext4 -q ${link(2)}-part1`);
    const refused = await run(filesystemFormatted, args);
    expect(refused.problem?.code, told(refused)).to.equal("FILESYSTEM_DIFFERS");
    const granted = await run(filesystemFormatted, args, { granted: [grantOf(refused)] });
    expect(granted.outcome, told(granted)).to.equal("changed");
    expect((await run(filesystemFormatted, args)).outcome).to.equal("ok");
    expect(await shell(`blkid -p -o value -s TYPE ${link(2)}-part1`)).to.equal("xfs");
    // What was granted is gone: the grant is worth nothing for what came after it.
    const boot = { ...args, fstype: "vfat", label: "BOOT" };
    const spent = await run(filesystemFormatted, boot, { granted: [grantOf(refused)] });
    expect(spent.problem?.code, told(spent)).to.equal("FILESYSTEM_DIFFERS");
    const vfat = await run(filesystemFormatted, boot, { granted: [grantOf(spent)] });
    expect(vfat.outcome, told(vfat)).to.equal("changed");
  });
});
