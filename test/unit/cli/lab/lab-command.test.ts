import { expect } from "chai";
import { labCommand } from "#cli/lab/lab-command.ts";

describe("kcore lab", () => {
  it("has flags for another lab at every command", () => {
    for (const command of labCommand().commands) {
      expect(command.options.map(({ long }) => long)).to.include.members(["--name", "--bridge", "--net"]);
    }
  });
});
