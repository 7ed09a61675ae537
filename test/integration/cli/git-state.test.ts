import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { gitState } from "#cli/process/git-state.ts";

describe("what git says of a project", () => {
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

  it("is nothing without a repository", async () => {
    expect(await gitState(project)).to.deep.equal({});
  });

  it("tells files that differ and files that are new, in the project only", async () => {
    const revision = commit();
    writeFileSync(join(top, "elsewhere"), "");
    expect(await gitState(project)).to.deep.equal({ revision, dirty: false });
    writeFileSync(join(project, "new"), "");
    expect(await gitState(project)).to.deep.equal({ revision, dirty: true });
    rmSync(join(project, "new"));
    writeFileSync(join(project, "file"), "two\n");
    expect(await gitState(project)).to.deep.equal({ revision, dirty: true });
  });

  it("is dirty without a commit", async () => {
    git("init", "-q");
    expect(await gitState(project)).to.deep.equal({ dirty: true });
  });

  it("is the commit alone where the files cannot be looked at", async () => {
    const revision = commit();
    writeFileSync(join(top, ".git", "index"), "no index");
    expect(await gitState(project)).to.deep.equal({ revision });
  });

  it("is found behind a link", async () => {
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
