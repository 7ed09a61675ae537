import { expect } from "chai";
import { swapEnabled } from "#engine/modules/swap-enabled.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const on = { disk: { serial: "S1" }, partition: "swap" };

describe("swap.enabled", () => {
  it("wants an area of its own, in fstab and in use", () => {
    const { want } = stepOf(swapEnabled, on);
    expect(want["uuid"]).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
    expect(want).to.include({ type: "swap", active: "yes", fstab: `UUID=${want["uuid"]} none swap sw,nofail 0 0` });
    const first = stepOf(swapEnabled, { ...on, priority: 5 }).want;
    expect(first).to.include({ active: "priority 5", fstab: `UUID=${want["uuid"]} none swap sw,pri=5,nofail 0 0` });
  });

  it("finds by disk and partition or by volume group and volume, just one of them", () => {
    const accepts = (args: object): boolean => swapEnabled.args.safeParse(args).success;
    expect(accepts(on)).to.equal(true);
    expect(accepts({ vg: "vg_a", lv: "swap" })).to.equal(true);
    for (const args of [{}, { ...on, vg: "vg_a", lv: "swap" }, { ...on, vg: "vg_a" }, { disk: on.disk, lv: "swap" }])
      expect(accepts(args), JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`refuses where the node has no such disk, on ${shell}`, async () => {
      const run = await runStepOn(shell, stepOf(swapEnabled, on), { bin: { lsblk: "exit 1" } });
      expect(run.problem?.code).to.equal("DISK_NOT_FOUND");
    });
});
