import { expect } from "chai";
import { osBooted } from "#engine/modules/os-booted.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("os.booted", () => {
  it("ends the boot, and waits longer than a reboot does: firmware takes its time", () => {
    const { want, ends, timeout } = stepOf(osBooted, { disk: { serial: "S1" } });
    expect([want, ends, timeout]).to.deep.equal([{ root: "on its own disk" }, "boot", 900]);
  });

  // Its apply is never run here, only on lab machines.
  for (const shell of shellsOf(import.meta.filename))
    it(`refuses where the machine has no such disk, on ${shell}`, async () => {
      const step = stepOf(osBooted, { disk: { serial: "S1" } });
      const { problem } = await runStepOn(shell, step, { bin: { lsblk: "exit 1" } });
      expect(problem?.code).to.equal("DISK_NOT_FOUND");
    });
});
