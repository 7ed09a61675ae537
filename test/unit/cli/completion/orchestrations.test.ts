import { expect } from "chai";
import { complete } from "#cli/completion/candidates.ts";
import { buildProgram } from "#cli/program.ts";
import { inProject } from "#support/in-project.ts";

describe("the completion of an orchestration's name", () => {
  it("offers shipped orchestrations", () =>
    inProject({}, async (project) => {
      const before = process.cwd();
      process.chdir(project);
      try {
        const words = ["orchestrate", "show", "deploy_n"];
        const { candidates } = await complete(await buildProgram(words), words);
        expect(candidates.map(({ value }) => value)).to.deep.equal(["deploy_node"]);
      } finally {
        process.chdir(before);
      }
    }));
});
