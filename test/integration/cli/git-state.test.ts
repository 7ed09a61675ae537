import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { gitState } from "#cli/process/git-state.ts";

describe("the git revision of a project", () => {
  let top: string;
  let project: string;
  const git = (...words: string[]) =>
    execFileSync("git", ["-C", top, "-c", "user.name=a", "-c", "user.email=a@b", ...words], {
      encoding: "utf8",
    }).trim();
  beforeEach(() => {
    top = realpathSync(mkdtempSync(join(tmpdir(), "kcore-git-")));
    mkdirSync((project = join(top, "deep", "project")), { recursive: true });
    writeFileSync(join(project, "file"), "one\n");
  });
  afterEach(() => rmSync(top, { recursive: true, force: true }));

  function commit(): string {
    git("init", "-q");
    git("add", ".");
    git("commit", "-q", "-m", "one");
    return git("rev-parse", "HEAD");
  }

  it("is empty outside a repository", async () => {
    expect(await gitState(project)).to.deep.equal({});
  });

  it("is dirty after a change or a new file within the project, not elsewhere in the repository", async () => {
    const revision = commit();
    writeFileSync(join(top, "elsewhere"), "");
    expect(await gitState(project)).to.deep.equal({ revision, dirty: false });
    writeFileSync(join(project, "new"), "");
    expect(await gitState(project)).to.deep.equal({ revision, dirty: true });
    rmSync(join(project, "new"));
    writeFileSync(join(project, "file"), "two\n");
    expect(await gitState(project)).to.deep.equal({ revision, dirty: true });
  });

  it("is dirty and has no revision before the first commit", async () => {
    git("init", "-q");
    expect(await gitState(project)).to.deep.equal({ dirty: true });
  });

  it("has no dirty flag when git cannot read its index", async () => {
    const revision = commit();
    writeFileSync(join(top, ".git", "index"), "no index");
    expect(await gitState(project)).to.deep.equal({ revision });
  });

  it("is found through a symbolic link", async () => {
    const revision = commit();
    const link = mkdtempSync(join(tmpdir(), "kcore-link-"));
    try {
      symlinkSync(project, join(link, "project"));
      expect(await gitState(join(link, "project"))).to.deep.equal({ revision, dirty: false });
    } finally {
      rmSync(link, { recursive: true, force: true });
    }
  });
});
