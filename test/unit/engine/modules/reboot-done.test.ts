import { expect } from "chai";
import { rebootDone } from "#engine/modules/reboot-done.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("reboot.done", () => {
  it("ends the boot", () => {
    const { want, ends, timeout } = stepOf(rebootDone, { always: true, timeout: "5m" });
    expect([want, ends, timeout]).to.deep.equal([{ reboot: "done" }, "boot", 300]);
  });

  it("takes either a file or always", () => {
    for (const args of [{}, { always: true, ifFile: "/a" }])
      expect(rebootDone.args.safeParse(args).success).to.equal(false);
  });

  // Its apply is never run here, only on lab machines.
  for (const shell of shellsOf(import.meta.filename)) {
    it(`needs a boot only when the file is there on ${shell}`, async () => {
      const outcome = async (ifFile: string): Promise<string> =>
        (await runStepOn(shell, stepOf(rebootDone, { ifFile }), { dryRun: true })).outcome;
      expect([await outcome("/not/there"), await outcome("/etc")]).to.deep.equal(["ok", "would-change"]);
    });
  }
});
