import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { grantOf, runGranted } from "#support/grants.ts";
import { pluggedIn } from "#support/plugged.ts";
import { SharedLine } from "#support/shared-line.ts";

const serial = "v1-disk0";
const disk = `/dev/disk/by-id/virtio-${serial}`;
const other = "/dev/disk/by-id/virtio-v1-disk1";
const wanted = { disk: { serial }, partitions: [{ name: "data", size: "16M" }] };

interface Occupied {
  /** How it comes to be so; D is the disk, E another one. */
  readonly make: string;
  /** What the refusal has to name. */
  readonly told: RegExp;
  /** How it ends; what lies on the disk is wiped behind it. */
  readonly end?: string;
}

/** What holds a disk now: no grant overrides it. */
const inUse: Readonly<Record<string, Occupied>> = {
  "a mounted filesystem": { make: "mkfs.ext4 -qF D && mount -r D /mnt", told: /mounted at \/mnt/, end: "umount /mnt" },
  "a mounted partition": {
    make: "sgdisk -n1:0:0 D && udevadm settle && mkfs.xfs -qf -d size=16m D-part1 2>/dev/null || mkfs.ext4 -qF D-part1; mount -r D-part1 /mnt",
    told: /mounted at \/mnt/,
    end: "umount /mnt",
  },
  "a partition that another namespace alone has mounted": {
    make: "sgdisk -n1:0:0 D && udevadm settle && mkfs.ext4 -qF D-part1; setsid unshare -m sh -c 'mount -r D-part1 /mnt; exec sleep 1000' >/dev/null 2>&1 & echo $! >/run/holder; until grep -qs ' /mnt ' /proc/$(cat /run/holder)/mounts; do sleep 0.1; done",
    told: /cannot be opened alone/,
    end: "kill $(cat /run/holder); while [ -d /proc/$(cat /run/holder) ]; do sleep 0.1; done",
  },
  swap: { make: "mkswap -q D && swapon D", told: /is swap/, end: "swapoff D" },
  "swap on a partition": {
    make: "sgdisk -n1:0:0 D && udevadm settle && mkswap -q D-part1 && swapon D-part1",
    told: /is swap/,
    end: "swapoff D-part1",
  },
  "a physical volume with an active volume": {
    make: "vgcreate -qy vg_x D && lvcreate -qy -n lv -L 8M vg_x",
    told: /held by dm-\d+ vg_x-lv/,
    end: "vgremove -qfy vg_x; pvremove -qfy D",
  },
  "a physical volume of a partition, its volume mounted": {
    make: "sgdisk -n1:0:0 -t1:8e00 D && udevadm settle && vgcreate -qy vg_x D-part1 && lvcreate -qy -n lv -L 32M vg_x && mkfs.ext4 -qF /dev/vg_x/lv && mount -r /dev/vg_x/lv /mnt",
    told: /held by dm-\d+ vg_x-lv/,
    end: "umount /mnt; vgremove -qfy vg_x; pvremove -qfy D-part1",
  },
  "an open LUKS container": {
    make: "echo secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 D - && echo secret | cryptsetup open --key-file - D crypt_x",
    told: /held by dm-\d+ crypt_x/,
    end: "cryptsetup close crypt_x",
  },
  "plain encryption that is open": {
    make: "dd if=/dev/zero of=/run/key bs=64 count=1 status=none; cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 512 --key-file /run/key D plain_x",
    told: /held by dm-\d+ plain_x/,
    end: "cryptsetup close plain_x",
  },
  "a running mirror's half": {
    make: "mdadm -Cq /dev/md/x --run -l1 -n2 --assume-clean D E",
    told: /held by md\d+/,
    end: "mdadm -Sq /dev/md/x; mdadm --zero-superblock D E",
  },
  "a loop device upon it": {
    make: "losetup /dev/loop0 D && mkfs.ext4 -qF /dev/loop0 && mount -r /dev/loop0 /mnt",
    told: /is the backing of loop0/,
    end: "umount /mnt; losetup -d /dev/loop0",
  },
  "a device-mapper device upon it": {
    make: "echo 0 2048 linear D 0 | dmsetup create dm_x",
    told: /held by dm-\d+ dm_x/,
    end: "dmsetup remove dm_x",
  },
  "a process that has a partition open, as a guest its disk": {
    make: "sgdisk -n1:0:0 D && udevadm settle; setsid sleep 1000 <D-part1 >/dev/null 2>&1 & echo $! >/run/holder; sleep 0.5",
    told: /is open in process \d+ \(sleep\)/,
    end: "kill $(cat /run/holder)",
  },
  "a lock against writing": { make: "blockdev --setro D", told: /is read-only/, end: "blockdev --setrw D" },
};

/** What lies on a disk that nobody uses: wiped only by a grant in its name. */
const holding: Readonly<Record<string, Occupied>> = {
  "an ext4 filesystem without a partition": { make: "mkfs.ext4 -qF D", told: /holds ext4/ },
  "a vfat filesystem without a partition": { make: "mkfs.vfat -I D >/dev/null", told: /holds vfat/ },
  "an empty GPT": { make: "sgdisk -o D", told: /holds gpt/ },
  "a GPT with a partition and nothing in it": { make: "sgdisk -n1:0:0 D", told: /holds gpt/ },
  "an MBR table": { make: "echo ',,83' | sfdisk -q D", told: /holds dos/ },
  "a hybrid MBR": { make: "sgdisk -n1:0:+8M -n2:0:0 D && sgdisk -h 1:EE D", told: /holds (?:gpt|dos|PMBR)/ },
  "a GPT of which only the backup is left": {
    make: "sgdisk -n1:0:0 D && dd if=/dev/zero of=D bs=512 count=34 conv=notrunc,fsync status=none",
    told: /holds gpt/,
  },
  "a filesystem in a partition": {
    make: "sgdisk -n1:0:0 D && udevadm settle && mkfs.ext4 -qF D-part1",
    told: /part1|vd.1 holds ext4/,
  },
  "a filesystem where a table was wiped": {
    make: "sgdisk -n1:0:0 D && udevadm settle && mkfs.ext4 -qF D-part1 && wipefs -aq D && blockdev --rereadpt D",
    told: /holds bytes of unknown meaning/,
  },
  "a closed LUKS container": {
    make: "echo secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 D -",
    told: /holds crypto_LUKS/,
  },
  "encrypted data without a header": {
    make: "dd if=/dev/urandom of=D bs=1M count=8 conv=notrunc,fsync status=none",
    told: /holds bytes of unknown meaning/,
  },
  "a physical volume of no group": { make: "pvcreate -qy D", told: /holds LVM2_member/, end: "pvremove -qfy D" },
  "a physical volume of a group at rest": {
    make: "vgcreate -qy vg_x D && lvcreate -qy -n lv -L 8M vg_x && vgchange -qan vg_x",
    told: /holds LVM2_member/,
    end: "vgremove -qfy vg_x; pvremove -qfy D",
  },
  "half a mirror that is stopped": {
    make: "mdadm -Cq /dev/md/x --run -l1 -n2 --assume-clean D E && mdadm -Sq /dev/md/x",
    told: /holds linux_raid_member/,
    end: "mdadm --zero-superblock D E",
  },
  "half a mirror of the old kind, known by its end": {
    make: "mdadm -Cq /dev/md/x --run -l1 -n2 -e 0.90 --assume-clean D E && mdadm -Sq /dev/md/x",
    told: /holds linux_raid_member/,
    end: "mdadm --zero-superblock D E",
  },
  "a member of a ZFS pool": {
    // Four uberblocks of a label are what libblkid asks for (zfs_label, 128 KiB into it; magic 0x00bab10c).
    make: "for i in 0 1 2 3 4 5; do printf '\\014\\261\\272\\0\\0\\0\\0\\0' | dd of=D bs=1 seek=$((131072 + i * 1024)) conv=notrunc status=none; done; sync",
    told: /holds zfs_member|bytes of unknown meaning/,
  },
  "a swap area that is not used": { make: "mkswap -q D", told: /holds swap/ },
  "an ISO image": {
    make: "printf '\\001CD001\\001' | dd of=D bs=1 seek=32768 conv=notrunc status=none; printf '\\377CD001\\001' | dd of=D bs=1 seek=34816 conv=notrunc status=none; sync",
    told: /holds (?:iso9660|bytes)/,
  },
  "a few bytes in its last MiB": {
    make: "echo here | dd of=D bs=1 seek=$(($(blockdev --getsize64 D) - 4096)) conv=notrunc,fsync status=none",
    told: /holds bytes of unknown meaning in the last MiB/,
  },
};

describe("a disk that is somebody else's (F-18)", function () {
  this.timeout(900_000);
  let lab: Lab;
  let v1: LabNode;
  let line: SharedLine;

  before(async () => {
    lab = await openLab({ name: "vmoccupied" });
    await lab.down();
    [v1] = (await lab.up([{ name: "v1", kind: "vm", disks: ["64M", "64M"] }])) as [LabNode];
    line = new SharedLine(v1);
    // The emulated processor makes what it has to; what is made is looked at from outside.
    line.shell("echo 'AUTO -all' >>/etc/mdadm/mdadm.conf; modprobe -a dm-crypt md-mod raid1 loop");
  });
  after(async () => {
    line.close();
    await lab.down();
  });

  const inWords = (command: string): string => command.replaceAll(/\bD\b/g, disk).replaceAll(/\bE\b/g, other);
  const sum = async (index = 0): Promise<string> => {
    const hash = createHash("sha256");
    await pipeline(createReadStream(v1.disks[index]?.image ?? ""), hash);
    return hash.digest("hex");
  };
  const wipe = `for d in ${disk} ${other}; do blkdiscard -f $d; blockdev --rereadpt $d; done; udevadm settle`;

  for (const [what, { make, told, end }] of Object.entries({ ...inUse, ...holding }))
    it(`is refused and untouched: ${what}`, async () => {
      const isUsed = Object.hasOwn(inUse, what);
      line.shell(`${inWords(make)}; s=$?; udevadm settle; sync; exit $s`);
      try {
        const before = await sum();
        // No grant overrides use; one for a disk as it was, or for another disk, overrides nothing.
        const step = await line.run(diskPartitioned, wanted, { granted: [serial, `v1-disk1:${"0".repeat(16)}`] });
        expect(step.problem?.code, JSON.stringify(step)).to.equal(isUsed ? "DISK_IN_USE" : "DISK_HAS_DATA");
        expect(`${step.problem?.message}\n${step.problem?.detail}`).to.match(told);
        line.shell("sync");
        expect(await sum()).to.equal(before);
      } finally {
        line.shell(`${end === undefined ? "" : `${inWords(end)};`} ${wipe}`);
      }
    });

  it("is refused and untouched: the disk that the system runs from", async () => {
    const step = await line.run(diskPartitioned, { ...wanted, disk: { serial: "root" } }, { granted: ["root"] });
    expect(step.problem?.code, JSON.stringify(step)).to.equal("DISK_IN_USE");
    expect(step.problem?.detail).to.contain("is mounted at /");
  });

  it("is refused before anything is wiped: one that is too small for what is wanted", async () => {
    line.shell(`mkfs.ext4 -qF ${disk} && sync`);
    const before = await sum();
    const large = {
      ...wanted,
      partitions: [
        { name: "a", size: "40M" },
        { name: "b", size: "40M" },
      ],
    };
    const step = await line.run(diskPartitioned, large, { granted: [serial] });
    expect(step.problem?.code, JSON.stringify(step)).to.equal("DISK_TOO_SMALL");
    line.shell("sync");
    expect(await sum()).to.equal(before);
    line.shell(wipe);
  });

  it("is not looked for under another name when it is gone", async () => {
    await v1.unplug(0);
    const step = await line.run(diskPartitioned, wanted, { granted: [serial] });
    expect(step.problem?.code, JSON.stringify(step)).to.equal("DISK_NOT_FOUND");
    expect(step.problem?.detail).to.contain("v1-disk1");
    await v1.plug(0);
    line.shell(pluggedIn(disk));
  });

  it("is refused and untouched: two with one serial number, as of one disk on two ways", async () => {
    line.shell(`mkfs.ext4 -qF ${disk}; sync`);
    await v1.unplug(1);
    await v1.plug(1, serial);
    line.shell('udevadm settle; until [ "$(lsblk -dno SERIAL | grep -cx v1-disk0)" = 2 ]; do sleep 0.1; done');
    try {
      const before = await Promise.all([sum(0), sum(1)]);
      const plan = await line.run(diskPartitioned, wanted, { dryRun: true });
      for (const step of [plan, await line.run(diskPartitioned, wanted, { granted: [serial] })]) {
        expect(step.problem?.code, JSON.stringify(step)).to.equal("DISK_AMBIGUOUS");
        expect(step.problem?.detail?.match(/serial v1-disk0/g)).to.have.length(2);
      }
      line.shell("sync");
      expect(await Promise.all([sum(0), sum(1)])).to.deep.equal(before);
    } finally {
      await v1.unplug(1);
      await v1.plug(1);
      line.shell(`${pluggedIn(other)} && ${wipe}`);
    }
  });

  it("is wiped by a grant, and no other, when its name has changed since the plan", async () => {
    line.shell(`mkfs.ext4 -qF ${disk}; mkfs.ext4 -qF ${other}; sync`);
    const named = line.shell(`readlink -f ${disk} ${other}`).split("\n");
    const plan = await line.run(diskPartitioned, wanted, { dryRun: true });
    expect(plan.problem?.message).to.contain(`disk ${named[0] ?? ""} `);
    for (const index of [0, 1]) await v1.unplug(index);
    for (const index of [1, 0]) await v1.plug(index);
    expect(line.shell(`${pluggedIn(disk, other)} && readlink -f ${disk} ${other}`).split("\n")).to.deep.equal(
      named.toReversed(),
    );
    const before = await sum(1);
    const step = await line.run(diskPartitioned, wanted, { granted: [grantOf(plan)] });
    expect(step.outcome, JSON.stringify(step)).to.equal("changed");
    line.shell("sync");
    expect(await sum(1)).to.equal(before);
    line.shell(wipe);
  });

  it("is taken when it is blank, or granted by its own name", async () => {
    expect((await line.run(diskPartitioned, wanted)).outcome).to.equal("changed");
    line.shell(`${wipe}; mkfs.ext4 -qF ${disk}; sync`);
    const step = await runGranted((granted) => line.run(diskPartitioned, wanted, { granted }));
    expect(step.outcome, JSON.stringify(step)).to.equal("changed");
    expect((await line.run(diskPartitioned, wanted)).outcome).to.equal("ok");
  });
});
