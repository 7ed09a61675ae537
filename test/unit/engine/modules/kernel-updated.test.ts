import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { kernelUpdated } from "#engine/modules/kernel-updated.ts";
import { runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("kernel.updated", () => {
  it("follows the distribution's packages, from fresh lists", () => {
    expect(stepOf(kernelUpdated, {}).want).to.deep.equal({ kernel: "latest", lists: "fresh" });
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-kernel-"));
      });
      afterEach(() => rmSync(folder, { recursive: true }));
      /** An apt with these packages installed at 1.0; an upgrade writes FOLDER/upgraded. */
      const run = (installed: readonly string[], args: object = {}): Promise<StepRun> =>
        runStepOn(shell, stepOf(kernelUpdated, args), {
          stateDir: folder,
          bin: {
            "dpkg-query": `case "$3" in
  *Package*) printf 'installed %s\\n' ${installed.join(" ")}; echo "config-files linux-image-old" ;;
  *) [ -e ${folder}/upgraded ] && echo "installed 2.0" || echo "installed 1.0" ;;
esac`,
            "apt-cache": `echo "  Candidate: 2.0"`,
            "apt-get": `case "$*" in
  *update) : >${folder}/fetched ;;
  *" install -- "*) echo "\${*#* -- }" >${folder}/upgraded ;;
  *) exit 64 ;;
esac`,
          },
        });

      it("brings the packages that follow the newest kernel, and no other, to it", async () => {
        const done = await run(["linux-image-6.1.0-1-amd64", "linux-image-amd64", "linux-image-cloud-amd64"]);
        expect([done.outcome, done.have["packages"], done.have["kernel"]], JSON.stringify(done)).to.deep.equal([
          "changed",
          "linux-image-amd64 linux-image-cloud-amd64",
          "linux-image-amd64 1.0: 2.0 is there, linux-image-cloud-amd64 1.0: 2.0 is there",
        ]);
        expect(done.now).to.include({ kernel: "latest", lists: "fresh" });
        expect((await run(["linux-image-amd64"])).outcome).to.equal("ok");
      });

      it("refuses a node without one, and says what installs it", async () => {
        const { problem } = await run(["linux-image-6.1.0-1-amd64"]);
        expect([problem?.code, problem?.message]).to.deep.equal([
          "KERNEL_UNKNOWN",
          "no package that follows the distribution's kernel is installed on this node (linux-image-amd64, kernel, linux-lts); package.installed installs one",
        ]);
      });
    });
});
