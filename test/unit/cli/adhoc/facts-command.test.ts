import { expect } from "chai";
import { nodesAndPaths } from "#cli/adhoc/facts-command.ts";

describe("the arguments of kcore facts", () => {
  it("are a target, then paths; with --diff each argument that is no fact's path is a target", () => {
    expect(nodesAndPaths("n1", ["os.id"], {})).to.deep.equal({ on: ["n1"], paths: ["os.id"] });
    expect(nodesAndPaths("n1", ["os.id", "n2", "memory"], { diff: true })).to.deep.equal({
      on: ["n1", "n2"],
      paths: ["os.id", "memory"],
    });
  });

  it("are only paths with --on", () =>
    expect(nodesAndPaths("os.id", ["memory"], { on: ["n1"] })).to.deep.equal({
      on: ["n1"],
      paths: ["os.id", "memory"],
    }));
});
