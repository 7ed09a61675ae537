import { expect } from "chai";
import { filesystemFormatted } from "#engine/modules/filesystem-formatted.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const on = { disk: { serial: "S1" }, partition: "data" };

describe("filesystem.formatted", () => {
  it("wants the filesystem with a UUID of its own", () => {
    const { want } = stepOf(filesystemFormatted, { ...on, label: "volumes" });
    expect(want).to.have.keys("type", "uuid", "label");
    expect(want["type"]).to.equal("ext4");
    expect(want["uuid"]).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
  });

  it("wants the UUID as tools show it for vfat", () => {
    expect(stepOf(filesystemFormatted, { ...on, fstype: "vfat" }).want["uuid"]).to.match(/^[0-9A-F]{4}-[0-9A-F]{4}$/);
  });

  it("finds by disk and partition, or by PARTUUID, never by a device's name", () => {
    const accepts = (args: unknown): boolean => filesystemFormatted.args.safeParse(args).success;
    expect(accepts({ partuuid: "e55e0dd0-6a11-5fd2-8a8b-5e7b6a7e3d5c" })).to.equal(true);
    expect(accepts({ ...on, partuuid: "e55e0dd0-6a11-5fd2-8a8b-5e7b6a7e3d5c" })).to.equal(false);
    expect(accepts({ disk: { serial: "S1" } })).to.equal(false);
    expect(accepts({ device: "/dev/sda1" })).to.equal(false);
  });

  it("refuses labels that the filesystem cannot hold", () => {
    const accepts = (fstype: string, label: string): boolean =>
      filesystemFormatted.args.safeParse({ ...on, fstype, label }).success;
    expect(accepts("ext4", "sixteen-letters-")).to.equal(true);
    expect(accepts("xfs", "sixteen-letters-")).to.equal(false);
    expect(accepts("vfat", "twelve-chars")).to.equal(false);
    expect(accepts("ext4", "-L")).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename)) {
    it(`refuses where the disk has no partition of ours, on ${shell}`, async () => {
      const step = stepOf(filesystemFormatted, { partuuid: "e55e0dd0-6a11-5fd2-8a8b-5e7b6a7e3d5c" });
      const run = await runStepOn(shell, step, { bin: { partx: "exit 1", lsblk: "exit 1" } });
      expect(run.outcome).to.equal("failed");
      expect(run.problem?.code).to.equal("PARTITION_NOT_FOUND");
    });
  }
});
