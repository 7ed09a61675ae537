import { expect } from "chai";
import { differingFacts, drawDifferences, drawFacts, drawPaths, type FactsAnswer } from "#cli/adhoc/draw-facts.ts";
import { shapeFacts } from "#engine/facts/shape.ts";

const n1 = shapeFacts({
  "os.id": "debian",
  uptimeSeconds: "7",
  "network.addresses": "192.0.2.1\n192.0.2.2",
  disks: "sda\t9",
});
const n2 = shapeFacts({ "os.id": "alpine", uptimeSeconds: "9", "network.addresses": "192.0.2.3", disks: "" });
const gone: FactsAnswer = {
  node: "n3",
  outcome: "unreachable",
  problem: { code: "HOST_UNREACHABLE", message: "n3 does not answer" },
};
const nodes: readonly FactsAnswer[] = [
  { node: "n1", facts: n1 },
  { node: "n2", facts: n2 },
];

describe("the facts of nodes", () => {
  it("are listed node by node, without unknown facts", () =>
    expect(drawFacts([{ node: "n1", facts: n1, gathered: 1000 }, gone], 61_000)).to.equal(
      [
        "n1  (1 min 00 s ago)",
        "  uptimeSeconds: 7",
        "  os.id: debian",
        "  network.addresses: 192.0.2.1, 192.0.2.2",
        "  disks.0.name: sda",
        "  disks.0.bytes: 9",
        "n3  n3 does not answer",
        "",
      ].join("\n"),
    ));

  it("are a table if the command names paths", () => {
    expect(
      drawPaths([...nodes, gone], ["os.id", "network.addresses.1", "disks.0"])
        .split("\n")
        .slice(0, 2),
    ).to.deep.equal([
      "NODE                    os.id   network.addresses.1  disks.0",
      `n1                      debian  192.0.2.2            ${JSON.stringify((n1["disks"] as unknown[])[0])}`,
    ]);
    expect(drawPaths(nodes.slice(1), ["os.codename", "disks"])).to.equal(
      "NODE  os.codename  disks\nn2    -            none\n",
    );
  });

  it("are compared without facts that always change, unless a path names one", () => {
    expect(drawDifferences(["n1", "n2"], differingFacts(nodes, []))).to.equal(
      [
        "FACT               n1                    n2",
        "os.id              debian                alpine",
        "network.addresses  192.0.2.1, 192.0.2.2  192.0.2.3",
        "disks.0.name       sda                   -",
        "disks.0.bytes      9                     -",
        "disks              -                     none",
        "",
      ].join("\n"),
    );
    expect(differingFacts(nodes, ["uptimeSeconds", "kernel"])).to.deep.equal([
      { fact: "uptimeSeconds", values: { n1: 7, n2: 9 } },
    ]);
    expect(drawDifferences(["n1"], [])).to.equal("no differences\n");
  });

  it("S-4: contain no escape sequences", () => {
    const facts = shapeFacts({ hostname: "\u001b[2Jx", "network.interfaces": "\u001b[1m\tm" });
    const drawn = drawFacts([{ node: "n1", facts }], 0) + drawPaths([{ node: "n1", facts }], ["hostname"]);
    expect([drawn.includes("hostname: x"), drawn.includes("\u001b")]).to.deep.equal([true, false]);
  });
});
