import { expect } from "chai";
import { lvmVolumeGroup } from "#engine/modules/lvm-volume-group.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { partitionGuid, physicalVolumeUuid } from "#engine/step/disk-names.ts";

const uuid = (serial: string): string =>
  physicalVolumeUuid(partitionGuid({ node: "n1" }, { disk: { serial }, partition: "lvm" }));
const args = { name: "vg_a", disks: [{ serial: "S1" }, { serial: "S2" }], partition: "lvm" };
const step = stepOf(lvmVolumeGroup, args);

/** What the node's LVM says: a physical volume a line, and the groups there are. The programs that change something say so. */
const lvm = (volumes: Readonly<Record<string, string>>, groups: readonly string[]): StepRunOptions => ({
  bin: {
    pvs: Object.entries(volumes)
      .map(([serial, group]) => `echo "  ${uuid(serial)} /dev/${serial} ${group}"`)
      .join("\n"),
    vgs: `case "$*" in *vg_a) ${groups.includes("vg_a") ? "echo vg_a" : "exit 5"} ;; esac`,
    vgcreate: `echo "vgcreate $*"`,
    vgextend: `echo "vgextend $*"`,
  },
});

describe("lvm.volume_group", () => {
  it("wants each of its physical volumes in it", () => {
    expect(step.want).to.deep.equal({ "physical volume S1/lvm": "vg_a", "physical volume S2/lvm": "vg_a" });
  });

  it("takes extents that are a power of two", () => {
    const accepts = (extentSize: string): boolean => lvmVolumeGroup.args.safeParse({ ...args, extentSize }).success;
    expect(["4M", "1G", "3M", "512K"].map(accepts)).to.deep.equal([true, true, false, false]);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      it("is in order when all are in it, whatever else is", async () => {
        const run = await runStepOn(shell, step, lvm({ S1: "vg_a", S2: "vg_a", S9: "vg_z" }, ["vg_a"]));
        expect(run.outcome, run.stderr).to.equal("ok");
      });

      it("makes it of physical volumes that belong to none, and extends one that has the others", async () => {
        const made = await runStepOn(shell, step, lvm({ S1: "", S2: "" }, []));
        expect(made.stdout).to.contain("vgcreate -q vg_a /dev/S1 /dev/S2");
        const extended = await runStepOn(shell, step, lvm({ S1: "vg_a", S2: "" }, ["vg_a"]));
        expect(extended.stdout).to.contain("vgextend -q vg_a /dev/S2");
      });

      for (const [what, volumes, groups, code] of [
        ["what is no physical volume", { S1: "" }, [], "LVM_PV_MISSING"],
        ["one of another group", { S1: "", S2: "vg_z" }, [], "LVM_PV_TAKEN"],
        ["a group of this name that has none of them", { S1: "", S2: "" }, ["vg_a"], "LVM_GROUP_TAKEN"],
      ] as const)
        it(`refuses ${what}`, async () => {
          const run = await runStepOn(shell, step, lvm(volumes, groups));
          expect(run.problem?.code, run.stderr).to.equal(code);
          expect(run.stdout).to.not.contain("vgcreate");
        });
    });
});
