import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";

describe("values in local.command", () => {
  let project: TestProject;
  const said = (command: string): Readonly<Record<string, string>> => ({
    "orchestrate/say.yaml": `params:\n  what: { type: string, required: true }\nstages:\n  - { id: say, run: local.command, command: "${command}" }\n`,
  });
  afterEach(() => project.remove());

  it("become no syntax of the bastion's shell", async () => {
    project = new TestProject(said("echo {{params.what}}"));
    const refused = await project.kcore("orchestrate", "say", "--set", "what=a; touch came");
    expect(refused.code, refused.stdout).not.to.equal(0);
    expect(`${refused.stdout}${refused.stderr}`)
      .to.contain("orchestrate/say.yaml:4:51")
      .and.contain("[EXPRESSION_UNQUOTED]")
      .and.contain("write {{shell params.what}}");
    expect(existsSync(join(project.project, "came"))).to.equal(false);
  });

  it("O10: a notice comes when no node of a run is left, as notify.yaml and the run itself have it", async () => {
    project = new TestProject({
      "states/web.yaml": "steps:\n  - { id: a, command.run: { cmd: 'false' } }\n",
      "orchestrate/web.yaml": `stages:
  - { id: web, on: "*", apply: [web] }
  - { id: close, run: local.command, command: [touch, closed] }
onFailure:
  - { id: tell, run: local.command, command: [touch, failed] }
`,
      "notify.yaml": "- { on: [failure], command: [sh, -c, 'cat >told'] }\n- { on: [failure], command: ['false'] }\n",
    });
    const run = await project.kcore("orchestrate", "web");
    expect(run.code, run.stderr).to.equal(1);
    for (const file of ["closed", "failed", "told"])
      expect(existsSync(join(project.project, file)), `${file}: ${run.stdout}${run.stderr}`).to.equal(true);
    const told = JSON.parse(readFileSync(join(project.project, "told"), "utf8")) as { outcome: string; nodes: object };
    expect(told.outcome).to.equal("failed");
    expect(Object.keys(told.nodes)).not.to.deep.equal([]);
    expect(`${run.stdout}${run.stderr}`).to.include("false was not told: exit code 1");
  });

  it("are one word where they are quoted", async () => {
    project = new TestProject(said("touch {{shell params.what}}"));
    const { code, stderr } = await project.kcore("orchestrate", "say", "--set", "what=a; touch came");
    expect(code, stderr).to.equal(0);
    expect(existsSync(join(project.project, "a; touch came"))).to.equal(true);
  });
});
