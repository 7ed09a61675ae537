import { expect } from "chai";
import { shortAge, since, until } from "#tui/age.ts";
import { nameOf } from "#cli/node/change-nodes.ts";
import { findNode, findNodes } from "#cli/node/find-node.ts";
import { readLabelChanges, readTaintChanges } from "#cli/node/label-changes.ts";
import { selectNodes } from "#cli/get/selectors.ts";
import { problemsIn } from "#support/problems.ts";

const nodes = [
  { id: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11", hostname: "n1", dc: "DC1", labels: { tier: "ssd", gpu: "" } },
  { id: "6f1c2a52-0000-4f0e-9a50-0d8a3b0f4e12", hostname: "n2", dc: "DC2", labels: { tier: "hdd" } },
  { id: "7a000000-0000-4f0e-9a50-0d8a3b0f4e13", hostname: "twin", dc: "DC2", labels: {} },
  { id: "8b000000-0000-4f0e-9a50-0d8a3b0f4e14", hostname: "twin", dc: "DC2", labels: {} },
];

describe("findNode", () => {
  it("takes an id, a host name, or the beginning of an id", () => {
    expect(findNode(nodes, "n2").id).to.equal(nodes[1]?.id);
    expect(findNode(nodes, nodes[3]?.id ?? "").id).to.equal(nodes[3]?.id);
    expect(findNode(nodes, "7a00").hostname).to.equal("twin");
  });

  it("refuses what fits several, and names the candidates", () => {
    expect(problemsIn(() => findNode(nodes, "twin"))[0]).to.contain("“twin” fits 2 nodes [NODE_AMBIGUOUS]");
    expect(problemsIn(() => findNode(nodes, "6f1c2a52"))[0]).to.contain("[NODE_AMBIGUOUS]");
    expect(problemsIn(() => findNode(nodes, "7a0"))[0]).to.contain("[NODE_UNKNOWN]");
  });

  it("S-4: is not led astray by a node that calls itself like the beginning of another's id", () => {
    const rogue = { ...nodes[0], id: "ffffffff-0000-4f0e-9a50-0d8a3b0f4e15", hostname: "7a000000" };
    expect(problemsIn(() => findNode([...nodes, rogue], "7a000000"))[0]).to.contain("[NODE_AMBIGUOUS]");
  });

  it("S-4: a node's name in a result cannot drive the terminal", () => {
    expect(nameOf({ hostname: "\u001B[2Jn1\n", id: "7a" })).to.equal("n1  (7a)");
  });

  it("tells all words that name nothing, and each node once", () => {
    expect(problemsIn(() => findNodes(nodes, ["n1", "n9", "nope"]))).to.have.length(2);
    expect(problemsIn(() => findNodes(nodes, ["twni"]))[0]).to.contain("did you mean “twin”?");
    expect(findNodes(nodes, ["n1", nodes[0]?.id ?? ""])).to.have.length(1);
  });
});

describe("selectNodes", () => {
  const names = (selector: readonly string[], dc: readonly string[] = []) =>
    selectNodes(nodes, { selector, dc }).map(({ hostname }) => hostname);

  it("takes all of several label terms, and one of several datacenters", () => {
    expect(names(["tier=ssd"])).to.deep.equal(["n1"]);
    expect(names(["tier!=ssd"])).to.deep.equal(["n2", "twin", "twin"]);
    expect(names(["tier,!gpu"])).to.deep.equal(["n2"]);
    expect(names(["gpu="])).to.deep.equal(["n1"]);
    expect(names(["tier==hdd", "!gpu"], ["DC2", "DC9"])).to.deep.equal(["n2"]);
    expect(names([], ["DC1"])).to.deep.equal(["n1"]);
  });

  it("refuses what is no selector", () => {
    for (const text of ["", "a b", "!a=b", "=x", "a=b=c"])
      expect(problemsIn(() => names([text]))[0], text).to.contain("is no label selector [USAGE]");
  });
});

describe("changes of labels and taints", () => {
  it("sets with key=value and takes away with key-", () => {
    expect(readLabelChanges(["tier=ssd", "empty=", "a=b=c", "old-"])).to.deep.equal({
      set: { tier: "ssd", empty: "", a: "b=c" },
      remove: ["old"],
    });
    expect(readTaintChanges(["dedicated=gpu:NoSchedule", "maintenance:NoExecute", "old-"])).to.deep.equal({
      set: [
        { key: "dedicated", value: "gpu", effect: "NoSchedule" },
        { key: "maintenance", value: "", effect: "NoExecute" },
      ],
      remove: ["old"],
    });
  });

  it("refuses what it does not understand, all at once, with a suggestion", () => {
    expect(problemsIn(() => readLabelChanges(["tier", "-", "ok=1"]))).to.have.length(2);
    expect(problemsIn(() => readLabelChanges(["a=1", "a-"]))[0]).to.contain("changes a twice");
    expect(problemsIn(() => readTaintChanges(["a=b:NoSchedul"]))[0]).to.contain("did you mean “NoSchedule”?");
    expect(problemsIn(() => readTaintChanges(["a=b"]))[0]).to.contain("names no effect");
  });
});

describe("ages", () => {
  it("are short, and change their unit at two of it", () => {
    const seconds = [0, 119, 120, 7199, 7200, 172_799, 172_800];
    expect(seconds.map((second) => shortAge(second * 1000))).to.deep.equal([
      "0s",
      "119s",
      "2m",
      "119m",
      "2h",
      "47h",
      "2d",
    ]);
    expect(since("", 0)).to.equal("-");
    expect(until("1970-01-01T00:00:01Z", 2000)).to.equal("expired");
  });
});
