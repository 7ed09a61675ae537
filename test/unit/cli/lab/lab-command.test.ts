import { expect } from "chai";
import { labCommand } from "#cli/lab/lab-command.ts";

describe("kcore lab", () => {
  it("has the commands that its page describes", () => {
    const names = labCommand().commands.map((command) => command.name());
    expect(names).to.deep.equal(
      "up down list ssh power-cut start cut heal unplug plug console disks roster".split(" "),
    );
  });

  it("lets every command name another lab", () => {
    for (const command of labCommand().commands) {
      expect(command.options.map(({ long }) => long)).to.include.members(["--name", "--bridge", "--net"]);
    }
  });

  it("refuses a number of nodes that is none, before it does anything", async () => {
    const lab = labCommand().exitOverride();
    for (const command of lab.commands) command.exitOverride().configureOutput({ writeErr: () => {} });
    let code = "";
    await lab.parseAsync(["up", "many"], { from: "user" }).catch((error: { code: string }) => (code = error.code));
    expect(code).to.equal("commander.invalidArgument");
  });
});
