import { existsSync } from "node:fs";
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

  it("are one word where they are quoted", async () => {
    project = new TestProject(said("touch {{shell params.what}}"));
    const { code, stderr } = await project.kcore("orchestrate", "say", "--set", "what=a; touch came");
    expect(code, stderr).to.equal(0);
    expect(existsSync(join(project.project, "a; touch came"))).to.equal(true);
  });
});
