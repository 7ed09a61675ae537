import { expect } from "chai";
import type { NodeUpdateView } from "#api/update-schemas.ts";
import { UpdateSpec } from "#rollout/spec.ts";
import { problemsIn, problemsOfRejection } from "#support/problems.ts";
import { TestProject } from "#support/kcore.ts";
import { hookAddress, hookNode } from "../../../../src/cli/update/hook-node.ts";

const n1 = "11111111-1111-4111-8111-111111111111";
const n2 = "22222222-2222-4222-8222-222222222222";
const n3 = "33333333-3333-4333-8333-333333333333";

describe("the node whose hook the bastion runs", () => {
  let project: TestProject;
  before(() => {
    project = new TestProject();
    const named = `  n3.example.org: { id: ${n3}, address: 192.0.2.3, dc: DC2 }\n`;
    const nodes = `${named}  n1: { id: ${n1}, address: 192.0.2.1, dc: DC1 }\n  n2: { id: ${n2}, address: 192.0.2.2, dc: DC2 }\n`;
    project.write({ "project/roster/nodes.yaml": `nodes:\n${nodes}` });
  });
  after(() => project.remove());

  const find = (selector: object, node: Partial<NodeUpdateView>) => {
    const spec = UpdateSpec.parse({ target: { version: "1.0.0" }, selector });
    const view = { id: n1, hostname: "n1", dc: "DC1", ...node } as NodeUpdateView;
    return hookNode(project.project, spec, view);
  };

  it("is a node that the manifest selects, by its entry in the roster", () => {
    expect(find({ nodeIds: ["n1"] }, {})).to.deep.include({ id: n1, name: "n1" });
    expect(find({ nodeIds: ["n1"] }, { hostname: "n1.example.org" }).name).to.equal("n1");
    expect(find({ nodeIds: ["n1.example.org"] }, { hostname: "n1.example.org" }).name).to.equal("n1.example.org");
    expect(find({ nodeIds: ["n7"] }, { hostname: "n7" })).to.deep.include({ id: n1, name: "n7" });
    expect(find({ nodeIds: ["n3.example.org"] }, { id: n3, hostname: "n3.example.org" }).name).to.equal(
      "n3.example.org",
    );
    expect(find({ allNodes: true }, { hostname: "n2" }).name).to.equal("n1");
    expect(find({ datacenters: ["DC1"] }, { dc: "DC2" }).entry?.address).to.equal("192.0.2.1");
    expect(find({ nodeIds: ["n9"] }, { id: "9", hostname: "n9" })).to.deep.equal({
      id: "9",
      name: "n9",
      entry: undefined,
    });
  });

  it("has the roster's name if the controller's is no host name", () => {
    for (const hostname of ["n1 n2", "--all", "n?"]) expect(find({ allNodes: true }, { hostname }).name).to.equal("n1");
  });

  it("has the roster's address, else the controller's unless that is another node's", async () => {
    const addressOf = (node: Partial<NodeUpdateView>, reported: string): Promise<string> =>
      hookAddress(project.project, find({ allNodes: true }, node), () => Promise.resolve(reported));
    const stranger = { id: "9", hostname: "n9" };
    expect(await addressOf({}, "192.0.2.2")).to.equal("192.0.2.1");
    expect(await addressOf(stranger, "192.0.2.9")).to.equal("192.0.2.9");
    for (const reported of ["192.0.2.2", "n2", "192.0.2.9 n2", "-oProxyCommand=x", ""])
      expect((await problemsOfRejection(addressOf(stranger, reported))).join(), reported).to.contain(
        "[UPDATE_UNSIGNED]",
      );
  });

  it("is refused if the manifest does not select it, whatever a controller reports", () => {
    const refused = "whom the update does not mean [UPDATE_UNSIGNED]";
    for (const [selector, node] of [
      [{ nodeIds: ["n1"] }, { id: n2, hostname: "n2", dc: "DC2" }],
      [{ nodeIds: ["n1"] }, { id: n2, hostname: "n1" }],
      [{ datacenters: ["DC1"] }, { id: n2, hostname: "n2", dc: "DC1" }],
      // The node's name is, or may be, another node's.
      [{ allNodes: true }, { id: "9", hostname: "n2" }],
      [{ nodeIds: ["n1.example.org"] }, { id: n2, hostname: "n1.example.org", dc: "DC2" }],
      [{ nodeIds: ["n1.example.org"] }, { id: "9", hostname: "n1.example.org" }],
      [{ nodeIds: [n1] }, { id: n2, hostname: n1, dc: "DC2" }],
      [{ nodeIds: ["n1"] }, { id: "n1", hostname: "n9" }],
      [{ nodeIds: ["n3"] }, { id: n2, hostname: "n3", dc: "DC2" }],
      [{ allNodes: true }, { id: "9", hostname: "N2" }],
      [{ allNodes: true }, { id: "9", hostname: "192.0.2.2" }],
      // A shell would read these names as several words, or as an option.
      [{ allNodes: true }, { id: "9", hostname: "n1 n2" }],
      [{ allNodes: true }, { id: "9", hostname: "--all" }],
      [{ allNodes: true }, { id: "9", hostname: "n*" }],
      [{ allNodes: true }, { id: "9 n2", hostname: "n9" }],
      [{ allNodes: true }, { id: "--all", hostname: "n9" }],
    ] as const)
      expect(problemsIn(() => find(selector, node)).join(), JSON.stringify(node)).to.contain(refused);
  });
});
