import { expect } from "chai";
import { closestReach, reachName } from "#queue/reach.ts";
import { nodeEntry } from "#support/runs.ts";

describe("the reach of a worker", () => {
  const node = nodeEntry("n1", { dc: "DC1", labels: { zone: "dmz" }, jump: ["gate"] });
  const all = [{}, { dc: "DC1" }, { dc: "DC2" }, { dc: "DC1", labels: ["zone=dmz"] }, { jump: "gate" }];

  it("has a name of its terms, whatever their order", () => {
    expect(all.map(reachName)).to.deep.equal(["any", "dc=DC1", "dc=DC2", "dc=DC1 label=zone=dmz", "jump=gate"]);
    expect(reachName({ labels: ["b", "a=1"] })).to.equal("label=a=1 label=b");
  });

  it("is for a node the one with the most terms that hold", () => {
    const of = (given: Parameters<typeof nodeEntry>[1]) => closestReach(all, nodeEntry("n2", { dc: "DC3", ...given }));
    expect(closestReach(all, node)).to.deep.equal({ dc: "DC1", labels: ["zone=dmz"] });
    expect(of({})).to.deep.equal({});
    expect(of({ dc: "DC2" })).to.deep.equal({ dc: "DC2" });
    expect(of({ dc: "DC2", jump: ["gate"] }), "as many terms: by name").to.deep.equal({ dc: "DC2" });
    expect(closestReach([{ labels: ["zone"] }], node)).to.deep.equal({ labels: ["zone"] });
    expect(closestReach([{ labels: ["zone=lan"] }, { dc: "DC2" }], node)).to.equal(undefined);
  });
});
