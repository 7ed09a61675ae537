import { expect } from "chai";
import { mdArray } from "#engine/modules/md-array.ts";
import { contextOf, runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const two = [{ serial: "S1" }, { serial: "S2" }];
const on = { name: "data", disks: two, partition: "raid" };

describe("md.array", () => {
  it("wants a mirror of all its members unless told otherwise", () => {
    expect(stepOf(mdArray, on).want).to.deep.equal({
      array: "raid1 of 2",
      "member S1": "in the array",
      "member S2": "in the array",
    });
  });

  it("is known by its node and name alone: a disk may be replaced", () => {
    const uuidOf = (args: object, nodeId = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11"): string =>
      /--uuid=([0-9a-f:]+)/.exec(stepOf(mdArray, args, contextOf({ nodeId })).apply?.toString() ?? "")?.[1] ?? "";
    expect(uuidOf(on)).to.equal(uuidOf({ ...on, disks: [{ serial: "S1" }, { serial: "S9" }] }));
    expect(uuidOf(on)).to.not.equal(uuidOf({ ...on, name: "other" }));
    expect(uuidOf(on)).to.not.equal(uuidOf(on, "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e12"));
  });

  it("refuses levels that are none, and too few disks", () => {
    const accepts = (args: object): boolean => mdArray.args.safeParse({ ...on, ...args }).success;
    for (const level of [0, 1, 10]) expect(accepts({ level }), String(level)).to.equal(true);
    for (const level of [4, 5, 6, "1"]) expect(accepts({ level }), String(level)).to.equal(false);
    expect(accepts({ level: 5, disks: [...two, { serial: "S3" }] })).to.equal(true);
    expect(accepts({ disks: two.slice(1) })).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`refuses where the node has no such disk, or no mdadm, on ${shell}`, async () => {
      const bin = { lsblk: "exit 1", mdadm: "exit 1" };
      expect((await runStepOn(shell, stepOf(mdArray, on), { bin })).problem?.code).to.equal("DISK_NOT_FOUND");
    });
});
