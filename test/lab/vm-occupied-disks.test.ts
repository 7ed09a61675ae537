import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { diskSum } from "#support/disk-sum.ts";
import { grantOf } from "#support/grants.ts";
import { pluggedIn } from "#support/plugged.ts";
import { LabMachine } from "#support/lab-machine.ts";

const serial = "v1-disk0";
const disk = `/dev/disk/by-id/virtio-${serial}`;
const other = "/dev/disk/by-id/virtio-v1-disk1";
const wanted = { disk: { serial }, partitions: [{ name: "data", size: "16M" }] };

const luksFormat = "echo secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000";

/** Uses that need a kernel of their own, each on a partition of one disk: P is that partition, E another disk. disks.test.ts has the others. */
interface Occupied {
  readonly make: string;
  /** The refusal's words about the partition. */
  readonly says: RegExp;
  readonly end?: string;
  /** The partition's size in MiB; default 5. */
  readonly size?: number;
}

/** A user of a disk that no grant overrides. */
const inUse: readonly Occupied[] = [
  { make: "mkswap -q P && swapon P", says: /is swap/, end: "swapoff P" },
  {
    make: "vgcreate -qy vg_x P && lvcreate -qy -n lv -L 4M vg_x && mkfs.ext4 -qF /dev/vg_x/lv && mount -r /dev/vg_x/lv /mnt",
    says: /is held by dm-\d+ vg_x-lv/,
    end: "umount /mnt && vgremove -qfy vg_x",
  },
  {
    make: `${luksFormat} P - && echo secret | cryptsetup open --key-file - P crypt_x`,
    says: /is held by dm-\d+ crypt_x/,
    end: "cryptsetup close crypt_x",
    size: 20,
  },
  {
    make: "dd if=/dev/zero of=/run/key bs=64 count=1 status=none && cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 512 --key-file /run/key P plain_x",
    says: /is held by dm-\d+ plain_x/,
    end: "cryptsetup close plain_x",
  },
  {
    make: "mdadm -Cq /dev/md/x --run -l1 -n2 --assume-clean P E",
    says: /is held by md\d+/,
    end: "mdadm -Sq /dev/md/x",
  },
  {
    make: "losetup /dev/loop0 P && mkfs.ext4 -qF /dev/loop0 && mount -r /dev/loop0 /media",
    says: /is the backing of loop0/,
    end: "umount /media && losetup -d /dev/loop0",
  },
  {
    make: "echo 0 2048 linear P 0 | dmsetup create dm_x",
    says: /is held by dm-\d+ dm_x/,
    end: "dmsetup remove dm_x",
  },
];

/** Contents of an unused disk, which only a grant in its name wipes. */
const holding: readonly Occupied[] = [
  { make: `${luksFormat} P -`, says: /holds crypto_LUKS/, size: 20 },
  {
    make: "vgcreate -qy vg_x P && lvcreate -qy -n lv -L 4M vg_x && vgchange -qan vg_x",
    says: /holds LVM2_member/,
    end: "vgremove -qfy vg_x",
  },
  {
    make: "mdadm -Cq /dev/md/x --run -l1 -n2 --assume-clean P E && mdadm -Sq /dev/md/x && mdadm --zero-superblock E",
    says: /holds linux_raid_member/,
  },
  {
    make: "mdadm -Cq /dev/md/y --run -l1 -n2 -e 0.90 --assume-clean P E && mdadm -Sq /dev/md/y",
    says: /holds linux_raid_member at byte 0x[0-9a-f]{5}/,
  },
];

describe("a disk that kcore did not make (F-18)", function () {
  this.timeout(1_200_000);
  const machine = new LabMachine({ kind: "vm", disks: ["64M", "64M"] }, "vmoccupied");
  before(() => {
    // The emulated processor only makes the contents; this machine examines them from outside.
    machine.line.shell("echo 'AUTO -all' >>/etc/mdadm/mdadm.conf; modprobe -a dm-crypt md-mod raid1 loop");
  });

  const sum = (index = 0): Promise<string> => diskSum(machine.node, index);
  const wipe = `for d in ${disk} ${other}; do blkdiscard -f $d; blockdev --rereadpt $d; done; udevadm settle`;

  for (const [what, all, code] of [
    ["used in each way", inUse, "DISK_IN_USE"],
    ["holding what nobody uses", holding, "DISK_HAS_DATA"],
  ] as const)
    it(`is refused unchanged with every reason when its partitions are ${what}`, async () => {
      const inWords = (text: string, index: number): string =>
        text.replaceAll(/\bP\b/g, `${disk}-part${index + 1}`).replaceAll(/\bE\b/g, other);
      const table = all.map(({ size = 5 }, index) => `-n${index + 1}:0:+${size}M`).join(" ");
      const makes = all.map(({ make }, index) => inWords(make, index)).join(" && udevadm settle && ");
      machine.line.shell(`sgdisk ${table} ${disk} && udevadm settle && ${makes} && udevadm settle && sync`);
      try {
        const before = await sum();
        // No grant overrides use. A grant for former contents or for another disk overrides nothing.
        const step = await machine.line.run(diskPartitioned, wanted, {
          granted: [serial, `v1-disk1:${"0".repeat(16)}`],
        });
        expect(step.problem?.code, JSON.stringify(step)).to.equal(code);
        const lines = step.problem?.detail?.split("\n") ?? [];
        for (const [index, { says }] of all.entries())
          expect(
            lines.filter((text) => new RegExp(`^/dev/vd.${index + 1} ${says.source}`).test(text)),
            step.problem?.detail,
          ).to.not.be.empty;
        machine.line.shell("sync");
        expect(await sum()).to.equal(before);
      } finally {
        const ends = all.flatMap(({ end }, index) => (end === undefined ? [] : [inWords(end, index)]));
        machine.line.shell(`${ends.join(" && ")} && ${wipe}`);
      }
    });

  it("is refused unchanged when the system runs from it", async () => {
    const step = await machine.line.run(
      diskPartitioned,
      { ...wanted, disk: { serial: "root" } },
      { granted: ["root"] },
    );
    expect(step.problem?.code, JSON.stringify(step)).to.equal("DISK_IN_USE");
    expect(step.problem?.detail).to.contain("is mounted at /");
  });

  it("that is missing is not looked for under another name", async () => {
    await machine.node.unplug(0);
    const step = await machine.line.run(diskPartitioned, wanted, { granted: [serial] });
    expect(step.problem?.code, JSON.stringify(step)).to.equal("DISK_NOT_FOUND");
    expect(step.problem?.detail).to.contain("v1-disk1");
    await machine.node.plug(0);
    machine.line.shell(pluggedIn(disk));
  });

  it("is refused unchanged when two have one serial number, as one disk with two paths has", async () => {
    machine.line.shell(`mkfs.ext4 -qF ${disk}; sync`);
    await machine.node.unplug(1);
    await machine.node.plug(1, serial);
    machine.line.shell('udevadm settle; until [ "$(lsblk -dno SERIAL | grep -cx v1-disk0)" = 2 ]; do sleep 0.1; done');
    try {
      const before = await Promise.all([sum(0), sum(1)]);
      const plan = await machine.line.run(diskPartitioned, wanted, { dryRun: true });
      for (const step of [plan, await machine.line.run(diskPartitioned, wanted, { granted: [serial] })]) {
        expect(step.problem?.code, JSON.stringify(step)).to.equal("DISK_AMBIGUOUS");
        expect(step.problem?.detail?.match(/serial v1-disk0/g)).to.have.length(2);
      }
      machine.line.shell("sync");
      expect(await Promise.all([sum(0), sum(1)])).to.deep.equal(before);
    } finally {
      await machine.node.unplug(1);
      await machine.node.plug(1);
      machine.line.shell(`${pluggedIn(other)} && ${wipe}`);
    }
  });

  it("is wiped by its grant, and no other disk is, when its name has changed since the plan", async () => {
    machine.line.shell(`mkfs.ext4 -qF ${disk}; mkfs.ext4 -qF ${other}; sync`);
    const named = machine.line.shell(`readlink -f ${disk} ${other}`).split("\n");
    const plan = await machine.line.run(diskPartitioned, wanted, { dryRun: true });
    expect(plan.problem?.message).to.contain(`disk ${named[0] ?? ""} `);
    for (const index of [0, 1]) await machine.node.unplug(index);
    for (const index of [1, 0]) await machine.node.plug(index);
    expect(machine.line.shell(`${pluggedIn(disk, other)} && readlink -f ${disk} ${other}`).split("\n")).to.deep.equal(
      named.toReversed(),
    );
    const before = await sum(1);
    const step = await machine.line.run(diskPartitioned, wanted, { granted: [grantOf(plan)] });
    expect(step.outcome, JSON.stringify(step)).to.equal("changed");
    machine.line.shell("sync");
    expect(await sum(1)).to.equal(before);
    machine.line.shell(wipe);
  });
});
