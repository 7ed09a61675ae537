import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { commandRun } from "#engine/modules/command-run.ts";
import { directoryManaged } from "#engine/modules/directory-managed.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { keyGenerated } from "#engine/modules/key-generated.ts";
import { symlinkManaged } from "#engine/modules/symlink-managed.ts";
import { userManaged } from "#engine/modules/user-managed.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { runStepOn, shells, stepOf } from "#support/steps.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

describe("what a dry run asks without changing anything", () => {
  let temp: TempDir;
  beforeEach(async () => (temp = await makeTempDir("foresee")));
  afterEach(() => temp.remove());

  for (const shell of shells)
    describe(`on ${shell}`, () => {
      const foresee = (module: ModuleDefinition, args: object) =>
        runStepOn(shell, stepOf(module, args), { dryRun: true });

      it("whether a place can be written to", async () => {
        const open = join(temp.path, "open");
        mkdirSync(open);
        chmodSync(open, 0o777);
        const cases = [
          [fileManaged, { path: join(open, "f"), content: "x" }],
          [directoryManaged, { path: join(open, "a/b") }],
          [symlinkManaged, { path: join(open, "l"), target: "x" }],
          [keyGenerated, { path: join(open, "key") }],
        ] as const;
        for (const [module, args] of cases) {
          const { outcome, problem } = await foresee(module as ModuleDefinition, args);
          expect([outcome, problem?.code], module.name).to.deep.equal(["failed", "FILE_PARENT_UNSAFE"]);
        }
        expect(existsSync(join(open, "a"))).to.equal(false);
      });

      it("whether the folder is there", async () => {
        const path = join(temp.path, "no/f");
        const without = await foresee(fileManaged, { path, content: "x" });
        expect([without.outcome, without.problem?.code]).to.deep.equal(["failed", "FILE_NO_PARENT"]);
        expect((await foresee(fileManaged, { path, content: "x", makeDirs: true })).outcome).to.equal("would-change");
      });

      it("whether owners are there", async () => {
        const path = join(temp.path, "f");
        const nobody = await foresee(fileManaged, { path, content: "x", owner: "no-such-user" });
        expect([nobody.outcome, nobody.stderr]).to.deep.equal(["failed", "there is no user no-such-user\n"]);
        const group = await foresee(directoryManaged, { path, group: "no-such-group" });
        expect([group.outcome, group.stderr]).to.deep.equal(["failed", "there is no group no-such-group\n"]);
        const known = await foresee(fileManaged, { path, content: "x", owner: "daemon", group: "4711" });
        expect(known.outcome, known.stderr).to.equal("would-change");
      });

      it("whether a number is free, and groups are there", async () => {
        const taken = await foresee(userManaged, { name: "demo-user", uid: 0 });
        expect([taken.outcome, taken.stderr]).to.deep.equal(["failed", "0 is the number of root\n"]);
        const group = await foresee(userManaged, { name: "demo-user", groups: ["no-such-group"] });
        expect([group.outcome, group.stderr]).to.deep.equal(["failed", "there is no group no-such-group\n"]);
      });

      it("whether a command could begin", async () => {
        const program = await foresee(commandRun, { argv: ["no-such-program"] });
        expect([program.outcome, program.stderr]).to.deep.equal(["failed", "no-such-program: no such program\n"]);
        const folder = await foresee(commandRun, { cmd: "true", cwd: join(temp.path, "no") });
        expect(`${folder.outcome}: ${folder.stderr}`).to.match(/^failed: .*\/no is not there, or is no folder\n$/);
        expect((await foresee(commandRun, { argv: ["true"], cwd: temp.path })).outcome).to.equal("would-change");
      });
    });
});
