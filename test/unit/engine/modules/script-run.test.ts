import { existsSync } from "node:fs";
import { expect } from "chai";
import { secret } from "#engine/step/secret.ts";
import { scriptRun } from "#engine/modules/script-run.ts";
import { contextOf, runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("script.run", () => {
  it("keeps a secret script out of the text (S-7)", () => {
    const { apply } = stepOf(scriptRun, { text: secret("echo canary") });
    expect(String(apply)).not.to.contain("canary");
  });

  it("hides the hash of a source when the step is sensitive (S-7)", () => {
    const context = contextOf({ files: { x: "echo canary" }, sensitive: true });
    expect(stepOf(scriptRun, { source: "x" }, context).apply?.blobs.map(({ sensitive }) => sensitive)).to.deep.equal([
      true,
    ]);
  });

  it("refuses both or neither of text and source", () => {
    for (const args of [{}, { text: "a", source: "b" }]) expect(scriptRun.args.safeParse(args).success).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      it("runs the text with arguments and input", async () => {
        const step = stepOf(scriptRun, { text: 'read -r a\necho "$1-$a"', args: ["it's"], stdin: "in\n" });
        const run = await runStepOn(shell, step);
        expect([run.outcome, run.stdout]).to.deep.equal(["changed", "it's-in\n"]);
      });

      it("runs a file of the project with another interpreter", async () => {
        const context = contextOf({ files: { "scripts/x.awk": "BEGIN { print 6 * 7 }" } });
        const run = await runStepOn(
          shell,
          stepOf(scriptRun, { source: "scripts/x.awk", interpreter: ["awk", "-f"] }, context),
        );
        expect(run.stdout).to.equal("42\n");
      });

      it("fails with the script's code", async () => {
        const run = await runStepOn(shell, stepOf(scriptRun, { text: "echo why >&2; exit 4" }));
        expect([run.outcome, run.rc, run.stderr]).to.deep.equal(["failed", "4", "why\n"]);
      });

      it("runs as another user from a text, and leaves no file", async () => {
        const step = stepOf(scriptRun, { text: secret('id -un; echo "$0"') });
        const run = await runStepOn(shell, step, { plan: { runAs: "nobody" } });
        const [user, file = ""] = run.stdout.split("\n");
        expect([run.outcome, user, existsSync(file)], run.stderr).to.deep.equal(["changed", "nobody", false]);
      });
    });
});
