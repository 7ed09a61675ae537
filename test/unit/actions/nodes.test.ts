import { expect } from "chai";
import { differencesOf } from "#actions/cluster-check-node.ts";
import { nodesPassed } from "#actions/nodes-passed.ts";
import type { NodeEnd } from "#engine/orchestrate/action.ts";
import { actionContext } from "#support/action-context.ts";
import { problemsOfRejection } from "#support/problems.ts";
import { nodeEntry } from "#support/runs.ts";

describe("cluster.checkNode", () => {
  const roster = nodeEntry("n1", {
    dc: "DC1",
    roles: ["worker"],
    labels: { tier: "web" },
    taints: [{ key: "gpu", value: "", effect: "NoSchedule" }],
  });
  const view = { approval: "approved", status: "ready", dc: "DC1", roles: ["worker"] } as const;

  it("accepts a node with what the roster says, and with more labels", () =>
    expect(
      differencesOf(roster, {
        ...view,
        labels: { tier: "web", other: "x" },
        taints: [...roster.taints],
        roles: ["worker"],
      }),
    ).to.deep.equal([]));

  it("names each difference: a missing label, role and taint, another datacenter, a node that is not ready", () =>
    expect(
      differencesOf(roster, {
        approval: "pending",
        status: "not-ready",
        reason: "no heartbeat",
        dc: "DC2",
        roles: [],
        labels: {},
        taints: [],
      }),
    ).to.deep.equal([
      "it is pending",
      "it is not-ready (no heartbeat)",
      "its datacenter is DC2, not DC1",
      "it lacks the role worker",
      "its label tier is missing, not web",
      "it lacks the taint gpu:NoSchedule",
    ]));
});

describe("nodes.passed", () => {
  const ends = (...list: readonly (readonly [string, NodeEnd["outcome"]])[]) =>
    actionContext({ ended: new Map(list.map(([name, outcome]) => [name, { outcome }])) });

  it("ends the run if a node failed or was not reached, in a dry run too", async () => {
    const context = ends(["n1", "done"], ["n2", "failed"], ["n3", "unreachable"]);
    for (const ask of ["run", "plan"] as const)
      expect(await problemsOfRejection(nodesPassed[ask]({}, context))).to.deep.equal([
        "nothing further begins: n2 failed, n3 is unreachable [NODES_FAILED] | mend these nodes, or leave them out by the target",
      ]);
  });

  it("lets the run go on if all nodes are well so far", async () =>
    expect(await nodesPassed.run({}, ends(["n1", "done"]))).to.deep.equal({ changed: false, outputs: {} }));
});
