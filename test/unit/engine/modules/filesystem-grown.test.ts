import { expect } from "chai";
import { filesystemGrown } from "#engine/modules/filesystem-grown.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("filesystem.grown", () => {
  it("is told of a partition or a volume, just one", () => {
    const accepts = (args: object): boolean => filesystemGrown.args.safeParse(args).success;
    expect(accepts({ vg: "vg_a", lv: "data" })).to.equal(true);
    expect(accepts({ disk: { serial: "S1" }, partition: "data" })).to.equal(true);
    for (const args of [{}, { vg: "vg_a" }, { disk: { serial: "S1" } }, { path: "/srv" }])
      expect(accepts(args), JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`refuses a volume that is not there, on ${shell}`, async () => {
      const run = await runStepOn(shell, stepOf(filesystemGrown, { vg: "vg_none", lv: "none" }), {
        bin: { lvs: "exit 5" },
      });
      expect(run.problem?.code).to.equal("VOLUME_NOT_FOUND");
    });
});
