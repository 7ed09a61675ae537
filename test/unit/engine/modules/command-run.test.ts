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

  it("refuses a check that could change something, and what is no condition", () => {
    for (const args of [
      { check: true, revert: "a" },
      { check: true, changed: { whenCode: [2] } },
      { changed: "sometimes" },
      { changed: { whenOutput: "" } },
      { changed: { whenOutput: "a\nb" } },
      { changed: { whenCode: [] } },
      { changed: { whenCode: [256] } },
    ])
      expect(commandRun.args.safeParse({ cmd: "a", ...args }).success, JSON.stringify(args)).to.equal(false);
  });

  it("says in a dry run that nothing rests on what never changes, nor on a check", () => {
    expect(stepOf(commandRun, { cmd: "a", changed: "never" }).reach?.changes).to.deep.equal([]);
    const { reach, apply, brings } = stepOf(commandRun, { argv: ["test", "-e", "/a"], check: true });
    expect(reach?.restsOn).to.deep.include({ is: "command", text: "test -e /a" });
    expect([reach?.changes, apply, brings]).to.deep.equal([[], undefined, undefined]);
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

      it("changes nothing by its own word, by what it prints, or by its code, and fails all the same", async () => {
        const ended = async (cmd: string, changed: unknown) => {
          const { outcome, rc, stdout } = await runStepOn(shell, stepOf(commandRun, { cmd, changed }));
          return [outcome, rc, stdout];
        };
        const grown = { whenOutput: "^(grown|new) [0-9]+$" };
        const two = { whenCode: [2] };
        expect(await ended("echo a", "never")).to.deep.equal(["ok", "0 same", "a\n"]);
        expect(await ended("exit 1", "never")).to.deep.equal(["failed", "1 same", ""]);
        expect(await ended("echo a; echo grown 7", grown)).to.deep.equal(["changed", "0", "a\ngrown 7\n"]);
        expect(await ended("echo a; echo grown", grown)).to.deep.equal(["ok", "0 same", "a\ngrown\n"]);
        expect(await ended("echo grown 7; exit 3", grown)).to.deep.equal(["failed", "3", "grown 7\n"]);
        expect(await ended("exit 2", two)).to.deep.equal(["changed", "2", ""]);
        expect(await ended("exit 0", two)).to.deep.equal(["ok", "0 same", ""]);
        expect(await ended("exit 1", two)).to.deep.equal(["failed", "1 same", ""]);
      });

      it("finds out by itself whether that was a change, whatever the command's PATH is", async () => {
        const [echo] = ["/bin/echo", "/usr/bin/echo"].filter((path) => existsSync(path));
        const step = stepOf(commandRun, {
          argv: [echo, "grown 7"],
          env: { PATH: folder, LC_ALL: "C.UTF-8" },
          changed: { whenOutput: "^grown" },
        });
        const { outcome, rc, stdout } = await runStepOn(shell, step);
        expect([outcome, rc, stdout]).to.deep.equal(["changed", "0", "grown 7\n"]);
      });

      it("waits for no daemon that holds its output open, and reads input beside it", async () => {
        const step = stepOf(commandRun, {
          cmd: `cat; while [ -d ${folder} ]; do sleep 0.1; done 2>/dev/null & echo up`,
          stdin: "in\n",
          changed: { whenOutput: "^up$" },
        });
        const run = await runStepOn(shell, step);
        expect([run.outcome, run.stdout]).to.deep.equal(["changed", "in\nup\n"]);
      });

      it("runs nothing with an expression that grep does not take", async () => {
        const made = join(folder, "made");
        const step = stepOf(commandRun, { argv: ["touch", made], changed: { whenOutput: "a(" } });
        for (const dryRun of [true, false]) {
          const run = await runStepOn(shell, step, { dryRun });
          expect([run.outcome, existsSync(made)]).to.deep.equal(["failed", false]);
          expect(run.stderr).to.contain("whenOutput: grep -E does not take a(");
        }
      });

      it("with creates or unless is a change only as it says itself", async () => {
        const creates = join(folder, "made");
        const step = stepOf(commandRun, { argv: ["touch", creates], changed: "never" });
        expect((await runStepOn(shell, step, { plan: { creates } })).outcome).to.equal("ok");
        const other = stepOf(commandRun, { argv: ["true"], changed: "never" });
        const run = await runStepOn(shell, other, { plan: { creates: join(folder, "other") } });
        expect([run.outcome, run.status]).to.deep.equal(["failed", 15]);
      });

      it("runs a check in a dry run too, and fails where it fails", async () => {
        const check = (cmd: string) => stepOf(commandRun, { cmd, check: true, successCodes: [0, 2] });
        for (const dryRun of [true, false]) {
          const held = await runStepOn(shell, check("echo a; exit 2"), { dryRun });
          expect([held.outcome, held.have["code"], held.stdout]).to.deep.equal(["ok", "2", "a\n"]);
          const failed = await runStepOn(shell, check("exit 3"), { dryRun });
          expect([failed.outcome, failed.status]).to.deep.equal(["failed", 17]);
          expect(failed.have).to.deep.equal({ code: "3", check: "ended with exit code 3" });
        }
        expect((await runStepOn(shell, check("false"), { dryRun: true, unsure: true })).outcome).to.equal("unknown");
      });

      it("is unknown in a dry run when only running it tells, and could not begin where it could not", async () => {
        const step = (args: object) => stepOf(commandRun, { argv: ["touch", join(folder, "x")], ...args });
        for (const changed of ["never", { whenOutput: "a" }, { whenCode: [2] }]) {
          const run = await runStepOn(shell, step({ changed }), { dryRun: true });
          expect([run.outcome, existsSync(join(folder, "x"))]).to.deep.equal(["unknown", false]);
        }
        const lost = await runStepOn(shell, step({ changed: "never", cwd: join(folder, "no") }), { dryRun: true });
        expect(lost.outcome).to.equal("failed");
      });

      it("does nothing in a dry run", async () => {
        const run = await runStepOn(shell, stepOf(commandRun, { argv: ["touch", join(folder, "x")] }), {
          dryRun: true,
        });
        expect([run.outcome, existsSync(join(folder, "x"))]).to.deep.equal(["would-change", false]);
      });
    });
});
