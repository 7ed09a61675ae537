import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { luksOpened } from "#engine/modules/luks-opened.ts";
import { zfsDataset } from "#engine/modules/zfs-dataset.ts";
import { zfsPool } from "#engine/modules/zfs-pool.ts";
import { partitionGuid } from "#engine/step/disk-names.ts";
import { poolGuid } from "#engine/step/zfs-names.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { diskSum } from "#support/disk-sum.ts";
import { grantOf, runGranted } from "#support/grants.ts";
import type { Steps } from "#support/shared-line.ts";
import type { StepRun, StepRunOptions } from "#support/steps.ts";
import { LabMachine } from "#support/lab-machine.ts";

const disk = (number: number) => ({ serial: `v1-disk${number}` });
const link = (number: number): string => `/dev/disk/by-id/virtio-v1-disk${number}`;
const partitioned = (number: number, type = "zfs"): Steps[number] => [
  diskPartitioned,
  { disk: disk(number), partitions: [{ name: "zfs", type }] },
];

describe("ZFS pools of a machine with a kernel of its own", function () {
  this.timeout(2_400_000);
  const machine = new LabMachine({ kind: "vm", zfs: true, disks: Array.from({ length: 6 }, () => "200M") }, "vmzfs");
  const asText = (step: StepRun): string => JSON.stringify(step, undefined, 1);
  const shell = (command: string): string => machine.line.shell(command);

  const mirror = (...numbers: readonly number[]): Steps[number] => [
    zfsPool,
    {
      layout: "mirror",
      disks: numbers.map(disk),
      partition: "zfs",
      properties: { autotrim: "on" },
      rootProperties: { compression: "lz4", atime: "off" },
    },
  ];
  const images: Steps[number] = [
    zfsDataset,
    { name: "guests/images", mountpoint: "/srv/images", properties: { recordsize: "1M", quota: "100M" } },
  ];
  const volume = (size: string): Steps[number] => [zfsDataset, { name: "vol0", size }];
  const locked: Steps = [
    partitioned(4, "luks"),
    [luksOpened, { disk: disk(4), partition: "zfs" }],
    [zfsPool, { name: "safe", disks: [disk(4)], partition: "zfs", encrypted: true, mountpoint: "/srv/safe" }],
  ];
  const states = (): string[] =>
    shell("zpool status -LP tank0 | sed -n 's/^\\t *\\(.*\\)/\\1/p'")
      .split("\n")
      .map((row) => row.split(/\s+/).slice(0, 2).join(" "));
  const inPool = (): string[] => states().filter((row) => row.startsWith("/dev/") && row.endsWith("ONLINE"));

  it("two blank disks become a mirror with a filesystem and a volume, and the second run changes nothing", async () => {
    const made: Steps = [partitioned(0), partitioned(1), mirror(0, 1), images, volume("40M")];
    await machine.line.expectAll(made, "changed");
    await machine.line.expectAll(made, "ok");
    expect(states()).to.include.members(["tank0 ONLINE", "mirror-0 ONLINE"]);
    expect(inPool()).to.have.length(2);
    expect(shell("zfs list -H -o name,mountpoint").split("\n")).to.deep.equal([
      "tank0\tnone",
      "tank0/guests\tnone",
      "tank0/guests/images\t/srv/images",
      "tank0/vol0\t-",
    ]);
    expect(shell("findmnt -no SOURCE,FSTYPE /srv/images")).to.match(/^tank0\/guests\/images\s+zfs$/);
    expect(shell("blockdev --getsize64 /dev/zvol/tank0/vol0")).to.equal(String(40 * 1024 ** 2));
    expect(shell("zpool get -H -o value autotrim tank0; zfs get -H -o value compression,atime tank0/vol0")).to.equal(
      "on\nlz4\n-",
    );
  });

  it("a volume grows and never shrinks, and impossible properties are refused", async () => {
    // Each changed step has probed again, here and below: all is in order.
    await machine.line.expectAll([volume("60M")], "changed");
    const refused: readonly (readonly [object, string])[] = [
      [{ name: "vol0", size: "20M" }, "ZFS_DATASET_DIFFERS"],
      [{ name: "vol0" }, "ZFS_DATASET_DIFFERS"],
      [{ name: "guests/images", properties: { utf8only: "on" } }, "ZFS_DATASET_DIFFERS"],
      [{ name: "vol1", size: "9G" }, "ZFS_NO_SPACE"],
      [{ pool: "none0", name: "a" }, "ZFS_POOL_MISSING"],
      [{ name: "a", mountpoint: "/run" }, "MOUNT_BUSY"],
    ];
    for (const [args, code] of refused) {
      const step = await machine.line.run(zfsDataset, args, { dryRun: true });
      expect(step.problem?.code, asText(step)).to.equal(code);
    }
  });

  it("a detached or lost member is added again, and so is a second mirror", async () => {
    const path = `/dev/disk/by-partuuid/${partitionGuid({ node: "n1" }, { disk: disk(1), partition: "zfs" })}`;
    shell(`zpool offline tank0 ${path}`);
    await machine.line.expectAll([mirror(0, 1)], "changed");
    shell(`zpool wait -t resilver tank0; zpool detach tank0 ${path}; blkdiscard -z ${link(1)}-part1`);
    await machine.line.expectAll([mirror(0, 1)], "changed");
    shell(`zpool wait -t resilver tank0; zpool offline -f tank0 ${path}`);
    const faulted = await machine.line.run(...mirror(0, 1));
    expect(faulted.problem?.message, asText(faulted)).to.contain("faulted: zpool clear takes it in again");
    shell(`zpool clear tank0; zpool offline tank0 ${path}; blkdiscard -z ${link(1)}-part1`);
    await machine.line.expectAll([partitioned(2), partitioned(3), mirror(0, 1, 2, 3)], "changed");
    shell("zpool wait -t resilver tank0");
    expect(states()).to.include.members(["mirror-0 ONLINE", "mirror-1 ONLINE"]);
    expect(inPool()).to.have.length(4);
    for (const args of [{ layout: "mirror", disks: [disk(0), disk(2)] }, { disks: [disk(0)] }]) {
      const step = await machine.line.run(
        zfsPool,
        { ...args, partition: "zfs", ashift: 9, properties: { autotrim: "off" } },
        { dryRun: true },
      );
      expect(step.problem?.code, asText(step)).to.equal("ZFS_POOL_DIFFERS");
    }
  });

  it("a pool is made in LUKS2 containers", async () => {
    await machine.line.expectAll(locked, "changed");
    expect(shell("findmnt -no FSTYPE /srv/safe")).to.equal("zfs");
    expect(shell(`lsblk -nlo TYPE ${link(4)}`).split(/\s+/)).to.have.members(["disk", "part", "crypt"]);
  });

  it("pools and datasets keep their files over a power cut and a reboot, and a run changes nothing", async () => {
    shell("echo kept >/srv/images/file && echo safe >/srv/safe/file && sync && zpool sync");
    const pools: Steps = [mirror(0, 1, 2, 3), ...locked.slice(2)];
    for (const [stop, steps] of [
      ["cut", pools],
      ["reboot", [images, volume("60M"), ...locked]],
    ] as const) {
      machine.line.drop();
      if (stop === "cut") {
        await machine.node.powerCut();
        await machine.node.start();
      } else {
        const boot = await machine.node.ready();
        await machine.node.exec("systemctl reboot");
        await machine.node.ready({ notBoot: boot });
      }
      expect(shell("cat /srv/images/file /srv/safe/file; zpool list -H -o name,health"), stop).to.equal(
        "kept\nsafe\nsafe\tONLINE\ntank0\tONLINE",
      );
      await machine.line.expectAll(steps, "ok");
    }
  });

  it("an exported pool of kcore is imported, also without its cache, and a destroyed one is not", async () => {
    shell("zpool export tank0; rm -f /etc/zfs/zpool.cache; zpool export safe");
    await machine.line.expectAll([mirror(0, 1, 2, 3), ...locked.slice(2)], "changed");
    expect(shell("cat /srv/images/file /srv/safe/file")).to.equal("kept\nsafe");
    shell("zpool destroy safe");
    const gone = await machine.line.run(...(locked[2] as Steps[number]));
    expect(gone.problem?.code, asText(gone)).to.equal("FILESYSTEM_DIFFERS");
    expect(
      (await machine.line.run(zfsPool, (locked[2] as Steps[number])[1], { granted: [grantOf(gone)] })).outcome,
    ).to.equal("changed");
    shell("zpool import -D 2>&1 | grep -q 'no pools available'");
  });

  it("a pool that a power cut left half-made is completed", async () => {
    const half = { name: "half", disks: [disk(5)], partition: "zfs" };
    await machine.line.expectAll([partitioned(5)], "changed");
    const mark = `/var/lib/kcore-test/fresh/${poolGuid({ node: "n1" }, "half")}.making`;
    // Labels of this name without kcore's comment: the first write of zpool create.
    shell(`zpool create half ${link(5)}-part1 && zpool export half && touch ${mark} && sync`);
    await machine.line.expectAll([[zfsPool, half]], "changed");
    // The power failed when only the mark was left to remove.
    shell(`zpool export half; touch ${mark}`);
    await machine.line.expectAll([[zfsPool, half]], "changed");
    shell(`test ! -e ${mark}; zpool destroy half; wipefs -qa ${link(5)}-part1`);
  });

  it("pools that kcore did not make are refused and unchanged (F-18)", async () => {
    shell(
      `blkdiscard -z ${link(5)}-part1; zpool create theirs ${link(5)}-part1 && echo theirs >/theirs/file && zpool sync`,
    );
    const theirs = { name: "theirs", disks: [disk(5)], partition: "zfs" };
    const wanted = { ...theirs, name: "tank1" };
    const granted = { granted: ["v1-disk5"] };
    const table = { disk: disk(5), partitions: [{ name: "zfs", size: "50M", type: "zfs" }] };
    const stillRefused = async (
      cases: readonly (readonly [ModuleDefinition, object, string, StepRunOptions?])[],
    ): Promise<void> => {
      const before = await diskSum(machine.node, 5);
      for (const [module, args, code, options] of cases) {
        const step = await machine.line.run(module, args, options);
        expect(step.problem?.code, `${module.name} ${asText(step)}`).to.equal(code);
      }
      shell("sync");
      expect(await diskSum(machine.node, 5)).to.equal(before);
    };
    // An imported pool writes now and then by itself, so that the test compares its data, not its disk.
    for (const [args, code, options] of [
      [wanted, "DISK_IN_USE", {}],
      [wanted, "DISK_IN_USE", granted],
      [theirs, "ZFS_POOL_TAKEN", granted],
    ] as const) {
      const step = await machine.line.run(zfsPool, args, options);
      expect(step.problem?.code, asText(step)).to.equal(code);
    }
    const used = await machine.line.run(diskPartitioned, table);
    expect(used.problem?.code, asText(used)).to.equal("DISK_IN_USE");
    expect(shell("cat /theirs/file; zpool export theirs; sync")).to.equal("theirs");
    await stillRefused([
      [zfsPool, wanted, "FILESYSTEM_DIFFERS"],
      [zfsPool, wanted, "FILESYSTEM_DIFFERS", { granted: ["v1-disk0"] }],
      [zfsPool, theirs, "FILESYSTEM_DIFFERS"],
      [diskPartitioned, table, "DISK_PARTITIONS_DIFFER"],
    ]);
    shell("zpool import theirs && test $(cat /theirs/file) = theirs && zpool export theirs");
    const taken = await runGranted((grants) => machine.line.run(zfsPool, wanted, { granted: grants }));
    expect(taken.outcome, asText(taken)).to.equal("changed");
  });
});
