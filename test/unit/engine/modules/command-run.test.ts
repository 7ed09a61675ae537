import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { secret } from "#engine/step/secret.ts";
import { commandRun } from "#engine/modules/command-run.ts";
import { runStepOn, shells, stepOf } from "#support/steps.ts";

describe("command.run", () => {
  it("always changes by itself", () => {
    const { want, always } = stepOf(commandRun, { cmd: "true" });
    expect([want, always]).to.deep.equal([{}, true]);
  });

  it("refuses a secret in cmd, argv and env, and points to stdin (S-7)", () => {
    for (const args of [{ cmd: secret("x") }, { argv: ["a", secret("x")] }, { cmd: "a", env: { A: secret("x") } }]) {
      const { error } = commandRun.args.safeParse(args);
      expect(JSON.stringify(error?.issues)).to.contain("give it by stdin");
    }
  });

  it("refuses both or neither of cmd and argv, and what is no variable's name", () => {
    for (const args of [{}, { cmd: "a", argv: ["a"] }, { cmd: "a", env: { "A B": "x" } }, { argv: [] }])
      expect(commandRun.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  it("keeps a secret stdin out of the text (S-7)", () => {
    expect(String(stepOf(commandRun, { argv: ["cat"], stdin: secret("canary") }).apply)).not.to.contain("canary");
  });

  for (const shell of shells)
    describe(`on ${shell}`, () => {
      let folder: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-command-"));
      });
      afterEach(() => rmSync(folder, { recursive: true }));

      it("runs argv without a shell in its folder", async () => {
        const run = await runStepOn(
          shell,
          stepOf(commandRun, { argv: ["printf", "%s|", "$(id)", "it's", ""], cwd: folder }),
        );
        expect([run.outcome, run.stdout]).to.deep.equal(["changed", "$(id)|it's||"]);
      });

      it("runs cmd with variables and input", async () => {
        const step = stepOf(commandRun, {
          cmd: 'read a; echo "$a $B"; pwd',
          cwd: folder,
          env: { B: "it's" },
          stdin: secret("in\n"),
        });
        expect((await runStepOn(shell, step)).stdout).to.equal(`in it's\n${folder}\n`);
      });

      it("reads nothing where no stdin is given", async () => {
        expect((await runStepOn(shell, stepOf(commandRun, { argv: ["cat"] }))).outcome).to.equal("changed");
      });

      it("takes only its own codes as success", async () => {
        const three = await runStepOn(shell, stepOf(commandRun, { cmd: "exit 3", successCodes: [0, 3] }));
        expect([three.outcome, three.rc]).to.deep.equal(["changed", "3"]);
        const run = await runStepOn(shell, stepOf(commandRun, { cmd: "exit 13" }));
        expect([run.outcome, run.rc, run.stderr]).to.deep.equal(["failed", "13", ""]);
        const none = await runStepOn(shell, stepOf(commandRun, { cmd: "exit 0", successCodes: [3] }));
        expect([none.outcome, none.stderr]).to.deep.equal([
          "failed",
          "ended with exit code 0, which is not among successCodes\n",
        ]);
      });

      it("is in order once what it creates is there", async () => {
        const creates = join(folder, "made");
        const step = stepOf(commandRun, { argv: ["touch", creates] });
        expect((await runStepOn(shell, step, { plan: { creates } })).outcome).to.equal("changed");
        expect((await runStepOn(shell, step, { plan: { creates } })).outcome).to.equal("ok");
      });

      it("does nothing in a dry run", async () => {
        const run = await runStepOn(shell, stepOf(commandRun, { argv: ["touch", join(folder, "x")] }), {
          dryRun: true,
        });
        expect([run.outcome, existsSync(join(folder, "x"))]).to.deep.equal(["would-change", false]);
      });
    });
});
