import { expect } from "chai";
import { answerable, isHook, lookAtHooks } from "#rollout/hooks.ts";
import type { HookAnswer, NodePhase, NodeAssignment } from "#rollout/records.ts";
import type { RolloutNode } from "#rollout/rollout-input.ts";
import { aNode, SteppedRollout, target } from "#support/stepped-rollout.ts";

const spec = {
  drain: { enabled: true, command: "drain", after: { state: "undrain" } },
  healthGates: [
    { name: "of the node", nodeCommand: "true" },
    { name: "web", command: "curl" },
    { name: "db", state: "check" },
  ],
};

function look(
  phase: NodePhase,
  answers: Readonly<Record<string, Partial<HookAnswer>>>,
  more: Partial<NodeAssignment> = {},
  node: Partial<RolloutNode> = {},
): unknown {
  const row = { epoch: 1, owner: "c1", generation: 1, seq: 5, phase, since: 0, ...more };
  const known = Object.entries(answers).map(
    ([hook, answer]) => [`n1/${hook}`, { epoch: 1, owner: "c1", generation: 1, seq: 5, ok: true, ...answer }] as const,
  );
  const { view } = new SteppedRollout({ nodes: [aNode("n1", { version: target.version, ...node })], spec });
  return lookAtHooks({ ...view, answers: new Map(known) }, "n1", row);
}

describe("the hooks of a node", () => {
  it("are what names a state or a command", () =>
    expect([undefined, {}, { command: "x" }, { state: "x" }].map(isHook)).to.deep.equal([false, false, true, true]));

  it("drain it while it is drained, and nothing else", () => {
    expect([look("draining", {}), look("draining", { drain: {} })]).to.deep.equal([{ next: "drain" }, {}]);
    expect(look("activating", {})).to.deep.equal({});
  });

  const asked = true;

  it("are answered also while the node is not well for a moment, but not before they were asked", () => {
    const { view } = new SteppedRollout({ nodes: [aNode("n1", { isReady: false })], spec });
    const row = { epoch: 1, owner: "c1", generation: 1, seq: 5, phase: "verifying", since: 0 } as const;
    expect(answerable(view, "n1", { ...row, asked })).to.equal("gate web");
    expect(answerable(view, "n1", row)).to.equal(undefined);
  });

  it("are the bastion's gates, one after the other, then what lets work come back", () => {
    const row = { drained: true, asked };
    expect(look("verifying", {}, row)).to.deep.equal({ next: "gate web" });
    expect(look("verifying", { "gate web": {} }, row)).to.deep.equal({ next: "gate db" });
    const gates = { "gate web": {}, "gate db": {} };
    expect(look("verifying", gates, row)).to.deep.equal({ next: "undrain" });
    expect(look("verifying", gates, { asked })).to.deep.equal({});
    expect(look("verifying", { ...gates, undrain: {} }, row)).to.deep.equal({});
  });

  it("are not asked of an updated node before it is well, nor while it is not", () => {
    expect(look("verifying", {}, { drained: true })).to.deep.equal({ held: "gate web" });
    for (const ill of [{ isReady: false }, { isApproved: false }, { version: "1.0" }, { replication: "behind" }]) {
      expect(look("verifying", {}, { asked }, ill)).to.deep.equal({ held: "gate web" });
      const gates = { "gate web": {}, "gate db": {} };
      expect(look("verifying", gates, { asked, drained: true }, ill)).to.deep.equal({ held: "undrain" });
      expect(look("verifying", gates, { asked }, ill)).to.deep.equal({});
    }
  });

  it("stop at the one that failed", () => {
    const answers = { "gate web": { ok: false, message: "503" } };
    for (const node of [{}, { isReady: false }])
      expect(look("verifying", answers, { asked }, node)).to.deep.equal({
        failed: { hook: "gate web", message: "503" },
      });
  });

  it("are asked again when the answer is to another row, owner or generation", () => {
    for (const other of [{ seq: 4 }, { epoch: 2 }, { owner: "c2" }])
      expect(look("draining", { drain: other })).to.deep.equal({ next: "drain" });
    expect(look("draining", { drain: { generation: 2 } })).to.deep.equal({ next: "drain" });
  });

  it("let work come back when a drained node was called off or taken back", () => {
    for (const phase of ["cancelled", "rolled_back"] as const) {
      expect([look(phase, {}, { drained: true }), look(phase, {})]).to.deep.equal([{ next: "undrain" }, {}]);
    }
  });

  it("try to let work come back anew when that failed, but not a gate nor a drain", () => {
    const failed = { hook: "undrain", message: "no quorum" };
    const answer = { ok: false, message: "no quorum" };
    for (const phase of ["cancelled", "rolled_back"] as const)
      expect(look(phase, { undrain: answer }, { drained: true })).to.deep.equal({ next: "undrain", failed });
    expect(look("cancelled", { undrain: answer }, { drained: true }, { isReady: false })).to.deep.equal({
      held: "undrain",
      failed,
    });
    expect(look("draining", { drain: answer })).to.deep.equal({ failed: { ...failed, hook: "drain" } });
    const last = { "gate web": {}, "gate db": {}, undrain: answer };
    expect(look("verifying", last, { drained: true, asked: true })).to.deep.equal({ failed });
  });
});
