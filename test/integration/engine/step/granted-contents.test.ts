import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import type { Step } from "#engine/step/define.ts";
import { diskGuid, partitionGuid } from "#engine/step/disk-names.ts";
import { areaFunctions } from "#engine/step/fragments/areas.ts";
import { diskFunctions } from "#engine/step/fragments/disk-functions.ts";
import { stepOfFormat } from "#engine/step/fragments/format.ts";
import { sh } from "#engine/step/sh.ts";
import { grantOf } from "#support/grants.ts";
import { masterBootRecord, useLoopDisk } from "#support/loop-disk.ts";
import { shellsOf } from "#support/shells.ts";
import { contextOf, runStepOn, stepOf, type StepRun } from "#support/steps.ts";

const [KiB, MiB] = [1024, 1024 ** 2];

/** Changes a loop disk between the refusal that names a grant and the run that has this grant. */
describe("a grant for a disk's exact contents (F-18)", () => {
  const disk = useLoopDisk("contents");
  beforeEach(() => void execFileSync("blkdiscard", ["-fz", disk().device], { stdio: "ignore" }));

  const writeAt = (at: number, text: string): void => {
    const words = [`of=${disk().device}`, "bs=512", `seek=${at / 512}`, "conv=notrunc,fsync", "status=none"];
    execFileSync("dd", words, { input: text });
  };
  const ext4 = (): void => void execFileSync("mkfs.ext4", ["-qF", disk().device]);
  const gpt = (): void => void execFileSync("sgdisk", ["-n1:0:+8M", disk().device]);
  /** LUKS2 On-Disk Format, 3: the part of a header that libblkid needs. */
  const luks = (): void => {
    const header = Buffer.alloc(4 * KiB);
    header.write("LUKS\xba\xbe\0\x02", 0, "latin1");
    header.writeBigUInt64BE(BigInt(16 * KiB), 8);
    disk().write(header);
  };

  /** Contents by kind: how to make them, and how to change the disk outside of the signature. */
  const contentKinds: Readonly<Record<string, readonly [make: () => void, change: () => void]>> = {
    "a file in an ext4": [ext4, () => void execFileSync("debugfs", ["-wR", "write /etc/hostname f", disk().device])],
    "an entry of a GPT": [gpt, () => void execFileSync("sgdisk", ["-c1:other", disk().device])],
    "the other copy of a GPT": [gpt, () => writeAt(disk().size - 17 * KiB, "entry")],
    "a key slot of a LUKS container": [luks, () => writeAt(12 * MiB, "key")],
    "the first data of a LUKS container": [luks, () => writeAt(16 * MiB + 512, "superblock")],
    "a superblock of XFS": [ext4, () => writeAt(0, "fdblocks")],
    "a superblock of btrfs": [ext4, () => writeAt(64 * KiB, "generation")],
    "metadata of LVM": [ext4, () => writeAt(8 * KiB, "seqno")],
    "a superblock of md 1.2": [ext4, () => writeAt(4 * KiB, "events")],
    "a superblock of md 1.0": [ext4, () => writeAt(disk().size - 8 * KiB, "events")],
    "a superblock of md 0.90": [ext4, () => writeAt(disk().size - 64 * KiB, "events")],
    "the first uberblocks of ZFS": [ext4, () => writeAt(128 * KiB, "txg")],
    "the last uberblocks of ZFS": [ext4, () => writeAt(disk().size - 128 * KiB, "txg")],
    "a checkpoint of F2FS": [ext4, () => writeAt(4 * MiB, "checkpoint")],
  };
  const dryRun = (given: readonly string[] = [], bin = {}): Promise<StepRun> =>
    runStepOn("dash", stepOf(diskPartitioned, { disk: { byId: disk().byId }, partitions: [{ name: "data" }] }), {
      dryRun: true,
      granted: given,
      bin,
    });
  /** A stand-in of `wipefs` that lets another process write to the disk before wipefs takes the lock. */
  const wipefsAfterWrite = (): Readonly<Record<string, string>> => {
    const late = `case $* in *--lock=*) echo late | dd of=${disk().device} bs=1024 seek=9 conv=notrunc,fsync 2>/dev/null ;; esac`;
    return { wipefs: `${late}; exec /usr/sbin/wipefs "$@"` };
  };
  const guid = "5db0125a-9aa5-5a75-82f0-616afc364725";
  const freshMark = (): string => join(disk().folder, "fresh", guid);
  const formatStep = (): Step => ({
    want: { type: "ext4", uuid: guid },
    ...stepOfFormat({
      find: sh`${diskFunctions}
device=${disk().device} disk= name=${basename(disk().device)} disk_name=${basename(disk().device)}`,
      guid,
      type: "ext4",
      uuid: guid,
      wanted: "ext4",
      grant: disk().byId,
      prepare: sh`note prepared`,
      make: sh`mkfs.ext4 -qF -U ${guid}`,
      tool: { command: "mkfs.ext4", package: "e2fsprogs" },
    }),
  });
  const imageSum = (): string => createHash("sha256").update(readFileSync(disk().image)).digest("hex");

  for (const [what, [make, change]] of Object.entries(contentKinds))
    it(`is void after a change of ${what}`, async () => {
      make();
      const before = await dryRun();
      expect(before.problem?.code).to.equal("DISK_HAS_DATA");
      const grant = grantOf(before);
      change();
      const after = await dryRun([grant]);
      expect([after.problem?.code, after.problem?.detail]).to.deep.equal(["DISK_HAS_DATA", before.problem?.detail]);
      expect(grantOf(after)).not.to.equal(grant);
    });

  it("is void after a change in a partition that only the table names", async () => {
    disk().write(masterBootRecord([32, 16]));
    spawnSync("partx", ["-d", disk().device]);
    const grant = grantOf(await dryRun());
    writeAt(32 * MiB + KiB, "superblock");
    expect((await dryRun([grant])).problem?.code).to.equal("DISK_HAS_DATA");
  });

  for (const shell of shellsOf(import.meta.filename)) {
    it(`has the same fingerprint in every shell, here ${shell}`, async () => {
      ext4();
      const name = disk().device.replace("/dev/", "");
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

    it(`does not wipe a disk that was written to before the lock, on ${shell}`, async () => {
      ext4();
      const grant = grantOf(await runStepOn(shell, formatStep(), { stateDir: disk().folder }));
      const bin = wipefsAfterWrite();
      const byFormat = await runStepOn(shell, formatStep(), { bin, granted: [grant], stateDir: disk().folder });
      expect(byFormat.notes).to.deep.equal([`wiping ${disk().device}, as granted`]);
      expect(existsSync(freshMark())).to.equal(false);
      expect([byFormat.problem?.code, byFormat.problem?.message], JSON.stringify(byFormat)).to.deep.equal([
        "FILESYSTEM_DIFFERS",
        `${disk().device} was written to after its contents were compared with the grant`,
      ]);
      ext4();
      const again = grantOf(await dryRun());
      const step = stepOf(diskPartitioned, { disk: { byId: disk().byId }, partitions: [{ name: "data" }] });
      const run = await runStepOn(shell, step, { bin, granted: [again], stateDir: disk().folder });
      expect(run.problem?.code, JSON.stringify(run)).to.equal("DISK_HAS_DATA");
      expect(
        spawnSync("blkid", ["-p", "-o", "value", "-s", "TYPE", disk().device], { encoding: "utf8" }).stdout,
      ).to.equal("ext4\n");
    });
  }

  it("is still needed after an earlier wipe was refused", async () => {
    const run = (given: readonly string[], bin = {}): Promise<StepRun> =>
      runStepOn("dash", formatStep(), { bin, granted: given, stateDir: disk().folder });
    const expectRefused = async (...given: Parameters<typeof run>): Promise<StepRun> => {
      const refused = await run(...given);
      expect(refused.problem?.code, JSON.stringify(refused)).to.equal("FILESYSTEM_DIFFERS");
      expect(refused.notes).not.to.include("prepared");
      return refused;
    };
    ext4();
    const grant = grantOf(await run([]));
    await expectRefused([grant], wipefsAfterWrite());
    ext4();
    await expectRefused([grant]);
    execFileSync("blkdiscard", ["-fz", disk().device], { stdio: "ignore" });
    writeAt(MiB, "without a signature");
    await expectRefused([grantOf(await run([]))], wipefsAfterWrite());
    await expectRefused([]);
    // Only the same grant continues a wipe that left its mark.
    const last = grantOf(await run([]));
    expect((await run([last], { "mkfs.ext4": "exit 1" })).notes).to.include("prepared");
    writeAt(MiB, "half a filesystem");
    await expectRefused([]);
    expect((await run([last])).outcome).to.equal("changed");
    expect(existsSync(freshMark())).to.equal(false);
  });

  it("does not override that a disk with other partitions is in use", async () => {
    const args = { disk: { byId: disk().byId }, partition: "data" };
    const table = [`--disk-guid=${diskGuid(contextOf(), args.disk)}`, "-n1:0:+8M", "-c1:other"];
    execFileSync("sgdisk", [...table, `-u1:${partitionGuid(contextOf(), args)}`, disk().device]);
    const differs = await dryRun();
    expect(differs.problem?.code).to.equal("DISK_PARTITIONS_DIFFER");
    const busy = { wipefs: `case $* in '-a -n '*) echo busy >&2; exit 1 ;; esac; exec /usr/sbin/wipefs "$@"` };
    for (const given of [[], [grantOf(differs)]]) {
      const { problem } = await dryRun(given, busy);
      expect(problem?.code).to.equal("DISK_IN_USE");
      expect(problem?.detail).to.match(/cannot be opened alone: busy\npartition data: wanted /);
    }
  });

  it("wipes exactly the named disk, while the disk is locked", async () => {
    ext4();
    const before = imageSum();
    const grant = grantOf(await dryRun());
    expect((await dryRun([grant])).outcome).to.equal("would-change");
    expect(imageSum()).to.equal(before);
    const step = stepOf(diskPartitioned, { disk: { byId: disk().byId }, partitions: [{ name: "data" }] });
    const bin = { sgdisk: "exit 0", blockdev: "exit 0", udevadm: "exit 0", partx: "exit 1", sleep: "exit 0" };
    const run = await runStepOn("dash", step, { bin, granted: [grant], stateDir: disk().folder });
    expect(run.notes.join("\n"), JSON.stringify(run)).to.contain("as granted");
    expect(spawnSync("blkid", ["-p", disk().device]).stdout.toString()).to.equal("");
  });
});
