import { expect } from "chai";
import { rebootIfRequired } from "#engine/modules/reboot-ifRequired.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("reboot.ifRequired", () => {
  it("ends the boot", () => {
    const { want, ends, timeout } = stepOf(rebootIfRequired, { timeout: "5m" });
    expect([want, ends, timeout]).to.deep.equal([{ reboot: "not required" }, "boot", 300]);
  });

  // Its apply is never run here, only on lab machines.
  for (const shell of shellsOf(import.meta.filename))
    it(`says why, on ${shell}`, async () => {
      const look = async (answer: string): Promise<unknown> => {
        const bin = { "needs-restarting": `[ "$*" = -r ] && ${answer}` };
        const { outcome, have } = await runStepOn(shell, stepOf(rebootIfRequired, {}), { dryRun: true, bin });
        return [outcome, have["reboot"]];
      };
      expect(await look("true")).to.deep.equal(["ok", "not required"]);
      expect(await look("false")).to.deep.equal(["would-change", "needs-restarting(1) says so"]);
    });
});
