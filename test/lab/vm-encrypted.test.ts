import { constants, generateKeyPairSync, privateDecrypt } from "node:crypto";
import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { filesystemFormatted } from "#engine/modules/filesystem-formatted.ts";
import { luksEscrowed } from "#engine/modules/luks-escrowed.ts";
import { luksOpened } from "#engine/modules/luks-opened.ts";
import { lvmLogicalVolume } from "#engine/modules/lvm-logical-volume.ts";
import { lvmPhysicalVolume } from "#engine/modules/lvm-physical-volume.ts";
import { lvmVolumeGroup } from "#engine/modules/lvm-volume-group.ts";
import { mdArray } from "#engine/modules/md-array.ts";
import { mountMounted } from "#engine/modules/mount-mounted.ts";
import { diskSum } from "#support/disk-sum.ts";
import type { Steps } from "#support/shared-line.ts";
import type { StepRun } from "#support/steps.ts";
import { LabMachine } from "#support/lab-machine.ts";

const disk = (number: number) => ({ serial: `v1-disk${number}` });
const link = (number: number): string => `/dev/disk/by-id/virtio-v1-disk${number}`;
const { publicKey, privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 3072,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});

describe("encrypted and mirrored disks of a machine with a kernel of its own", function () {
  this.timeout(1_200_000);
  const machine = new LabMachine({ kind: "vm", disks: ["200M", "200M", "200M", "200M"] }, "vmluks");
  const asText = (step: StepRun): string => JSON.stringify(step, undefined, 1);
  const shell = (command: string): string => machine.line.shell(command);

  const data = { disk: disk(0), partition: "data" };
  const plain: Steps = [
    [diskPartitioned, { disk: disk(0), partitions: [{ name: "data", type: "luks" }] }],
    [luksOpened, data],
    [filesystemFormatted, { ...data, encrypted: true, label: "secret" }],
    [mountMounted, { path: "/srv/secret", source: { ...data, encrypted: true }, fstype: "ext4" }],
  ];
  const mirror = (...numbers: readonly number[]) => ({
    name: "pair",
    disks: numbers.map(disk),
    partition: "raid",
  });
  const onMirror = { array: "pair", encrypted: true };
  const volume = { vg: "vg_pair", lv: "data" };
  const mirrored: Steps = [
    ...[1, 2].map(
      (number) => [diskPartitioned, { disk: disk(number), partitions: [{ name: "raid", type: "raid" }] }] as const,
    ),
    [mdArray, mirror(1, 2)],
    [luksOpened, { array: "pair" }],
    [filesystemFormatted, onMirror],
    [mountMounted, { path: "/srv/pair", source: onMirror, fstype: "ext4" }],
  ];
  const escrow: Steps = [[luksEscrowed, { publicKey }]];

  it("a blank disk becomes a LUKS2 container with a mounted filesystem, and the second run changes nothing", async () => {
    await machine.line.expectAll(plain, "changed");
    await machine.line.expectAll(plain, "ok");
    expect(shell("findmnt -no FSTYPE /srv/secret")).to.equal("ext4");
    expect(shell(`lsblk -nlo TYPE ${link(0)}`).split(/\s+/)).to.have.members(["disk", "part", "crypt"]);
    expect(shell(`cryptsetup luksDump ${link(0)}-part1`)).to.match(/^Version:\s+2$/m);
    expect(shell("stat -c %a:%U /etc/kcore/luks /etc/kcore/luks/*.key").split("\n")).to.deep.equal([
      "700:root",
      "400:root",
    ]);
  });

  it("two blank disks become a mirror, with a filesystem in a container on it", async () => {
    await machine.line.expectAll(mirrored, "changed");
    await machine.line.expectAll(mirrored, "ok");
    expect(shell("cat /proc/mdstat")).to.match(/active raid1 vd\w+\[[01]\] vd\w+\[[01]\]/);
    expect(shell("findmnt -no FSTYPE /srv/pair")).to.equal("ext4");
  });

  it("each container gets a recovery key that opens it, readable for the private key's holder only", async () => {
    const first = await machine.line.run(luksEscrowed, { publicKey });
    expect(first.outcome, asText(first)).to.equal("changed");
    const second = await machine.line.run(luksEscrowed, { publicKey });
    expect(second.outcome, asText(second)).to.equal("ok");
    const words = (second.have["sealed"] ?? "").trim().split(" ");
    expect(words.map((word) => word.split(":")[2])).to.have.members(["v1-disk0", "v1-disk1,v1-disk2"]);
    for (const word of words) {
      const [uuid = "", sealed = ""] = word.split(":");
      const recovery = privateDecrypt(
        { key: privateKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" },
        Buffer.from(sealed, "hex"),
      ).toString();
      expect(recovery).to.match(/^(?:[cbdefghijklnrtuv]{8}-){7}[cbdefghijklnrtuv]{8}$/);
      const device = `$(blkid -U ${uuid})`;
      shell(`printf %s ${recovery} | cryptsetup open --test-passphrase --key-file - ${device}`);
      expect(shell(`systemd-cryptenroll ${device}`)).to.match(/31\s+recovery/);
      expect(shell(`cat /etc/kcore/luks/${uuid}.recovery`)).to.not.contain(recovery);
    }
  });

  it("a recovery key for another private key replaces the first, also after a run that died in between", async () => {
    const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ type: "spki", format: "pem" });
    const slots = (): number => Number(shell(`cryptsetup luksDump ${link(0)}-part1 | grep -c '^  [0-9]*: luks2'`));
    expect(slots()).to.equal(2);
    shell("cd /etc/kcore/luks && for file in *.recovery; do mv $file ${file%.recovery}.new; done");
    await machine.line.expectAll([[luksEscrowed, { publicKey: other }]], "changed");
    expect(slots()).to.equal(2);
    await machine.line.expectAll(escrow, "changed");
    await machine.line.expectAll(escrow, "ok");
  });

  it("a failed member is added again, and so is one on a new disk", async () => {
    shell("echo kept >/srv/pair/file && sync");
    shell(
      "mdadm -q --manage /dev/md/pair --fail $(readlink -f " +
        `${link(2)}-part1) && mdadm -q /dev/md/pair --remove failed`,
    );
    // Each changed step has probed again: all is in order.
    await machine.line.expectAll([[mdArray, mirror(1, 2)]], "changed");
    shell(`mdadm --wait /dev/md/pair; mdadm -q --manage /dev/md/pair --fail $(readlink -f ${link(2)}-part1)`);
    const faulty = await machine.line.run(mdArray, mirror(1, 2));
    expect(faulty.problem?.message, asText(faulty)).to.contain("faulty: mdadm --remove takes it out");
    shell("mdadm -q /dev/md/pair --remove failed");
    await machine.line.expectAll([[mdArray, mirror(1, 2)]], "changed");
    const third: Steps = [[mdArray, mirror(1, 2, 3)]];
    await machine.line.expectAll(
      [[diskPartitioned, { disk: disk(3), partitions: [{ name: "raid", type: "raid" }] }]],
      "changed",
    );
    const reshaped = await machine.line.run(...(third[0] as Steps[number]));
    expect(reshaped.problem?.code, asText(reshaped)).to.equal("ARRAY_DIFFERS");
    shell("mdadm --wait /dev/md/pair || true");
    shell(
      `mdadm -q --manage /dev/md/pair --fail $(readlink -f ${link(2)}-part1) && mdadm -q /dev/md/pair --remove failed`,
    );
    await machine.line.expectAll([[mdArray, mirror(1, 3)]], "changed");
    shell("mdadm --wait /dev/md/pair || true");
    expect(shell("cat /proc/mdstat")).to.contain("[UU]");
    // A disk that had contents is used when it is blank, or by a grant.
    shell(`wipefs -qa ${link(2)}-part1`);
    shell(
      `mdadm -q --manage /dev/md/pair --fail $(readlink -f ${link(3)}-part1) && mdadm -q /dev/md/pair --remove failed && wipefs -qa ${link(3)}-part1`,
    );
    const held = await machine.line.run(mdArray, mirror(1, 2));
    expect(held.problem?.code, asText(held)).to.equal("FILESYSTEM_DIFFERS");
    shell(`blkdiscard -z ${link(2)}-part1; blkdiscard -z ${link(3)}-part1`);
    await machine.line.expectAll([[mdArray, mirror(1, 2)]], "changed");
    shell("mdadm --wait /dev/md/pair || true");
  });

  it("a volume group is made in a container", async () => {
    const at = { disk: disk(3), partition: "raid" };
    const steps: Steps = [
      [luksOpened, at],
      [lvmPhysicalVolume, { ...at, encrypted: true }],
      [lvmVolumeGroup, { name: "vg_pair", disks: [disk(3)], partition: "raid", encrypted: true }],
      [lvmLogicalVolume, { vg: "vg_pair", name: "data", size: "40M" }],
    ];
    await machine.line.expectAll(steps, "changed");
    await machine.line.expectAll(steps, "ok");
  });

  it("containers, array, group and mounts are back after a power cut just after their creation, and a run changes nothing", async () => {
    // The power cut loses all writes that the step did not sync.
    shell("echo kept >/srv/secret/file && sync && mount -o remount,commit=300 /");
    await machine.line.expectAll([[filesystemFormatted, volume]], "changed");
    shell("mount /dev/vg_pair/data /mnt && echo dear >/mnt/file && sync -f /mnt/file");
    machine.line.drop();
    await machine.node.powerCut();
    await machine.node.start();
    expect(shell("cat /srv/secret/file /srv/pair/file")).to.equal("kept\nkept");
    await machine.line.expectAll([...plain, ...mirrored, [filesystemFormatted, volume]], "ok");
    expect(shell("mount /dev/vg_pair/data /mnt && cat /mnt/file && umount /mnt")).to.equal("dear");
  });

  it("no TPM is used where there is none, and the key file stays", async () => {
    const refused = await machine.line.run(luksOpened, { ...data, unlock: "tpm2" });
    expect(refused.problem?.code, asText(refused)).to.equal("TPM_MISSING");
    await machine.line.expectAll(plain.slice(1, 2), "ok");
  });

  it("a container whose key file is gone, and one that kcore did not make, are refused and unchanged", async () => {
    const key = shell(`ls /etc/kcore/luks/$(blkid -o value -s UUID ${link(0)}-part1).key`);
    shell(`mv ${key} /root/key`);
    const lost = await machine.line.run(luksOpened, data);
    expect(lost.problem?.code, asText(lost)).to.equal("LUKS_KEY_MISSING");
    shell(`head -c 64 /dev/urandom >${key}`);
    const wrong = await machine.line.run(luksOpened, data);
    expect(wrong.problem?.code, asText(wrong)).to.equal("LUKS_KEY_MISSING");
    shell(`mv /root/key ${key} && chmod 400 ${key}`);
    shell("umount /srv/secret && cryptsetup close luks-$(basename " + key + " .key)");
    const closed = await machine.line.run(filesystemFormatted, { ...data, encrypted: true });
    expect(closed.problem?.code, asText(closed)).to.equal("LUKS_CLOSED");
    shell(
      `udevadm settle; printf other | cryptsetup luksFormat -q --uuid 0a0b0c0d-0000-4000-8000-000000000001 --key-file - --pbkdf pbkdf2 --pbkdf-force-iterations 1000 ${link(0)}-part1`,
    );
    shell("sync");
    const before = await diskSum(machine.node, 0);
    const foreign = await machine.line.run(luksOpened, data);
    expect(foreign.problem?.code, asText(foreign)).to.equal("FILESYSTEM_DIFFERS");
    const inArray = await machine.line.run(mdArray, { name: "other", disks: [disk(0), disk(1)], partition: "data" });
    expect(inArray.problem?.code, asText(inArray)).to.equal("PARTITION_NOT_FOUND");
    const used = await machine.line.run(mdArray, { name: "other", disks: [disk(1), disk(2)], partition: "raid" });
    expect(used.problem?.code, asText(used)).to.equal("DISK_IN_USE");
    shell("sync");
    expect(await diskSum(machine.node, 0)).to.equal(before);
  });
});
