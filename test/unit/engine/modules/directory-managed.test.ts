import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { directoryManaged } from "#engine/modules/directory-managed.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("directory.managed", () => {
  it("wants the folder with mode and owner, and says it as data", () => {
    const { want, data } = stepOf(directoryManaged, { path: "/srv/x", mode: "750", owner: "root" });
    expect(want).to.deep.equal({ kind: "directory", mode: "0750", owner: "root" });
    expect(data).to.deep.equal({
      kind: "directory",
      path: "/srv/x",
      mode: "750",
      owner: "root",
      group: undefined,
      makeDirs: true,
    });
  });

  it("is no data with what lies beneath", () => {
    const step = stepOf(directoryManaged, { path: "/srv/x", mode: "0750", owner: "root", recurse: ["owner"] });
    expect(step.data).to.equal(undefined);
    expect(step.want["owner root beneath"]).to.equal("all");
  });

  it("refuses to recurse over what was not given", () => {
    for (const args of [{ recurse: ["owner"] }, { mode: "0755", recurse: ["mode"] }, { fileMode: "0644" }])
      expect(directoryManaged.args.safeParse({ path: "/x", ...args }).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: string;
      let path: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-directory-"));
        path = join(folder, "a b/c");
      });
      afterEach(() => rmSync(folder, { recursive: true }));
      const modeOf = (at: string): number => statSync(at).mode & 0o7777;

      it("makes a folder and those above it, then finds it in order", async () => {
        const step = stepOf(directoryManaged, { path, mode: "2750", owner: "daemon", group: "1" });
        expect((await runStepOn(shell, step)).outcome).to.equal("changed");
        expect([modeOf(path), statSync(path).gid, modeOf(join(folder, "a b"))]).to.deep.equal([0o2750, 1, 0o755]);
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
      });

      it("mends a changed mode and leaves what it does not manage", async () => {
        mkdirSync(path, { recursive: true });
        chmodSync(path, 0o700);
        const run = await runStepOn(shell, stepOf(directoryManaged, { path, mode: "0755" }));
        expect([run.outcome, run.have["mode"], run.now["mode"]]).to.deep.equal(["changed", "0700", "0755"]);
        expect((await runStepOn(shell, stepOf(directoryManaged, { path }))).outcome).to.equal("ok");
      });

      it("refuses a missing parent without makeDirs", async () => {
        const run = await runStepOn(shell, stepOf(directoryManaged, { path, makeDirs: false }));
        expect(run.problem?.code).to.equal("FILE_NO_PARENT");
      });

      it("refuses a file or a link in its place", async () => {
        mkdirSync(join(folder, "a b"));
        writeFileSync(path, "");
        const run = await runStepOn(shell, stepOf(directoryManaged, { path }), { dryRun: true });
        expect(run.problem?.code).to.equal("FILE_IN_THE_WAY");
        symlinkSync("/tmp", join(folder, "link"));
        const link = await runStepOn(shell, stepOf(directoryManaged, { path: join(folder, "link") }));
        expect(link.problem?.code).to.equal("FILE_IN_THE_WAY");
      });

      it("recurses over owner and mode, files apart from folders, not through links", async () => {
        mkdirSync(join(path, "sub"), { recursive: true });
        writeFileSync(join(path, "sub/file"), "", { mode: 0o600 });
        symlinkSync("/etc/hostname", join(path, "link"));
        const step = stepOf(directoryManaged, {
          path,
          mode: "0750",
          fileMode: "0640",
          owner: "daemon",
          recurse: ["mode", "owner"],
        });
        const run = await runStepOn(shell, step);
        expect(run.outcome, JSON.stringify(run)).to.equal("changed");
        expect([
          modeOf(join(path, "sub")),
          modeOf(join(path, "sub/file")),
          statSync(join(path, "sub/file")).uid,
        ]).to.deep.equal([0o750, 0o640, 1]);
        expect(statSync("/etc/hostname").uid).to.equal(0);
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
      });
    });
});
