import { expect } from "chai";
import { lvmLogicalVolume } from "#engine/modules/lvm-logical-volume.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const MiB = 1024 ** 2;
const plain = { vg: "vg_a", name: "data", size: "100M" };

/** What the node's LVM says: the volume's line of lvs, and the group's free bytes. The programs that change something say so. */
const lvm = (line: string, free: number): StepRunOptions => ({
  bin: {
    lvs: line === "" ? "exit 5" : `echo '  ${line}'`,
    vgs: `echo '  ${free}'`,
    lvcreate: `echo "lvcreate $*"`,
    lvextend: `echo "lvextend $*"`,
    lvchange: `echo "lvchange $*"`,
    thin_check: "",
    udevadm: "",
  },
});
const row = (layout: string, size: number, active = "active", pool = ""): string =>
  `${layout}|${size}|${4 * MiB}|${active}|${pool}`;

describe("lvm.logical_volume", () => {
  it("refuses sizes and pools that cannot be", () => {
    const accepts = (args: object): boolean => lvmLogicalVolume.args.safeParse({ ...plain, ...args }).success;
    expect(accepts({ size: "100%FREE" })).to.equal(true);
    for (const size of ["0%FREE", "101%VG", "100%", "1.5M", "512K"]) expect(accepts({ size }), size).to.equal(false);
    expect(accepts({ type: "thin" })).to.equal(false);
    expect(accepts({ pool: "pool" })).to.equal(false);
    expect(accepts({ type: "thin", pool: "pool", size: "50%VG" })).to.equal(false);
    for (const name of ["-L", "a/b", "snapshot1", "a_tdata", ".."]) expect(accepts({ name }), name).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      it("is in order at the size wanted, rounded up to an extent", async () => {
        for (const [size, bytes] of [
          ["100M", 100 * MiB],
          ["101M", 104 * MiB],
        ] as const) {
          const run = await runStepOn(
            shell,
            stepOf(lvmLogicalVolume, { ...plain, size }),
            lvm(row("linear", bytes), 0),
          );
          expect(run.outcome, JSON.stringify(run)).to.equal("ok");
        }
        const thin = { ...plain, type: "thin", pool: "pool" };
        const found = lvm(row("thin,sparse", 100 * MiB, "active", "pool"), 0);
        expect((await runStepOn(shell, stepOf(lvmLogicalVolume, thin), found)).outcome).to.equal("ok");
      });

      it("is made, grown and activated", async () => {
        const told = async (line: string): Promise<string> =>
          (await runStepOn(shell, stepOf(lvmLogicalVolume, plain), lvm(line, 200 * MiB))).stdout;
        expect(await told("")).to.contain(`lvcreate -q -y -n data -W y -L ${100 * MiB}b vg_a`);
        expect(await told(row("linear", 52 * MiB))).to.contain(`lvextend -q -L ${100 * MiB}b vg_a/data`);
        const inactive = await told(row("linear", 100 * MiB, ""));
        expect(inactive).to.contain("lvchange -q -a y vg_a/data").and.not.contain("lvextend");
      });

      for (const [what, args, line, free, code] of [
        ["a volume of another kind", {}, row("thin,sparse", 100 * MiB, "active", "pool"), 200, "LVM_VOLUME_DIFFERS"],
        [
          "a thin volume of another pool",
          { type: "thin", pool: "b" },
          row("thin,sparse", 100 * MiB, "active", "a"),
          200,
          "LVM_VOLUME_DIFFERS",
        ],
        ["to shrink", {}, row("linear", 104 * MiB), 200, "LVM_VOLUME_DIFFERS"],
        ["to make what does not fit", {}, "", 99, "LVM_NO_SPACE"],
        ["to make a share of nothing", { size: "100%FREE" }, "", 0, "LVM_NO_SPACE"],
        ["to grow beyond what is free", {}, row("linear", 52 * MiB), 40, "LVM_NO_SPACE"],
      ] as const)
        it(`refuses ${what}`, async () => {
          const run = await runStepOn(shell, stepOf(lvmLogicalVolume, { ...plain, ...args }), lvm(line, free * MiB));
          expect(run.problem?.code, JSON.stringify(run)).to.equal(code);
          expect(run.stdout).to.equal("");
        });

      it("refuses a group that is not there", async () => {
        const none = lvm("", 0);
        const run = await runStepOn(shell, stepOf(lvmLogicalVolume, plain), { bin: { ...none.bin, vgs: "exit 5" } });
        expect(run.problem?.code).to.equal("LVM_GROUP_MISSING");
      });
    });
});
