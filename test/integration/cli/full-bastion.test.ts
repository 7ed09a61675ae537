import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";

describe("a bastion whose own disk is full or read-only", () => {
  let project: TestProject;
  let records: string;
  beforeEach(function () {
    project = new TestProject({ "states/note.yaml": 'steps:\n  - id: note\n    command.run: { cmd: "echo done" }\n' });
    records = join(project.project, ".kcore");
    mkdirSync(records, { mode: 0o700 });
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k,mode=0700", "none", records], { stdio: "ignore" });
    } catch {
      this.skip();
    }
  });
  afterEach(async () => {
    execFileSync("umount", [records], { stdio: "ignore" });
    await project.remove();
  });

  /** Fills the disk, except for the last `left` bytes. */
  function fill(left: number): void {
    const { bavail, bsize } = statfsSync(records);
    writeFileSync(join(records, "fill"), Buffer.alloc(Math.max(0, bavail * bsize - left)));
  }

  for (const left of [0, 4096, 16_384, 40_960])
    it(`fails a run with the cause before a node is touched, with ${left} bytes left for the record`, async () => {
      fill(left);
      const { code, stdout, stderr } = await project.kcore("state", "apply", "note", "--on", "here");
      expect(stdout + stderr)
        .to.contain("the bastion's disk is full")
        .and.to.contain("[RUN_RECORD_UNWRITABLE]");
      expect(stdout + stderr).to.not.match(/INTERNAL|\n +at /);
      expect([1, 2]).to.include(code);
      expect(existsSync(join(project.path, "state/runs"))).to.equal(false);
    });

  it("fails ping and exec with the cause when the audit line cannot be written", async () => {
    fill(0);
    for (const words of [
      ["ping", "--on", "here"],
      ["exec", "--on", "here", "--", "touch", join(project.path, "done")],
    ]) {
      const { code, stdout, stderr } = await project.kcore(...words);
      expect([code, stdout]).to.deep.equal([2, ""]);
      expect(stderr).to.contain("the bastion's disk is full  [RUN_RECORD_UNWRITABLE]").and.to.not.contain("INTERNAL");
    }
    expect(existsSync(join(project.path, "done"))).to.equal(false);
  });

  it("names a read-only file system as the cause", async () => {
    execFileSync("mount", ["-o", "remount,ro", records]);
    const { code, stderr } = await project.kcore("state", "apply", "note", "--on", "here");
    expect(code).to.equal(2);
    expect(stderr).to.contain("the file system is read-only  [RUN_RECORD_UNWRITABLE]");
    expect((await project.kcore("ping", "--on", "here")).stderr).to.contain("read-only  [RUN_RECORD_UNWRITABLE]");
  });
});
