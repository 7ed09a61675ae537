import { expect } from "chai";
import { lvmPhysicalVolume } from "#engine/modules/lvm-physical-volume.ts";
import { contextOf, runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const on = { disk: { serial: "S1" }, partition: "lvm" };

describe("lvm.physical_volume", () => {
  it("wants a UUID in LVM's spelling that only this node, disk and partition have", () => {
    const uuidOf = (args: object, nodeId: string): string =>
      stepOf(lvmPhysicalVolume, args, contextOf({ nodeId })).want["uuid"] ?? "";
    const one = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
    expect(uuidOf(on, one)).to.match(/^[0-9a-f]{6}(-[0-9a-f]{4}){5}-[0-9a-f]{6}$/);
    expect(uuidOf(on, one)).to.equal(uuidOf(on, one));
    expect(uuidOf(on, one)).to.not.equal(uuidOf({ ...on, partition: "other" }, one));
    expect(uuidOf(on, one)).to.not.equal(uuidOf(on, "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e12"));
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`refuses where the node has no such disk, on ${shell}`, async () => {
      const run = await runStepOn(shell, stepOf(lvmPhysicalVolume, on), { bin: { lsblk: "exit 1" } });
      expect(run.problem?.code).to.equal("DISK_NOT_FOUND");
    });
});
