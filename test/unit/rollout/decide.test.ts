import { expect } from "chai";
import { decide } from "#rollout/decide.ts";
import { describeRollouts } from "#support/scripted-rollout.ts";
import { aNode, old, SteppedRollout, target } from "#support/stepped-rollout.ts";

function startRollout(
  nodes: ConstructorParameters<typeof SteppedRollout>[0]["nodes"],
  spec: object = {},
): SteppedRollout {
  return new SteppedRollout({ nodes, spec }).settle().confirm();
}

for (const file of ["decisions", "again", "undrain"]) describeRollouts(`rollout-${file}.yaml`);

describe("the decision about a rollout", () => {
  it("changes nothing at a controller that is not the owner", () => {
    const { view } = new SteppedRollout({ nodes: ["n1"] });
    expect(decide({ ...view, self: "c2" })).to.deep.equal({ rows: new Map() });
  });

  it("changes no records of a newer generation", () => {
    const rollout = startRollout(["n1"]);
    const { view } = rollout;
    for (const known of [
      { progress: { ...rollout.progress, generation: 2 } },
      { rows: new Map([["n1", { ...rollout.row("n1"), generation: 2 }]]) },
    ])
      expect(decide({ ...view, ...known })).to.deep.equal({ rows: new Map() });
  });

  it("adds no unapproved node after another owner overwrote the progress", () => {
    const rollout = new SteppedRollout({ nodes: ["n1"], spec: { approvalPolicy: "manual" } }).set({ isApproved: true });
    const { view } = rollout.settle();
    const pending = { ...rollout.progress, phase: "pending" as const };
    const nodes = new Map([...view.nodes, ["n2", aNode("n2")] as const]);
    const again = (isApproved: boolean) => decide({ ...view, nodes, progress: pending, isApproved }).progress?.waves;
    expect([again(false), again(true)]).to.deep.equal([[["n1"]], [["n1"], ["n2"]]]);
  });

  it("limits the text of what it waits for to 2,000 characters", () => {
    const names = Array.from({ length: 200 }, (_, at) => `n${at}`);
    const rollout = new SteppedRollout({
      nodes: names,
      spec: { strategy: { type: "batch", maxUnavailable: 200 } },
    }).settle();
    expect(rollout.progress.waits)
      .to.match(/^n0, which has not confirmed its owner; .* …$/)
      .and.have.lengthOf(2_000);
  });

  it("writes no more rows and bytes at once than a transaction can hold", () => {
    const ids = Array.from({ length: 600 }, (_, index) => `n${index}`);
    const rollout = new SteppedRollout({ nodes: ids, spec: { strategy: { type: "batch", maxUnavailable: 600 } } });
    const expectWithinLimits = (): void => {
      for (const [rows, bytes] of rollout.sizes.splice(0)) {
        expect(rows).to.be.below(500);
        expect(bytes).to.be.below(512 * 1024);
      }
      expect(rollout.view.rows.size).to.equal(600);
    };
    rollout.settle();
    expectWithinLimits();
    const failure = { kind: "service", message: "部".repeat(2_000) } as const;
    const failed = [...rollout.view.rows].map(
      ([id, row]) => [id, { ...row, phase: "failed" as const, failure }] as const,
    );
    rollout.takeOver("c2", { rows: new Map(failed) });
    expect([...rollout.view.rows.values()].every(({ owner }) => owner === "c2")).to.equal(true);
    expectWithinLimits();
    const cancelled = new SteppedRollout({ nodes: ids }).settle().request("cancel").after(661);
    expect([...cancelled.view.rows.values()].every(({ phase }) => phase === "cancelled")).to.equal(true);
    expect(cancelled.progress.phase).to.equal("cancelled");
  });

  it("restores its own records after another owner overwrote them", () => {
    const rollout = startRollout(["n1", "n2"]).report("n1", "prepared");
    const stale = { ...rollout.row("n1"), owner: "c9", seq: 1, phase: "pending" as const };
    const known = rollout.row("n1").seq;
    rollout.report("n1", "activating").set({ rows: new Map([...rollout.view.rows, ["n1", stale]]) });
    expect(rollout.row("n1")).to.deep.include({ owner: "c1", phase: "activating" });
    expect(rollout.row("n1").seq).to.be.greaterThan(known);
    const { progress } = rollout;
    rollout.set({ progress: { ...progress, owner: "c9", phase: "pending", waves: [], started: [] } });
    expect(rollout.progress).to.deep.include({ owner: "c1", phase: "rolling_out" });
    expect(rollout.phases).to.equal("n1=activating n2=pending");
    expect(rollout.progress.waves.flat().toSorted()).to.deep.equal(["n1", "n2"]);
  });

  it("rolls back in reverse order after the next generation, including a node without a row", () => {
    const held = { present: target, previous: old };
    const spec = { approvalPolicy: "manual" };
    const rollout = new SteppedRollout({ nodes: ["n1", "n2", "n3"], spec }).set({ isApproved: true }).confirm();
    for (const id of ["n1", "n2"]) rollout.report(id, "prepared").report(id, "activated", held);
    rollout.report("n3", "failed", { failure: { kind: "build", message: "no room" } });
    const rows = new Map([...rollout.view.rows].filter(([id]) => id !== "n2"));
    rollout.set({ isApproved: false, rows }).set({ generation: 2 }).request("rollback", { generation: 2 });
    expect(rollout.progress.started).to.deep.equal(["n1", "n2"]);
    rollout.report("n1", "fenced", held).report("n2", "fenced", held);
    expect([rollout.row("n1").phase, rollout.row("n2").phase]).to.deep.equal(["succeeded", "rolling_back"]);
    rollout.report("n2", "rolled_back");
    expect([rollout.row("n1").phase, rollout.row("n2").phase]).to.deep.equal(["rolling_back", "rolled_back"]);
  });
});
