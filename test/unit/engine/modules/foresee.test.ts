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
import { shellsOf } from "#support/shells.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

type Case = readonly [ModuleDefinition, args: object, outcome: "failed" | "would-change", message: string];

describe("a dry run checks", () => {
  const at = folderOfEachTest("foresee");

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      /** Expects each dry run to have this outcome, and this code or this text on stderr. */
      const foresee = async (...cases: readonly Case[]) => {
        for (const [module, args, wanted, message] of cases) {
          const { outcome, problem, stderr } = await runStepOn(shell, stepOf(module, args), { dryRun: true });
          expect([outcome, problem?.code ?? stderr.trimEnd()], module.name).to.deep.equal([wanted, message]);
        }
      };

      it("whether other users can swap the parent folder", async () => {
        const open = at("open");
        mkdirSync(open);
        chmodSync(open, 0o777);
        const unsafe = ["failed", "FILE_PARENT_UNSAFE"] as const;
        await foresee(
          [fileManaged, { path: join(open, "f"), content: "x" }, ...unsafe],
          [directoryManaged, { path: join(open, "a/b") }, ...unsafe],
          [symlinkManaged, { path: join(open, "l"), target: "x" }, ...unsafe],
          [keyGenerated, { path: join(open, "key") }, ...unsafe],
        );
        expect(existsSync(join(open, "a"))).to.equal(false);
      });

      it("whether the parent folder, owner and group exist", async () => {
        const path = at("no/f");
        const own = { path: at("f"), content: "x" };
        await foresee(
          [fileManaged, { path, content: "x" }, "failed", "FILE_NO_PARENT"],
          [fileManaged, { path, content: "x", makeDirs: true }, "would-change", ""],
          [fileManaged, { ...own, owner: "no-such-user" }, "failed", "there is no user no-such-user"],
          [directoryManaged, { path: at("f"), group: "no-such-group" }, "failed", "there is no group no-such-group"],
          [fileManaged, { ...own, owner: "daemon", group: "4711" }, "would-change", ""],
        );
      });

      it("whether a user's number is free and the groups exist", () =>
        foresee(
          [userManaged, { name: "demo-user", uid: 0 }, "failed", "0 is the number of root"],
          [userManaged, { name: "demo-user", groups: ["no-such-group"] }, "failed", "there is no group no-such-group"],
        ));

      it("whether a command's program and working folder exist", () =>
        foresee(
          [commandRun, { argv: ["no-such-program"] }, "failed", "no-such-program: no such program"],
          [commandRun, { cmd: "true", cwd: at("no") }, "failed", `${at("no")} is not there, or is no folder`],
          [commandRun, { argv: ["true"], cwd: at() }, "would-change", ""],
        ));
    });
});
