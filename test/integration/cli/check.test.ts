import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";
import { kcoreEnvironment } from "#support/program.ts";
import { readPages } from "#support/pages.ts";

describe("kcore check", () => {
  let project: TestProject;
  beforeEach(() => (project = new TestProject({ "states/a.yaml": "steps: [{ id: a, file.absent: { path: /a } }]\n" })));
  afterEach(() => project.remove());
  const writeInvalidState = () =>
    project.write({ "project/states/b.yaml": "steps: [{ id: a, file.absent: { path: a } }]\n" });

  it("exits 0 for a valid project, and 2 with every problem of an invalid one", async () => {
    expect(await project.call(["check"])).to.deep.equal({
      code: 0,
      stdout: "1 state and 0 orchestrations, 2 nodes: in order\n",
      stderr: "",
    });
    writeInvalidState();
    const text = await project.call(["check"]);
    expect([text.code, text.stdout]).to.deep.equal([2, ""]);
    expect(text.stderr).to.contain("states/b.yaml:1:39");
    const json = await project.call(["check", "-o", "json"]);
    expect(json.code).to.equal(2);
    expect(JSON.parse(json.stdout)).to.have.nested.property("problems[0].at.file", "states/b.yaml");
    const github = await project.call(["check", "-o", "github"]);
    expect(github.code).to.equal(2);
    expect(github.stdout).to.match(/^::error file=states\/b\.yaml,line=1,col=39,/);
    expect((await project.call(["check", "states/a.yaml"])).code).to.equal(0);
    expect((await project.call(["check", "nope.yaml"])).stderr).to.contain("there is no file nope.yaml");
  });

  it("reports a module of the project that has a shipped module's name, even when no state uses it", async () => {
    project.write({ "project/modules/file.managed.yaml": "summary: x\nwant: { a: b }\nprobe: fact a b\n" });
    for (const words of [["check"], ["check", "modules/file.managed.yaml"]]) {
      const { code, stderr } = await project.call(words);
      expect([code, stderr.includes("has the name of a module that is shipped")], stderr).to.deep.equal([2, true]);
    }
  });

  it("refuses a commit through the pre-commit hook that docs/checking.md shows", async () => {
    const line = readPages()
      .flatMap(({ blocks }) => blocks)
      .find(({ page, text }) => page === "docs/checking.md" && text.includes("pre-commit &&"))?.text;
    const launcher = join(import.meta.dirname, "../../../bin");
    const env = { ...process.env, ...kcoreEnvironment, PATH: `${launcher}:${process.env["PATH"] ?? ""}` };
    const run = (...words: readonly string[]) =>
      spawnSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...words], {
        cwd: project.project,
        env,
        encoding: "utf8",
      });
    run("init", "--quiet");
    execFileSync("sh", ["-c", line ?? "false"], { cwd: project.project });
    run("add", "-A");
    expect(run("commit", "-m", "fine").status).to.equal(0);
    writeInvalidState();
    run("add", "-A");
    const refused = run("commit", "-m", "broken");
    expect(refused.status).not.to.equal(0);
    expect(refused.stderr).to.contain("states/b.yaml:1:39");
  });
});
