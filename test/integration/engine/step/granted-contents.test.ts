import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { areaFunctions } from "#engine/step/fragments/areas.ts";
import { diskFunctions } from "#engine/step/fragments/disk.ts";
import { granted, isGranted, wipeGranted } from "#engine/step/fragments/granted.ts";
import { sh } from "#engine/step/sh.ts";
import { grantOf } from "#support/grants.ts";
import { masterBootRecord, openLoopDisk, type LoopDisk } from "#support/loop-disk.ts";
import { runStepOn, shells, stepOf, type StepRun } from "#support/steps.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const [KiB, MiB] = [1024, 1024 ** 2];

/** On a disk of this machine: what changes between the refusal that names a grant and the run that is given it. */
describe("a grant, and what the disk holds (F-18)", () => {
  let folder: TempDir;
  let disk: LoopDisk;
  before(async function () {
    folder = await makeTempDir("contents");
    const opened = openLoopDisk(folder.path, new Uint8Array());
    if (opened === undefined) this.skip();
    else disk = opened;
  });
  after(async () => {
    disk?.remove();
    await folder?.remove();
  });
  beforeEach(() => void execFileSync("blkdiscard", ["-fz", disk.device], { stdio: "ignore" }));

  const writeAt = (at: number, text: string): void =>
    void execFileSync("dd", [`of=${disk.device}`, "bs=512", `seek=${at / 512}`, "conv=notrunc,fsync", "status=none"], {
      input: text,
    });
  const ext4 = (): void => void execFileSync("mkfs.ext4", ["-qF", disk.device]);
  const gpt = (): void => void execFileSync("sgdisk", ["-n1:0:+8M", disk.device]);
  /** LUKS2 On-Disk Format, 3: as much of a header as libblkid wants to see. */
  const luks = (): void => {
    const header = Buffer.alloc(4 * KiB);
    header.write("LUKS\xba\xbe\0\x02", 0, "latin1");
    header.writeBigUInt64BE(BigInt(16 * KiB), 8);
    disk.write(header);
  };

  /** Each kind: a disk that holds it, and a change that leaves its signature as it is. */
  const kinds: Readonly<Record<string, readonly [make: () => void, change: () => void]>> = {
    "a file in an ext4": [ext4, () => void execFileSync("debugfs", ["-wR", "write /etc/hostname f", disk.device])],
    "an entry of a GPT": [gpt, () => void execFileSync("sgdisk", ["-c1:other", disk.device])],
    "the other copy of a GPT": [gpt, () => writeAt(disk.size - 17 * KiB, "entry")],
    "a key slot of a LUKS container": [luks, () => writeAt(12 * MiB, "key")],
    "what a LUKS container begins with": [luks, () => writeAt(16 * MiB + 512, "superblock")],
    "a superblock of XFS": [ext4, () => writeAt(0, "fdblocks")],
    "a superblock of btrfs": [ext4, () => writeAt(64 * KiB, "generation")],
    "metadata of LVM": [ext4, () => writeAt(8 * KiB, "seqno")],
    "a superblock of md 1.2": [ext4, () => writeAt(4 * KiB, "events")],
    "a superblock of md 1.0": [ext4, () => writeAt(disk.size - 8 * KiB, "events")],
    "a superblock of md 0.90": [ext4, () => writeAt(disk.size - 64 * KiB, "events")],
    "the first uberblocks of ZFS": [ext4, () => writeAt(128 * KiB, "txg")],
    "the last uberblocks of ZFS": [ext4, () => writeAt(disk.size - 128 * KiB, "txg")],
    "a checkpoint of F2FS": [ext4, () => writeAt(4 * MiB, "checkpoint")],
  };
  const look = (given: readonly string[] = []): Promise<StepRun> =>
    runStepOn("dash", stepOf(diskPartitioned, { disk: { byId: disk.byId }, partitions: [{ name: "data" }] }), {
      dryRun: true,
      granted: given,
    });
  const imageSum = (): string => createHash("sha256").update(readFileSync(disk.image)).digest("hex");

  for (const [what, [make, change]] of Object.entries(kinds))
    it(`M1: is worth nothing after a change of ${what}`, async () => {
      make();
      const before = await look();
      expect(before.problem?.code).to.equal("DISK_HAS_DATA");
      const grant = grantOf(before);
      change();
      const after = await look([grant]);
      expect([after.problem?.code, after.problem?.detail]).to.deep.equal(["DISK_HAS_DATA", before.problem?.detail]);
      expect(grantOf(after)).not.to.equal(grant);
    });

  it("M1: is worth nothing after a change in a partition that only the table names", async () => {
    disk.write(masterBootRecord([32, 16]));
    spawnSync("partx", ["-d", disk.device]);
    const grant = grantOf(await look());
    writeAt(32 * MiB + KiB, "superblock");
    expect((await look([grant])).problem?.code).to.equal("DISK_HAS_DATA");
  });

  for (const shell of shells) {
    it(`M1: is of the same contents in every shell, here ${shell}`, async () => {
      ext4();
      const name = disk.device.replace("/dev/", "");
      const probe = sh`${diskFunctions}
${areaFunctions}
fact sum "$(contents_sum ${name})"`;
      const [here, dash] = await Promise.all(
        [shell, "dash"].map((one) => runStepOn(one, { want: { sum: "" }, probe })),
      );
      expect(here?.have["sum"])
        .to.match(/^[0-9a-f]{64}$/)
        .and.equal(dash?.have["sum"]);
    });

    it(`M1: wipes nothing that was written to before the disk was held, on ${shell}`, async () => {
      ext4();
      const grant = grantOf(await look());
      const late = `case $* in *--lock=*) echo late | dd of=${disk.device} bs=1024 seek=9 conv=notrunc,fsync 2>/dev/null ;; esac`;
      const bin = { wipefs: `${late}; exec /usr/sbin/wipefs "$@"` };
      const name = disk.device.replace("/dev/", "");
      const format = sh`${diskFunctions}
device=${disk.device} disk=
${granted}
${isGranted}
found=$(contents_of ${name})
is_granted ${name} ${disk.byId} /none "$found" ${name} || :
${wipeGranted}
wipe_granted ${name} "$sum"`;
      const byFormat = await runStepOn(shell, { want: { x: "" }, probe: sh`:`, apply: format }, { bin });
      expect([byFormat.problem?.code, byFormat.problem?.message], JSON.stringify(byFormat)).to.deep.equal([
        "FILESYSTEM_DIFFERS",
        `${disk.device} was written to after its contents were compared with the grant`,
      ]);
      ext4();
      const again = grantOf(await look());
      expect(again).not.to.equal(grant);
      const step = stepOf(diskPartitioned, { disk: { byId: disk.byId }, partitions: [{ name: "data" }] });
      const run = await runStepOn(shell, step, { bin, granted: [again], stateDir: folder.path });
      expect(run.problem?.code, JSON.stringify(run)).to.equal("DISK_HAS_DATA");
      expect(
        spawnSync("blkid", ["-p", "-o", "value", "-s", "TYPE", disk.device], { encoding: "utf8" }).stdout,
      ).to.equal("ext4\n");
    });
  }

  it("M1: lets just what it names be wiped, while the disk is held", async () => {
    ext4();
    const before = imageSum();
    const grant = grantOf(await look());
    expect((await look([grant])).outcome).to.equal("would-change");
    expect(imageSum()).to.equal(before);
    const step = stepOf(diskPartitioned, { disk: { byId: disk.byId }, partitions: [{ name: "data" }] });
    const bin = { sgdisk: "exit 0", blockdev: "exit 0", udevadm: "exit 0", partx: "exit 1", sleep: "exit 0" };
    const run = await runStepOn("dash", step, { bin, granted: [grant], stateDir: folder.path });
    expect(run.notes.join("\n"), JSON.stringify(run)).to.contain("as granted");
    expect(spawnSync("blkid", ["-p", disk.device]).stdout.toString()).to.equal("");
  });
});
