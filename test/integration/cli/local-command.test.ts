import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";

describe("actions and notices of a run whose nodes all failed", () => {
  let project: TestProject;
  afterEach(() => project.remove());

  it("runs the remaining actions, the onFailure stage and the commands of notify.yaml, and reports a notice that fails", async () => {
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
    const notice = JSON.parse(readFileSync(join(project.project, "told"), "utf8")) as {
      outcome: string;
      nodes: object;
    };
    expect(notice.outcome).to.equal("failed");
    expect(Object.keys(notice.nodes)).not.to.deep.equal([]);
    expect(`${run.stdout}${run.stderr}`).to.include("false was not told: exit code 1");
  });
});
