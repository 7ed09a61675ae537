import { expect } from "chai";
import { lookAtHooks } from "#rollout/hooks.ts";
import { reasonOf } from "#rollout/reason.ts";
import { isUnbegun } from "#rollout/roll-back.ts";
import { old, SteppedRollout, target } from "#support/stepped-rollout.ts";

const manual = { approvalPolicy: "manual" };
const held = { present: target, previous: old };

function begun(nodes: readonly string[], spec: object = {}): SteppedRollout {
  return new SteppedRollout({ nodes, spec }).set({ isApproved: true }).settle().confirm();
}

/** The same manifest once more, which a node with the target says that it has from an earlier generation. */
function again(rollout: SteppedRollout, ...there: readonly string[]): SteppedRollout {
  rollout.set({ generation: rollout.view.generation + 1 });
  for (const id of there) rollout.report(id, "fenced", held);
  return rollout;
}

function hookOf(rollout: SteppedRollout, id: string): string | undefined {
  return lookAtHooks(rollout.view, id, rollout.row(id)).next;
}

describe("an update that is applied once more", () => {
  const drain = { enabled: true, command: "drain", after: { command: "undrain" } };
  const gates = { drain, healthGates: [{ name: "web", command: "x" }] };
  const canary = { type: "canary", canary: { nodeIds: ["n1"], soakSeconds: 60 } };

  /** n1 failed a gate: it runs the target, and is drained. */
  const gateFailed = (more: object = {}): SteppedRollout => {
    const rollout = begun(["n1", "n2"], { ...gates, ...more }).report("n1", "prepared");
    rollout.answer("n1", "drain", true).report("n1", "activated", held).answer("n1", "gate web", false, "503");
    expect(rollout.phases).to.equal("n1=failed n2=cancelled");
    expect(reasonOf(rollout.view)).to.equal("n1: gate web: 503; n1 stays drained: it runs what failed");
    return rollout;
  };

  it("does not touch a node that succeeded", () => {
    const rollout = begun(["n1", "n2"]).finish("n1");
    rollout.report("n2", "failed", { failure: { kind: "build", message: "no room" } });
    again(rollout, "n1").confirm("n2");
    expect(rollout.row("n1")).to.deep.include({ phase: "succeeded", untouched: true });
    expect(rollout.phases).to.equal("n1=succeeded n2=preparing");
  });

  it("looks again at a node that failed on the target, and gives its work back when it is well", () => {
    const rollout = again(gateFailed({ strategy: canary }), "n1").confirm("n2");
    expect(rollout.phases).to.equal("n1=verifying n2=pending");
    expect(rollout.progress.started).to.deep.equal(["n1"]);
    expect(hookOf(rollout, "n1")).to.equal("gate web");
    rollout.after(61);
    expect(rollout.phases).to.equal("n1=verifying n2=pending");
    rollout.answer("n1", "gate web", true);
    expect(hookOf(rollout, "n1")).to.equal("undrain");
    rollout.answer("n1", "undrain", true);
    expect(rollout.phases).to.equal("n1=succeeded n2=pending");
    expect(rollout.row("n1")).to.not.have.any.keys("drained", "unproven");
    expect(rollout.after(61).phases).to.equal("n1=succeeded n2=preparing");
  });

  it("fails by a gate that still does not hold, and the node stays drained", () => {
    const rollout = again(gateFailed(), "n1").confirm("n2").answer("n1", "gate web", false, "504");
    expect(rollout.phases).to.equal("n1=failed n2=cancelled");
    expect(reasonOf(rollout.view)).to.equal("n1: gate web: 504; n1 stays drained: it runs what failed");
  });

  it("has it looked at by a new owner, too, also one that does not know how it went before", () => {
    const rollout = again(gateFailed(), "n1").confirm("n2").takeOver("c2").report("n1", "fenced", held);
    expect(rollout.phases).to.equal("n1=verifying n2=preflight");
    expect(rollout.row("n1").drained).to.equal(true);
    const { reports } = gateFailed().view;
    const other = new SteppedRollout({ nodes: ["n1", "n2"], spec: gates }).set({ reports, generation: 2 });
    other.takeOver("c2", { progress: undefined, rows: new Map() }).report("n1", "fenced", held);
    expect(other.phases).to.equal("n1=verifying n2=preflight");
  });

  it("leaves a node drained that runs what failed, when it is called off before that has told who its owner is", () => {
    const rollout = again(gateFailed()).wish("cancel", { generation: 2 });
    expect(rollout.phases).to.equal("n1=cancelled n2=cancelled");
    expect(hookOf(rollout, "n1")).to.equal(undefined);
    expect(reasonOf(rollout.view)).to.match(/; n1 stays drained: it has not said that it went back$/);
    rollout.report("n1", "fenced", held);
    expect(reasonOf(rollout.view)).to.match(/; n1 stays drained: it runs what failed$/);
  });

  it("tells of a node that an earlier generation left drained, when it ends before it began", () => {
    const rollout = gateFailed(manual).set({ isApproved: false });
    again(rollout).wish("cancel", { generation: 2 });
    expect(reasonOf(rollout.view)).to.equal("cancelled; n1 stays drained, since generation 1");
    expect(reasonOf({ ...rollout.view, nodes: new Map() })).to.equal("cancelled");
  });

  it("gives work back to a node that went back and was called off", () => {
    const rollout = begun(["n1", "n2"], { drain }).report("n1", "prepared").answer("n1", "drain", true);
    rollout.report("n1", "failed", { failure: { kind: "service", message: "it died" } });
    again(rollout).confirm().wish("cancel", { generation: 2 });
    expect(rollout.phases).to.equal("n1=cancelled n2=cancelled");
    expect(hookOf(rollout, "n1")).to.equal("undrain");
  });

  it("asks for no work back that came back before", () => {
    const rollout = begun(["n1"], { drain }).report("n1", "prepared").answer("n1", "drain", true);
    rollout.report("n1", "failed", { failure: { kind: "service", message: "it died" } }).answer("n1", "undrain", true);
    expect(again(rollout).row("n1")).to.not.have.property("drained");
    const kept = begun(["n1"], { drain }).report("n1", "prepared").answer("n1", "drain", true);
    kept.report("n1", "activated").answer("n1", "undrain", true);
    // As the version before kept it.
    kept.set({ rows: new Map([["n1", { ...kept.row("n1"), drained: true }]]) });
    expect(again(kept, "n1").row("n1")).to.deep.include({ phase: "succeeded", untouched: true });
  });
});

describe("a rollback of an update that was applied once more", () => {
  const half = (spec: object = {}): SteppedRollout => {
    const rollout = begun(["n1", "n2"], { ...manual, ...spec })
      .report("n1", "prepared")
      .report("n1", "activated", held);
    rollout.report("n2", "failed", { failure: { kind: "build", message: "no room" } });
    expect(rollout.phases).to.equal("n1=succeeded n2=failed");
    return again(rollout.set({ isApproved: false }));
  };
  const rollback = { generation: 2 };

  it("takes back what the generation before brought, also before anybody approved the present one", () => {
    const rollout = half();
    expect(rollout.progress).to.deep.include({ phase: "pending", waits: "approval" });
    rollout.wish("rollback", rollback);
    expect(rollout.progress).to.deep.include({ phase: "rolling_back", started: ["n1"] });
    expect(rollout.row("n1")).to.deep.include({ phase: "preflight", generation: 2 });
    expect(rollout.progress.waits).to.equal("n1, which has not confirmed its owner");
    rollout.report("n1", "fenced", held);
    expect(rollout.row("n1").phase).to.equal("rolling_back");
    rollout.report("n1", "rolled_back");
    expect(rollout.progress).to.deep.include({ phase: "rolled_back", undone: "2026-01-01T00:00:00Z" });
  });

  it("does so when the present one was cancelled before it began", () => {
    const rollout = half().wish("cancel", rollback);
    expect(rollout.progress.phase).to.equal("cancelled");
    rollout.wish("rollback", rollback).report("n1", "fenced", held);
    expect(rollout.row("n1").phase).to.equal("rolling_back");
    expect(rollout.report("n1", "rolled_back").progress.phase).to.equal("rolled_back");
  });

  it("takes the last node back first, a node that has no row here too", () => {
    const rollout = begun(["n1", "n2", "n3"], manual);
    for (const id of ["n1", "n2"]) rollout.report(id, "prepared").report(id, "activated", held);
    rollout.report("n3", "failed", { failure: { kind: "build", message: "no room" } });
    const rows = new Map([...rollout.view.rows].filter(([id]) => id !== "n2"));
    again(rollout.set({ isApproved: false, rows })).wish("rollback", rollback);
    expect(rollout.progress.started).to.deep.equal(["n1", "n2"]);
    rollout.report("n1", "fenced", held).report("n2", "fenced", held);
    expect([rollout.row("n1").phase, rollout.row("n2").phase]).to.deep.equal(["succeeded", "rolling_back"]);
    rollout.report("n2", "rolled_back");
    expect([rollout.row("n1").phase, rollout.row("n2").phase]).to.deep.equal(["rolling_back", "rolled_back"]);
  });

  it("gives its work back to a node that failed on the target, when it has gone back", () => {
    const drain = { enabled: true, command: "drain", after: { command: "undrain" } };
    const rollout = begun(["n1"], { ...manual, drain, healthGates: [{ name: "web", command: "x" }] });
    rollout.report("n1", "prepared").answer("n1", "drain", true).report("n1", "activated", held);
    rollout.answer("n1", "gate web", false, "503").set({ isApproved: false });
    again(rollout).wish("rollback", rollback).report("n1", "fenced", held);
    // It is not verified first: it is to go, whatever it is.
    expect(rollout.row("n1")).to.deep.include({ phase: "rolling_back", drained: true });
    rollout.report("n1", "rolled_back");
    expect(hookOf(rollout, "n1")).to.equal("undrain");
  });

  it("says which node did not answer, if its last word was that it runs the target", () => {
    const rollout = half().wish("rollback", rollback).after(661);
    expect(rollout.row("n1").failure?.kind).to.equal("rollback");
    expect(rollout.progress).to.deep.include({ phase: "failed", reason: "not taken back: n1" });
    // It says late that it is still there: it is tried once more when somebody asks.
    rollout
      .report("n1", "fenced", held)
      .after(1)
      .wish("rollback", { ...rollback, at: "2026-01-02T00:00:00Z" });
    expect(rollout.row("n1").phase).to.equal("rolling_back");
  });

  it("has nothing to do where no node runs its target", () => {
    const rollout = half()
      .set({ target: { id: "/nix/store/newer", version: "3.0" } })
      .wish("rollback", rollback);
    expect(rollout.progress.phase).to.equal("rolled_back");
    expect(rollout.row("n1")).to.deep.include({ phase: "succeeded", generation: 1 });
  });

  it("is there to be asked for as long as a node has something of it", () => {
    const cancelled = half().wish("cancel", rollback);
    expect(isUnbegun(cancelled.view, cancelled.progress)).to.equal(false);
    const there = again(begun(["n1", "n2"]).finish("n1").finish("n2"), "n1", "n2");
    expect(there.progress).to.deep.include({ phase: "succeeded", started: [] });
    expect(isUnbegun(there.view, there.progress)).to.equal(false);
    there.node("n1", { isApproved: false }).node("n2", { isApproved: false });
    expect(isUnbegun(there.view, there.progress), "what is not approved may be again").to.equal(false);
    const elsewhere = again(
      begun(["n1"])
        .finish("n1")
        .set({ target: { id: "/nix/store/newer", version: "3.0" } }),
    );
    expect(isUnbegun(elsewhere.wish("cancel", rollback).view, elsewhere.progress)).to.equal(true);
  });
});
