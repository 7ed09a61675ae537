import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { symlinkManaged } from "#engine/modules/symlink-managed.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("symlink.managed", () => {
  it("wants the link with its target, and says it as data", () => {
    const { want, data } = stepOf(symlinkManaged, { path: "/etc/localtime", target: "../x" });
    expect(want).to.deep.equal({ kind: "symlink", target: "../x" });
    expect(data).to.deep.equal({
      kind: "symlink",
      path: "/etc/localtime",
      target: "../x",
      force: false,
      makeDirs: false,
    });
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: string;
      let path: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-symlink-"));
        path = join(folder, "a link");
      });
      afterEach(() => rmSync(folder, { recursive: true }));

      it("makes the link, leaves nothing else, and finds it in order", async () => {
        const step = stepOf(symlinkManaged, { path, target: "-odd 'target'" });
        const run = await runStepOn(shell, step);
        expect(run.outcome, JSON.stringify(run)).to.equal("changed");
        expect([readlinkSync(path), readdirSync(folder)]).to.deep.equal(["-odd 'target'", ["a link"]]);
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
      });

      it("turns a link that points elsewhere, also one to a folder", async () => {
        symlinkSync("/tmp", path);
        const run = await runStepOn(shell, stepOf(symlinkManaged, { path, target: "/etc" }));
        expect([run.have["target"], readlinkSync(path)]).to.deep.equal(["/tmp", "/etc"]);
      });

      it("never replaces what holds something, even with force", async () => {
        writeFileSync(path, "precious");
        const file = await runStepOn(shell, stepOf(symlinkManaged, { path, target: "/etc", force: true }));
        expect(file.problem?.code).to.equal("FILE_IN_THE_WAY");
        rmSync(path);
        mkdirSync(join(path, "precious"), { recursive: true });
        const full = await runStepOn(shell, stepOf(symlinkManaged, { path, target: "/etc", force: true }));
        expect(full.problem?.code).to.equal("FILE_IN_THE_WAY");
      });

      it("replaces an empty file or folder only with force", async () => {
        for (const make of [() => writeFileSync(path, ""), () => mkdirSync(path)]) {
          make();
          const refused = await runStepOn(shell, stepOf(symlinkManaged, { path, target: "/etc" }), { dryRun: true });
          expect(refused.problem?.message).to.contain("force: true");
          expect(
            (await runStepOn(shell, stepOf(symlinkManaged, { path, target: "/etc", force: true }))).outcome,
          ).to.equal("changed");
          expect(lstatSync(path).isSymbolicLink()).to.equal(true);
          rmSync(path);
        }
      });
    });
});
