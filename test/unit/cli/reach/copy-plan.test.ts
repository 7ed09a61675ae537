import { expect } from "chai";
import { copyPlan, forNode } from "#cli/reach/copy-plan.ts";
import { KcoreError } from "#errors/problem.ts";

const refused = (words: readonly string[], on?: readonly string[]): string => {
  try {
    copyPlan(words, on);
  } catch (error) {
    if (error instanceof KcoreError) return error.message;
  }
  throw new Error("not refused");
};

describe("copyPlan", () => {
  it("tells the node's side from this machine's, as scp does", () => {
    expect(copyPlan(["a", "n1:/b"])).to.deep.equal({
      isFetch: false,
      sources: ["a"],
      destination: "/b",
      on: ["n1"],
    });
    expect(copyPlan(["n1:/a", "./x:y"])).to.include({ isFetch: true, destination: "./x:y" });
    expect(copyPlan(["a", ":/b"], ["role:web"])).to.deep.include({ isFetch: false, on: ["role:web"] });
  });

  it("puts several sources into the destination", () => {
    expect(copyPlan(["a", "b", "n1:/c"]).destination).to.equal("/c/");
  });

  it("refuses copies that it cannot mean", () => {
    expect(refused(["a"])).to.include("needs a source");
    expect(refused(["a", "b"])).to.include("from here to nodes");
    expect(refused(["n1:/a", "n2:/b"])).to.include("from here to nodes");
    expect(refused(["n1:/a", "b", "c"])).to.include("from here to nodes");
    expect(refused(["a", "n1:b"])).to.include("begins with /");
    expect(refused(["a", ":/b"])).to.include("--on");
    expect(refused(["a", "n1:/b"], ["n2"])).to.include("--on names the nodes");
    expect(refused(["a", "role*:/b"])).to.include("one node");
    expect(refused(["a\nb", "n1:/b"])).to.include("no path");
  });

  it("wants the node's name in what several nodes write here", () => {
    expect(refused([":/a", "out"], ["*"])).to.include("every node");
    expect(copyPlan([":/a", "out/{{ node.name }}/"], ["*"]).destination).to.equal("out/{{ node.name }}/");
    expect(forNode("out/{{node.name}}/$&", "n$1")).to.equal("out/n$1/$&");
  });
});
