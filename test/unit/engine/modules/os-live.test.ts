import { expect } from "chai";
import { osLive } from "#engine/modules/os-live.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

// What it tells of a machine: test/integration/nixos/install.test.ts.
describe("os.live", () => {
  it("only looks", () => {
    const { want, apply } = stepOf(osLive, { disk: { serial: "S1" } });
    expect([want, apply]).to.deep.equal([{ live: "told" }, undefined]);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`refuses where the machine has no such disk, on ${shell}`, async () => {
      const { problem } = await runStepOn(shell, stepOf(osLive, { disk: { serial: "S1" } }), {
        bin: { lsblk: "exit 1" },
      });
      expect(problem?.code).to.equal("DISK_NOT_FOUND");
    });
});
