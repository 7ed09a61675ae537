import { expect } from "chai";
import { buildProgram } from "#cli/program.ts";

describe("the help of an orchestration", () => {
  it("lists its parameters", async () => {
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
