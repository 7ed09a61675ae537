import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { fileAbsent } from "#engine/modules/file-absent.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("file.absent", () => {
  it("wants nothing there, and says it as data", () => {
    const { want, data } = stepOf(fileAbsent, { path: "/etc/motd" });
    expect(want).to.deep.equal({ kind: "absent" });
    expect(data).to.deep.equal({ kind: "absent", path: "/etc/motd", recurse: false });
  });

  it("never takes /, a system folder or a path that is not normalised", () => {
    for (const path of ["/", "/etc", "/usr/lib", "/nix/store", "/tmp/../etc", "//", "etc", "/a/"])
      expect(fileAbsent.args.safeParse({ path, recurse: true }).success, path).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: string;
      let path: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-absent-"));
        path = join(folder, "-a 'thing'");
      });
      afterEach(() => rmSync(folder, { recursive: true }));

      it("removes a file once", async () => {
        writeFileSync(path, "");
        const step = stepOf(fileAbsent, { path });
        expect((await runStepOn(shell, step)).outcome).to.equal("changed");
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
      });

      it("removes a link and not what it points to", async () => {
        mkdirSync(join(folder, "kept"));
        symlinkSync(join(folder, "kept"), path);
        expect((await runStepOn(shell, stepOf(fileAbsent, { path, recurse: true }))).outcome).to.equal("changed");
        expect(existsSync(join(folder, "kept"))).to.equal(true);
      });

      it("removes an empty folder, a full one only with recurse", async () => {
        mkdirSync(join(path, "sub"), { recursive: true });
        const refused = await runStepOn(shell, stepOf(fileAbsent, { path }));
        expect(refused.problem?.code).to.equal("FILE_NOT_EMPTY");
        expect(existsSync(join(path, "sub"))).to.equal(true);
        expect((await runStepOn(shell, stepOf(fileAbsent, { path, recurse: true }))).outcome).to.equal("changed");
      });

      it("refuses a mount point and a folder with one beneath", async () => {
        mkdirSync(join(path, "sub"), { recursive: true });
        const mounted = `unshare -m sh -c 'mount -t tmpfs none "$0" && exec "$@"' "${join(path, "sub")}" ${shell}`;
        for (const at of [path, join(path, "sub")]) {
          const run = await runStepOn(mounted, stepOf(fileAbsent, { path: at, recurse: true }));
          expect([run.problem?.code, run.problem?.detail], run.stderr).to.deep.equal([
            "FILE_MOUNTED",
            join(path, "sub"),
          ]);
        }
      });
    });
});
