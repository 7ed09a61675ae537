import { expect } from "chai";
import { complete } from "#cli/completion/candidates.ts";
import { buildProgram } from "#cli/program.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("kcore orchestrate", () => {
  const project = folderOfEachTest("orchestrate");

  it("show completes the names of orchestrations", async () => {
    const before = process.cwd();
    process.chdir(project());
    try {
      const words = ["orchestrate", "show", "deploy_n"];
      const { candidates } = await complete(await buildProgram(words), words);
      expect(candidates.map(({ value }) => value)).to.deep.equal(["deploy_node"]);
    } finally {
      process.chdir(before);
    }
  });

  it("lists the parameters of an orchestration in its help", async () => {
    const words = ["orchestrate", "deploy_node", "--help"];
    const program = await buildProgram(words);
    let help = "";
    const command = program.commands.find((one) => one.name() === "orchestrate");
    command?.configureOutput({ writeOut: (text) => (help += text) });
    await program.parseAsync(words, { from: "user" }).catch(() => undefined);
    expect(help)
      .to.contain("Parameters of deploy_node")
      .and.to.match(/^node_name +target +required/m);
  });
});
