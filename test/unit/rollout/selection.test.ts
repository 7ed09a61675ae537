import { expect } from "chai";
import { selectionFaults, matchSelector, divideIntoWaves } from "#rollout/selection.ts";
import { aNode, aSpec } from "#support/stepped-rollout.ts";

const nodes = [
  aNode("id-3", { hostname: "n3", dc: "DC2", labels: { tier: "ssd", rack: "a=b" } }),
  aNode("id-1", { hostname: "n1", labels: { tier: "ssd" } }),
  aNode("id-2", { hostname: "n2", labels: { tier: "hdd" } }),
  aNode("id-c", { hostname: "c1", isController: true, labels: { tier: "ssd" } }),
];

function namesOf(selector: object): readonly string[] {
  return matchSelector(nodes, aSpec({ selector }).selector).map(({ hostname }) => hostname);
}

describe("the selector of an update", () => {
  it("selects no nodes if empty, and all nodes by allNodes, in the order of names", () =>
    expect([namesOf({}), namesOf({ allNodes: true })]).to.deep.equal([[], ["c1", "n1", "n2", "n3"]]));

  it("selects nodes by id and host name", () =>
    expect(namesOf({ nodeIds: ["id-3", "n1", "nobody"] })).to.deep.equal(["n1", "n3"]));

  it("selects nodes with exactly all the labels", () => {
    expect(namesOf({ labels: ["tier=ssd"] })).to.deep.equal(["c1", "n1", "n3"]);
    expect(namesOf({ labels: ["tier=ss"] })).to.deep.equal([]);
    expect(namesOf({ labels: ["rack=a=b", "tier=ssd"] })).to.deep.equal(["n3"]);
    expect(namesOf({ labels: ["tier=ssd", "tier=hdd"] })).to.deep.equal([]);
    expect([namesOf({ labels: ["dc=DC2"] }), namesOf({ labels: ["constructor="] })]).to.deep.equal([["n3"], []]);
  });

  it("selects nodes of any of the datacenters", () => {
    expect(namesOf({ datacenters: ["DC2", "DC3"] })).to.deep.equal(["n3"]);
    expect(namesOf({ datacenters: ["DC1", "DC2"] })).to.have.length(4);
  });

  it("selects controllers by controllersOnly", () => expect(namesOf({ controllersOnly: true })).to.deep.equal(["c1"]));

  it("narrows allNodes with each other filter", () => {
    expect(namesOf({ allNodes: true, labels: ["tier=hdd"] })).to.deep.equal(["n2"]);
    expect(namesOf({ allNodes: true, datacenters: ["DC2"] })).to.deep.equal(["n3"]);
    expect(namesOf({ allNodes: true, nodeIds: ["n2"] })).to.deep.equal(["n2"]);
    expect(namesOf({ allNodes: true, controllersOnly: true })).to.deep.equal(["c1"]);
    expect(namesOf({ nodeIds: ["n1", "n2"], labels: ["tier=ssd"] })).to.deep.equal(["n1"]);
  });
});

describe("the waves of an update", () => {
  const cluster = [
    aNode("c1", { isController: true }),
    aNode("c2", { isController: true }),
    aNode("w1"),
    aNode("w2"),
    aNode("w3", { isReady: false }),
    aNode("w4", { dc: "DC2", labels: { canary: "yes" } }),
  ];
  const wavesBy = (strategy: object, owner = "c1"): unknown =>
    divideIntoWaves(cluster, aSpec({ strategy }), owner).waves;

  it("are single nodes: workers, then controllers, then nodes that are not ready, then the owner", () => {
    const one = { type: "one-at-a-time", maxUnavailable: 3 };
    expect(wavesBy(one)).to.deep.equal([["w1"], ["w2"], ["w4"], ["c2"], ["w3"], ["c1"]]);
    expect(wavesBy(one, "c2")).to.deep.equal([["w1"], ["w2"], ["w4"], ["c1"], ["w3"], ["c2"]]);
  });

  it("are batches of workers, and single controllers", () => {
    expect(wavesBy({ type: "batch", batchSize: 2 })).to.deep.equal([["w1", "w2"], ["w4"], ["c2"], ["w3"], ["c1"]]);
    expect(wavesBy({ type: "batch", maxUnavailable: 3 })).to.deep.equal([["w1", "w2", "w4"], ["c2"], ["w3"], ["c1"]]);
  });

  it("are by datacenter with per-dc, the owner's last", () => {
    const perDc = { type: "per-dc", batchSize: 9 };
    expect(wavesBy(perDc)).to.deep.equal([["w4"], ["w1", "w2"], ["c2"], ["w3"], ["c1"]]);
    expect(wavesBy(perDc, "elsewhere")).to.deep.equal([["w1", "w2"], ["c1"], ["c2"], ["w3"], ["w4"]]);
  });

  it("end with the owner for every strategy, also if the owner is not ready", () => {
    const ill = cluster.map((node) => (node.id === "c1" ? { ...node, isReady: false } : node));
    for (const type of ["one-at-a-time", "batch", "per-dc", "canary"]) {
      const last = (nodes: typeof cluster): unknown =>
        divideIntoWaves(nodes, aSpec({ strategy: { type } }), "c1").waves.at(-1);
      expect([last(cluster), last(ill)], type).to.deep.equal([["c1"], ["c1"]]);
    }
  });

  const canariesBy = (canary?: object): unknown => {
    const spec = aSpec({ strategy: { type: "canary", batchSize: 9, ...(canary ? { canary } : {}) } });
    const { waves, canaries } = divideIntoWaves(cluster, spec, "c1");
    return [waves[0], canaries];
  };

  it("begin with the named or labelled canaries, else the first node", () => {
    expect(canariesBy()).to.deep.equal([["w1"], 1]);
    expect(canariesBy({ nodeIds: ["w2", "w4"] })).to.deep.equal([["w2", "w4"], 1]);
    expect(canariesBy({ labels: ["canary=yes"] })).to.deep.equal([["w4"], 1]);
    expect(canariesBy({ nodeIds: ["w2", "w4"], labels: ["canary=yes"] })).to.deep.equal([["w4"], 1]);
    expect(canariesBy({ nodeIds: ["w2", "c2"] })).to.deep.equal([["w2"], 2]);
  });

  it("begin with the first node if no named canary exists", () =>
    expect(canariesBy({ nodeIds: ["nobody"] })).to.deep.equal([["w1"], 1]));

  const faultsOf = (canary: object): readonly string[] => {
    const [selected, spec] = [
      cluster.filter(({ dc }) => dc === "DC1"),
      aSpec({ strategy: { type: "canary", canary } }),
    ];
    return selectionFaults(spec, { nodes: cluster, of: "the roster", selected });
  };

  it("have no faults if every named canary is selected", () => {
    for (const canary of [{}, { nodeIds: ["w1", "w2"] }]) expect(faultsOf(canary)).to.deep.equal([]);
  });

  it("have faults for canaries that are not selected, and labels that no selected node has", () => {
    expect(faultsOf({ nodeIds: ["w1", "w4", "nobody"] })).to.deep.equal([
      "no node of the roster is “nobody”, which strategy.canary.nodeIds names",
      "strategy.canary.nodeIds names “w4”, which the selector leaves out: select it, too, or name another canary",
    ]);
    expect(faultsOf({ labels: ["canary=yes"] })).to.deep.equal([
      "no node that the selector means has what strategy.canary.labels wants: canary=yes",
    ]);
    expect(faultsOf({ nodeIds: ["w1"], labels: ["canary=yes"] })).to.deep.equal([
      "no node that strategy.canary.nodeIds names has what strategy.canary.labels wants: canary=yes",
    ]);
  });
});
