import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { diskCleared } from "#engine/modules/disk-cleared.ts";
import { grantOf } from "#support/grants.ts";
import { openLoopDisk, type LoopDisk } from "#support/loop-disk.ts";
import { shellsOf } from "#support/shells.ts";
import { runStepOn, stepOf, type StepRun, type StepRunOptions } from "#support/steps.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

/** With two loop disks of this machine. */
describe("the disks of a deployment (F-18)", () => {
  let folder: TempDir;
  let first: LoopDisk;
  let second: LoopDisk;
  before(async function () {
    folder = await makeTempDir("cleared");
    const [one, other] = ["one", "other"].map((name) => {
      const place = join(folder.path, `cleared-${process.pid}-${name}`);
      mkdirSync(place);
      return openLoopDisk(place, new Uint8Array(), 16 * 1024 ** 2);
    });
    if (!one || !other) return this.skip();
    [first, second] = [one, other];
  });
  after(async () => {
    first?.remove();
    second?.remove();
    await folder?.remove();
  });
  beforeEach(() => {
    for (const disk of [first, second]) disk.write(new Uint8Array(disk.size));
  });

  const sums = (): readonly string[] =>
    [first, second].map(({ image }) => createHash("sha256").update(readFileSync(image)).digest("hex"));
  const run = (options: StepRunOptions = {}, shell = "dash"): Promise<StepRun> =>
    runStepOn(shell, stepOf(diskCleared, { disks: [{ byId: first.byId }, { byId: second.byId }] }), {
      stateDir: folder.path,
      ...options,
    });
  const formatDisk = ({ device }: LoopDisk): void => void execFileSync("mkfs.ext4", ["-qF", device]);

  it("are listed by a dry run with identity and contents, blank ones too", async () => {
    const { outcome, notes } = await run({ dryRun: true });
    expect(outcome).to.equal("ok");
    const lines = notes.join("\n").split("\n");
    expect(lines.length).to.equal(2);
    for (const [index, { device }] of [first, second].entries())
      expect(lines[index])
        .to.contain(device)
        .and.match(/ 16 MiB .*: blank$/);
    formatDisk(second);
    const { problem } = await run({ dryRun: true });
    expect([problem?.code, problem?.detail]).to.satisfy(
      ([code, detail = ""]: readonly [string, string?]) => code === "DISK_HAS_DATA" && detail.includes("holds ext4"),
    );
  });

  it("are refused by a dry run for an ambiguous or unknown name", async () => {
    const lsblk = `[ "$*" != "-dnPo NAME,SERIAL,WWN" ] || printf 'NAME="%s" SERIAL="twin" WWN=""\\n' $(ls /sys/block)`;
    const codes = await Promise.all(
      ["twin", "no such disk"].map(async (serial) => {
        const step = stepOf(diskCleared, { disks: [{ byId: first.byId }, { serial }] });
        return (await runStepOn("dash", step, { dryRun: true, bin: { lsblk } })).problem?.code;
      }),
    );
    expect(codes).to.deep.equal(["DISK_AMBIGUOUS", "DISK_NOT_FOUND"]);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`are all checked before the first one is wiped, and wiped as granted, on ${shell}`, async () => {
      formatDisk(first);
      formatDisk(second);
      const before = sums();
      const one = grantOf(await run({}, shell));
      const half = await run({ granted: [one] }, shell);
      expect([half.problem?.code, sums()]).to.deep.equal(["DISK_HAS_DATA", before]);
      const both = [one, grantOf(half)];
      const planned = await run({ granted: both, dryRun: true }, shell);
      expect([planned.outcome, sums()]).to.deep.equal(["would-change", before]);
      expect(planned.notes.join("\n")).to.match(/wiped, as granted, with .*\n.*wiped, as granted, with /);
      const done = await run({ granted: both }, shell);
      expect(done.outcome, JSON.stringify(done)).to.equal("changed");
      expect([await run({}, shell)].map(({ outcome }) => outcome)).to.deep.equal(["ok"]);
      for (const { device } of [first, second])
        expect(spawnSync("blkid", ["-p", device], { encoding: "utf8" }).stdout).to.equal("");
    });

  it("keep a table that kcore made, and are refused while in use", async () => {
    const step = stepOf(diskCleared, { disks: [{ byId: first.byId }] });
    const [, guid = ""] = /each_disk \S+ \S+ '?([0-9a-f-]{36})/.exec(String(step.probe)) ?? [];
    execFileSync("sgdisk", ["-o", "-U", guid, "-n1:0:+4M", first.device]);
    const before = sums();
    const { outcome, notes } = await run({ dryRun: true });
    expect([outcome, sums()]).to.deep.equal(["ok", before]);
    expect(notes.join("\n")).to.contain("a table of kcore's");
    formatDisk(second);
    const grant = grantOf(await run());
    const place = join(folder.path, "mount");
    mkdirSync(place);
    if (spawnSync("mount", ["-r", second.device, place]).status !== 0) return;
    try {
      expect((await run({ granted: [grant] })).problem?.code).to.equal("DISK_IN_USE");
    } finally {
      execFileSync("umount", [place]);
    }
  });

  it("lose a table that kcore made with own: true, by a grant alone", async () => {
    const step = stepOf(diskCleared, { disks: [{ byId: first.byId }], own: true });
    const [, guid = ""] =
      /each_disk \S+ \S+ '?([0-9a-f-]{36})/.exec(
        String(stepOf(diskCleared, { disks: [{ byId: first.byId }] }).probe),
      ) ?? [];
    execFileSync("sgdisk", ["-o", "-U", guid, "-n1:0:+4M", first.device]);
    const runOwn = (granted: readonly string[]) => runStepOn("dash", step, { stateDir: folder.path, granted });
    const before = sums();
    const refused = await runOwn([]);
    expect([refused.problem?.code, sums()]).to.deep.equal(["DISK_HAS_DATA", before]);
    expect(refused.problem?.message).to.contain("holds data; if it may go");
    expect((await runOwn([grantOf(refused)])).outcome).to.equal("changed");
    expect(spawnSync("blkid", ["-p", first.device], { encoding: "utf8" }).stdout).to.equal("");
    expect((await runOwn([])).outcome).to.equal("ok");
  });
});
