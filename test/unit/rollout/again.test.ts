import { expect } from "chai";
import { describeRollouts } from "#support/scripted-rollout.ts";
import { old, SteppedRollout, target } from "#support/stepped-rollout.ts";

const held = { present: target, previous: old };

function begun(nodes: readonly string[], spec: object): SteppedRollout {
  return new SteppedRollout({ nodes, spec }).set({ isApproved: true }).settle().confirm();
}

describeRollouts("rollout-again.yaml");

describe("an update that is applied once more, beside the tables", () => {
  it("asks for no work back that came back before, though the version before kept that it had been drained", () => {
    const drain = { enabled: true, command: "drain", after: { command: "undrain" } };
    const rollout = begun(["n1"], { drain }).report("n1", "prepared").answer("n1", "drain", true);
    rollout.report("n1", "activated").answer("n1", "undrain", true);
    rollout.set({ rows: new Map([["n1", { ...rollout.row("n1"), drained: true }]]), generation: 2 });
    rollout.report("n1", "fenced", held);
    expect(rollout.row("n1")).to.deep.include({ phase: "succeeded", untouched: true });
  });

  it("takes the last node back first, a node that has no row here too", () => {
    const rollout = begun(["n1", "n2", "n3"], { approvalPolicy: "manual" });
    for (const id of ["n1", "n2"]) rollout.report(id, "prepared").report(id, "activated", held);
    rollout.report("n3", "failed", { failure: { kind: "build", message: "no room" } });
    const rows = new Map([...rollout.view.rows].filter(([id]) => id !== "n2"));
    rollout.set({ isApproved: false, rows }).set({ generation: 2 }).wish("rollback", { generation: 2 });
    expect(rollout.progress.started).to.deep.equal(["n1", "n2"]);
    rollout.report("n1", "fenced", held).report("n2", "fenced", held);
    expect([rollout.row("n1").phase, rollout.row("n2").phase]).to.deep.equal(["succeeded", "rolling_back"]);
    rollout.report("n2", "rolled_back");
    expect([rollout.row("n1").phase, rollout.row("n2").phase]).to.deep.equal(["rolling_back", "rolled_back"]);
  });
});
