import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { eventually } from "#support/cluster.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";

describe("a run that is bound to a plan (--plan)", () => {
  let project: TestProject;
  const file = (): string => join(project.path, "issue");
  const apply = (...words: readonly string[]): Promise<CommandEnd> =>
    project.kcore("state", "apply", "issue", "--on", "here", ...words);
  const git = (...words: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", "-C", project.project, ...words], {
      encoding: "utf8",
    });
  const state = (text: string): Readonly<Record<string, string>> => ({
    "project/states/issue.yaml": `steps: [{ id: issue, file.managed: { path: ${file()}, content: "${text}" } }]\n`,
  });
  const refused = async (...words: readonly string[]): Promise<string> => {
    const { code, stderr } = await apply(...words);
    expect(code, stderr).to.equal(2);
    expect(existsSync(file()), "nothing was changed").to.equal(false);
    return stderr;
  };

  beforeEach(async () => {
    project = new TestProject({ ".gitignore": ".kcore/\n*.json\n*.md\n" });
    project.write(state("one"));
    git("init", "--quiet");
    git("add", "--all");
    git("commit", "--quiet", "--message", "one");
    const { code, stderr } = await apply("--dry-run", "--report", "plan.json", "--report", "plan.md");
    expect(code, stderr).to.equal(0);
  });
  afterEach(() => project.remove());

  it("does what the plan lists after a dry run that confirms the plan", async () => {
    const { code, stderr } = await apply("--plan", "plan.json");
    expect(code, stderr).to.equal(0);
    expect(readFileSync(file(), "utf8")).to.equal("one");
    const runs = JSON.parse((await project.kcore("runs", "list", "-o", "json")).stdout) as { dryRun: boolean }[];
    expect(runs.map(({ dryRun }) => dryRun)).to.deep.equal([true, true, false]);
  });

  it("is refused at another commit and with uncommitted changes", async () => {
    project.write(state("two"));
    expect(await refused("--plan", "plan.json"))
      .to.contain("PLAN_OUTDATED")
      .and.contain("with uncommitted changes");
    git("commit", "--quiet", "--all", "--message", "two");
    expect(await refused("--plan", "plan.json")).to.match(/was made at commit \w{12}, and the project is at \w{12}/);
  });

  it("is refused when the node has drifted since the plan, naming the steps", async () => {
    writeFileSync(file(), "by hand");
    const { code, stderr } = await apply("--plan", "plan.json");
    expect([code, stderr.includes("would change issue on here: otherwise than planned")], stderr).to.deep.equal([
      2,
      true,
    ]);
    expect(readFileSync(file(), "utf8")).to.equal("by hand");
    writeFileSync(file(), "one");
    expect((await apply("--plan", "plan.json")).stderr).to.contain("would change issue on here: no longer");
  });

  it("is refused for other nodes, another machine of the same name, other options or another state", async () => {
    const plan = JSON.parse(readFileSync(join(project.project, "plan.json"), "utf8")) as object;
    const put = (more: object): void =>
      writeFileSync(join(project.project, "plan.json"), JSON.stringify({ ...plan, ...more }));
    put({ nodes: [{ name: "elsewhere" }] });
    expect(await refused("--plan", "plan.json")).to.contain("it is for elsewhere, not for here");
    put({ nodes: [{ name: "here", place: "root@192.0.2.1:22" }] });
    expect(await refused("--plan", "plan.json"), "another address").to.contain(
      "here is this machine now, and the plan was made for root@192.0.2.1:22",
    );
    put({ asked: { params: {}, skipHealth: true, context: "lab" } });
    expect(await refused("--plan", "plan.json")).to.contain(
      "made for another --context; it was made with --skip-health",
    );
    put({ title: "state apply other" });
    expect(await refused("--plan", "plan.json")).to.contain("for “state apply other”, not for “state apply issue”");
  });

  it("is refused with other parameters even when the steps look the same", async () => {
    project.write({
      "project/states/issue.yaml": `params: { a: { type: string } }\nsteps: [{ id: issue, command.run: { cmd: "echo {{params.a}} >${file()}" } }]\n`,
    });
    git("commit", "--quiet", "--all", "--message", "a");
    expect((await apply("--set", "a=1", "--dry-run", "--report", "plan.json")).code).to.equal(0);
    expect(await refused("--set", "a=2", "--plan", "plan.json")).to.contain("it was made with other parameters: a");
    expect((await apply("--params", '{"a":"1"}', "--plan", "plan.json")).code).to.equal(0);
    expect(readFileSync(file(), "utf8")).to.equal("1\n");
  });

  it("is refused with a file that is no plan: no JSON, a real run, a failed dry run, an uncommitted project", async () => {
    const refusedWith = async (text: string): Promise<string> => {
      writeFileSync(join(project.project, "plan.json"), text);
      return refused("--plan", "plan.json");
    };
    const plan = JSON.parse(readFileSync(join(project.project, "plan.json"), "utf8")) as object;
    expect(await refusedWith("# a plan\n"))
      .to.contain("PLAN_INVALID")
      .and.contain("it is no JSON");
    expect(await refusedWith("{}")).to.contain("“id” is missing or wrong");
    expect(await refusedWith(JSON.stringify({ ...plan, dryRun: false }))).to.contain("not of a dry run");
    expect(await refusedWith(JSON.stringify({ ...plan, state: "failed" }))).to.contain("did not come to a good end");
    expect(await refusedWith(JSON.stringify({ ...plan, dirty: true }))).to.contain("not committed");
    expect(await refusedWith(JSON.stringify({ ...plan, revision: undefined }))).to.contain("not under git");
    rmSync(join(project.project, "plan.json"));
    expect(await refused("--plan", "plan.json")).to.contain("FILE_UNREADABLE");
  });

  it("reports why its dry run failed", async () => {
    const { code, stderr } = await project.kcore("state", "apply", "issue", "--on", "gone", "--plan", "plan.json");
    expect(code, stderr).to.equal(3);
    expect(stderr).to.contain("the dry run before the run failed").and.contain("HOST_UNREACHABLE");
  });

  it("exits 4 with --fail-on-change when a dry run would change something, and only then", async () => {
    const asked = await apply("--dry-run", "--fail-on-change");
    expect(asked.code, asked.stderr).to.equal(4);
    expect(asked.stdout).to.contain("kcore state apply issue --on here   do it");
    expect((await apply()).code).to.equal(0);
    expect((await apply("--dry-run", "--fail-on-change")).code).to.equal(0);
    for (const words of [[], ["--dry-run", "--detach"]])
      expect((await apply("--fail-on-change", ...words)).stderr).to.contain("USAGE");
    expect((await apply("--plan", "plan.json", "--dry-run")).code).to.equal(2);
  });

  it("exits 130 with --fail-on-change when the view ends before the dry run", async () => {
    const gate = join(project.path, "gate");
    execFileSync("mkfifo", [gate]);
    project.write({
      "project/states/issue.yaml": `steps: [{ id: issue, unless: "cat ${gate}", command.run: { cmd: "true" } }]\n`,
    });
    const { child, ended } = project.start("state apply issue --on here --dry-run --fail-on-change".split(" "));
    let shown = "";
    child.stderr?.on("data", (text: string) => (shown += text));
    child.stdout?.destroy();
    await eventually(() => shown.includes("The run goes on"));
    await writeFile(gate, "");
    expect((await ended).code, shown).to.equal(130);
  });

  it("is written as Markdown by --report and by runs export, identically", async () => {
    const text = readFileSync(join(project.project, "plan.md"), "utf8");
    expect(text).to.contain("#### Would change").and.contain("+one");
    expect((await project.kcore("runs", "export", "last", "--format", "markdown")).stdout).to.equal(text);
  });
});
