import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";

describe("reports of a run", () => {
  let project: TestProject;
  before(() => {
    project = new TestProject({
      "states/hello.yaml": `steps:\n  - id: hello\n    command.run: { cmd: "echo 'hello <b>'" }\n`,
      "orchestrate/hello.yaml": `params:\n  nodes: { type: target, required: true }\nstages:\n  - { id: greet, on: "{{params.nodes}}", apply: [hello] }\n`,
    });
  });
  after(() => project.remove());

  it("are written at the end of an orchestration, in the format of each name, readable for the owner only", async () => {
    const ended = await project.kcore("orchestrate", "hello", "here", "--report", "run.html", "--report", "run.xml");
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stderr).to.equal("Report written: run.html\nReport written: run.xml\n");
    const page = readFileSync(join(project.project, "run.html"), "utf8");
    expect(page).to.include("hello &lt;b&gt;").and.include("nodes/here.log");
    expect(readFileSync(join(project.project, "run.xml"), "utf8")).to.match(/^<\?xml/);
    for (const name of ["run.html", "run.xml"])
      expect(statSync(join(project.project, name)).mode & 0o777).to.equal(0o600);
  });

  it("are written silently with --quiet when nothing fails", async () => {
    const ended = await project.kcore("orchestrate", "hello", "here", "--quiet", "--report", "quiet.xml");
    expect(ended.stderr).to.equal("");
    expect(readFileSync(join(project.project, "quiet.xml"), "utf8")).to.match(/^<\?xml/);
  });

  it("are written for a failed run of state apply, and leave its exit code", async () => {
    const ended = await project.kcore("state", "apply", "hello", "--on", "gone", "--report", "failed.html");
    expect(ended.code, ended.stderr).to.equal(3);
    expect(readFileSync(join(project.project, "failed.html"), "utf8")).to.include("HOST_UNREACHABLE");
  });

  it("are written later from the record by runs show --html", async () => {
    const ended = await project.kcore("runs", "show", "last", "--html", "later.html");
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stdout).to.equal("");
    expect(readFileSync(join(project.project, "later.html"), "utf8")).to.match(/^<!doctype html>/);
  });

  it("are refused before the run for an unknown extension or a missing folder", async () => {
    const before = (await project.kcore("runs", "list", "-o", "json")).stdout;
    const words = "state apply hello --on here --report run.pdf --report no/run.html";
    const ended = await project.call(words.split(" "));
    expect(ended.code).to.equal(2);
    expect(ended.stderr).to.include("REPORT_KIND_UNKNOWN").and.include("REPORT_UNWRITABLE");
    expect((await project.kcore("runs", "list", "-o", "json")).stdout).to.equal(before);
  });
});
