import { expect } from "chai";
import { answerable, lookAtHooks } from "#rollout/hooks.ts";
import { reasonOf } from "#rollout/reason.ts";
import { hookKey } from "#rollout/view.ts";
import { old, SteppedRollout, target } from "#support/stepped-rollout.ts";

const drain = { enabled: true, command: "drain", after: { command: "undrain" } };
const failure = { kind: "service", message: "it died" } as const;

function begun(spec: object = {}): SteppedRollout {
  return new SteppedRollout({ nodes: ["n1"], spec: { drain, ...spec } }).settle().confirm();
}

function drained(spec: object = {}): SteppedRollout {
  return begun(spec).report("n1", "prepared").answer("n1", "drain", true);
}

/** A gate failed, so it is to be taken back. */
function goingBack(): SteppedRollout {
  const rollout = drained({ rollback: { automatic: true }, healthGates: [{ name: "web", command: "x" }] });
  return rollout.report("n1", "activated").answer("n1", "gate web", false, "503");
}

function hookOf(rollout: SteppedRollout): string | undefined {
  return lookAtHooks(rollout.view, "n1", rollout.row("n1")).next;
}

describe("work that comes back to a drained node at rest", () => {
  it("does not come back to one that could not go back, whatever it runs and however ready it is", () => {
    const rollout = goingBack().report("n1", "failed", {
      failure: { kind: "rollback", message: "kcore-controller does not run" },
    });
    expect(rollout.row("n1").failure?.kind).to.equal("rollback");
    expect(hookOf(rollout)).to.equal(undefined);
    expect(reasonOf(rollout.view)).to.equal("not taken back: n1; n1 stays drained: it could not go back");
    const itself = drained().report("n1", "failed", { failure: { ...failure, stuck: true } });
    expect(hookOf(itself)).to.equal(undefined);
    expect(itself.row("n1").failure).to.deep.equal({ ...failure, stuck: true });
    expect(reasonOf(itself.view)).to.equal("n1: it died; n1 stays drained: it could not go back");
  });

  it("does not come back to one that is still going back, but once it says that it is back", () => {
    const rollout = goingBack().after(661).report("n1", "rolling_back");
    expect(rollout.phases).to.equal("n1=failed");
    expect(hookOf(rollout)).to.equal(undefined);
    rollout.report("n1", "rolled_back");
    expect(rollout.phases).to.equal("n1=rolled_back");
    expect(hookOf(rollout)).to.equal("undrain");
    const itself = drained().after(661).report("n1", "rolling_back");
    expect(hookOf(itself)).to.equal(undefined);
    expect(hookOf(itself.report("n1", "failed", { failure }))).to.equal("undrain");
  });

  it("waits until the node is well, and the rollout until then, but no longer than it takes to be verified", () => {
    const ill = { isReady: false, reason: "disk" };
    const ends: readonly (readonly [string, () => SteppedRollout])[] = [
      ["failed", () => drained().node("n1", ill).report("n1", "failed", { failure })],
      ["cancelled", () => begun().report("n1", "prepared").node("n1", ill).wish("cancel")],
      ["rolled_back", () => goingBack().node("n1", ill).report("n1", "rolled_back")],
    ];
    for (const [phase, end] of ends)
      for (const getsWell of [true, false]) {
        const rollout = end();
        expect(rollout.row("n1").phase).to.equal(phase);
        expect(hookOf(rollout), phase).to.equal(undefined);
        expect(rollout.progress.phase).to.match(/^rolling_/);
        expect(rollout.progress.waits).to.equal("n1, which is not ready: disk, before work comes back to it");
        rollout.after(getsWell ? 10 : 301);
        if (getsWell) rollout.node("n1", { isReady: true });
        expect(rollout.progress.phase).to.equal(phase);
        if (!getsWell)
          expect(reasonOf(rollout.view)).to.match(/n1 stays drained until it is well: it is not ready: disk$/);
        rollout.node("n1", { isReady: true });
        expect(hookOf(rollout)).to.equal("undrain");
        expect(reasonOf(rollout.view)).to.match(/n1 is drained until the bastion lets work come back$/);
        rollout.answer("n1", "undrain", true);
        expect(rollout.row("n1")).to.not.have.property("drained");
      }
  });

  it("is not waited for where the node is not approved", () => {
    const unapproved = drained().node("n1", { isApproved: false, isReady: false }).report("n1", "failed", { failure });
    expect(unapproved.progress.phase).to.equal("failed");
    expect(reasonOf(unapproved.view)).to.match(/; n1 stays drained until it is well: it is not approved$/);
  });

  it("does not keep the others from being taken back meanwhile", () => {
    const rollout = new SteppedRollout({
      nodes: ["n1", "n2"],
      spec: { drain, rollback: { automatic: true } },
    }).settle();
    rollout.confirm().report("n1", "prepared").answer("n1", "drain", true).report("n1", "activated");
    rollout.answer("n1", "undrain", true).report("n2", "prepared").answer("n2", "drain", true);
    rollout.report("n2", "failed", { failure });
    expect(rollout.phases).to.equal("n1=rolling_back n2=failed");
  });

  it("is asked for again when it failed, and the reason tells of that until it has come back", () => {
    const rollout = drained().report("n1", "failed", { failure }).answer("n1", "undrain", false, "no quorum");
    expect(hookOf(rollout)).to.equal("undrain");
    expect(reasonOf(rollout.view)).to.equal("n1: it died; n1 stays drained: undrain: no quorum");
    expect(rollout.answer("n1", "undrain", true).row("n1")).to.not.have.property("drained");
    expect(reasonOf(rollout.view)).to.equal("n1: it died");
  });

  it("holds the rollout up no longer when it failed, however the node is then", () => {
    const rollout = new SteppedRollout({
      nodes: ["n1", "n2"],
      spec: { drain, strategy: { type: "batch", maxUnavailable: 2 } },
    });
    rollout.settle().confirm().report("n1", "prepared").report("n2", "prepared");
    rollout.answer("n1", "drain", true).answer("n2", "drain", true).report("n1", "failed", { failure });
    rollout.answer("n1", "undrain", false, "no quorum").node("n1", { isReady: false });
    rollout.report("n2", "failed", { failure });
    expect(rollout.progress).to.deep.include({ phase: "failed", reason: "n1: it died" });
  });

  it("is answered also while the node is not well for a moment", () => {
    const rollout = drained().report("n1", "failed", { failure }).node("n1", { isReady: false });
    expect(answerable(rollout.view, "n1", rollout.row("n1"))).to.equal("undrain");
    expect(rollout.answer("n1", "undrain", true).row("n1")).to.not.have.property("drained");
  });
});

describe("the reason of an update", () => {
  const named = (rollout: SteppedRollout, more: object, answers = rollout.view.answers): string | undefined =>
    reasonOf({ ...rollout.view, answers, rows: new Map([["n1", { ...rollout.row("n1"), ...more }]]) });

  it("names no node that succeeded, though the version before kept that it had been drained", () => {
    const rollout = drained().report("n1", "activated").answer("n1", "undrain", true);
    expect(rollout.progress.phase).to.equal("succeeded");
    expect(named(rollout, { drained: true })).to.equal(undefined);
  });

  it("names none whose work came back, whatever that version kept and whatever is known of it", () => {
    const back = goingBack().report("n1", "rolled_back").answer("n1", "undrain", true);
    const { epoch, owner, generation, seq } = back.row("n1");
    const whose = { epoch, owner, generation, seq };
    const answers = new Map([[hookKey("n1", "undrain"), { ...whose, ok: true }]]);
    for (const phase of ["rolled_back", "cancelled", "failed"] as const) {
      expect(named(back, { phase, drained: true }, answers), phase).to.equal("n1: gate web: 503");
      expect(named(back, { phase, drained: true }, new Map()), phase).to.match(/; n1 is drained until/);
    }
    const there = new Map([["n1", { ...back.view.reports.get("n1"), present: target }]]) as typeof back.view.reports;
    expect(named(back.set({ reports: there }), { phase: "failed", drained: true }, answers)).to.equal(
      "n1: gate web: 503",
    );
  });
});

describe("a new owner", () => {
  it("takes a node for drained whose first activation failed under the former one", () => {
    const rollout = drained({ strategy: { type: "batch", maxUnavailable: 1 } });
    const { progress, rows } = begun().view;
    rollout.takeOver("c2", { progress, rows, reports: new Map(), answers: new Map() });
    // There was nothing before that it held, so the node tells of nothing that it could go back to.
    rollout.report("n1", "failed", { failure });
    expect(rollout.row("n1")).to.deep.include({ phase: "failed", drained: true, from: old });
    expect(hookOf(rollout)).to.equal("undrain");
  });

  it("takes a node for drained that a former owner may have drained, where it calls the next generation off", () => {
    // The drain, and how the first generation ended, are known to the former owner alone.
    const rollout = begun().takeOver("c2", { generation: 2 }).confirm();
    rollout.wish("cancel", { generation: 2 });
    expect(rollout.row("n1")).to.deep.include({ generation: 2, phase: "cancelled", drained: true });
    expect(hookOf(rollout)).to.equal("undrain");
  });
});
