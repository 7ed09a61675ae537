import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject, type CommandEnd } from "#support/kcore.ts";

describe("a run that asks for a commit (--require-clean, --require-signed)", () => {
  let project: TestProject;
  const file = (): string => join(project.path, "issue");
  const apply = (...words: readonly string[]): Promise<CommandEnd> =>
    project.kcore("state", "apply", "issue", "--on", "here", ...words);
  const git = (...words: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", "-C", project.project, ...words], {
      encoding: "utf8",
    }).trim();
  const refused = async (code: string, ...words: readonly string[]): Promise<string> => {
    const end = await apply(...words);
    expect([end.code, existsSync(file())], end.stdout).to.deep.equal([2, false]);
    expect(end.stderr).to.contain(code);
    return end.stderr;
  };

  beforeEach(() => {
    project = new TestProject({ ".gitignore": ".kcore/\n" });
    project.write({
      "project/states/issue.yaml": `steps: [{ id: issue, file.managed: { path: ${file()}, content: one } }]\n`,
    });
    git("init", "--quiet");
    git("add", "--all");
    git("commit", "--quiet", "--message", "one");
  });
  afterEach(() => project.remove());

  it("is refused with files that differ from the commit, by their names, and accepted without them", async () => {
    project.write({ "project/new file": "", "project/orchestrate/README.md": "changed" });
    expect(await refused("PROJECT_DIRTY", "--require-clean")).to.contain("orchestrate/README.md, new file");
    expect((await project.kcore("runs", "list", "-o", "json")).stdout).to.contain('"refused"');
    rmSync(join(project.project, "new file"));
    git("checkout", "--quiet", ".");
    expect((await apply("--require-clean")).code).to.equal(0);
  });

  it("is refused by the settings of the project, but not a dry run; kcore check tells wrong settings", async () => {
    project.write({ "project/kcore.yaml": "runs: { requireClean: true }\n" });
    expect(await refused("PROJECT_DIRTY")).to.contain("kcore.yaml");
    expect((await apply("--dry-run")).code).to.equal(0);
    expect((await apply("--dry-run", "--require-clean")).code).to.equal(2);
    project.write({ "project/kcore.yaml": "runs: { requireclean: true }\n" });
    expect((await project.kcore("check")).stderr)
      .to.contain("kcore.yaml:1:9")
      .and.contain("requireClean");
  });

  it("is refused at a commit without a signature, and outside of git", async () => {
    expect(await refused("COMMIT_UNSIGNED", "--require-signed")).to.contain(git("rev-parse", "--short=12", "HEAD"));
    rmSync(join(project.project, ".git"), { recursive: true });
    await refused("PROJECT_DIRTY", "--require-clean");
  });

  it("leaves the commit of each node, whole or in part, beside the records of runs", async () => {
    const kept = (): object =>
      JSON.parse(readFileSync(join(project.project, ".kcore/applied/here.json"), "utf8")) as object;
    await apply("--dry-run");
    expect(existsSync(join(project.project, ".kcore/applied"))).to.equal(false);
    await apply();
    const revision = git("rev-parse", "HEAD");
    expect(kept()).to.deep.include({
      revision,
      dirty: false,
      isWhole: true,
      what: { kind: "state", names: ["issue"] },
    });
    project.write({
      "project/states/issue.yaml": `steps: [{ id: a, file.managed: { path: ${file()}, content: two } }, { id: b, command.run: { cmd: "false" } }]\n`,
    });
    expect((await apply()).code).to.equal(1);
    expect(kept()).to.include({ revision, dirty: true, isWhole: false });
    await project.kcore("runs", "prune", "--keep", "0", "--resumable");
    expect(kept()).to.include({ revision });
  });

  it("tells the drift of what each node got last, of named states, and of nothing that was never applied", async () => {
    expect((await project.kcore("drift", "--on", "here")).stderr)
      .to.contain("USAGE")
      .and.contain("kcore drift web");
    await apply();
    expect((await project.kcore("drift")).stdout).to.contain("no step differs");
    project.write({ issue: "by hand" });
    const { code, stdout } = await project.kcore("drift", "-o", "json");
    const [node] = (JSON.parse(stdout) as { nodes: { node: string; differs: { title: string }[] }[] }).nodes;
    expect([code, node?.node, node?.differs.map(({ title }) => title)]).to.deep.equal([4, "here", ["issue"]]);
    expect((await project.kcore("drift", "issue", "--on", "gone")).code).to.equal(3);
    expect(readFileSync(file(), "utf8")).to.equal("by hand");
  });
});
