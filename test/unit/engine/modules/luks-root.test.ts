import { chmodSync, symlinkSync } from "node:fs";
import { expect } from "chai";
import { luksRoot } from "#engine/modules/luks-root.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { runStepOn, shells, stepOf } from "#support/steps.ts";

describe("luks.root", () => {
  it("wants the file there", () => {
    expect(stepOf(luksRoot, { path: "/etc/example" }).want).to.deep.equal({ kind: "file" });
  });

  for (const shell of shells)
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      beforeEach(async () => {
        folder = await makeTempDir("module");
      });
      afterEach(() => folder.remove());

      it("converges, and changes nothing the second time", async () => {
        const step = stepOf(luksRoot, { path: `${folder.path}/it's here` });
        expect((await runStepOn(shell, step)).outcome).to.equal("changed");
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
      });

      it("leaves alone what is something else, and a folder that others can write to", async () => {
        symlinkSync("/nowhere", `${folder.path}/link`);
        const link = await runStepOn(shell, stepOf(luksRoot, { path: `${folder.path}/link` }));
        expect(link.problem?.code).to.equal("FILE_IN_THE_WAY");
        chmodSync(folder.path, 0o777);
        const unsafe = await runStepOn(shell, stepOf(luksRoot, { path: `${folder.path}/file` }));
        expect(unsafe.problem?.code).to.equal("FILE_PARENT_UNSAFE");
      });
    });
});
