import { expect } from "chai";
import { lookAtHooks } from "#rollout/hooks.ts";
import { reasonOf } from "#rollout/hooks.ts";
import { hookKey } from "#rollout/rollout-input.ts";
import { describeRollouts } from "#support/scripted-rollout.ts";
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

describeRollouts("rollout-undrain.yaml");

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
    expect(rollout.row("n1")).to.deep.include({ phase: "failed", drained: true });
    expect(hookOf(rollout)).to.equal("undrain");
  });
});
