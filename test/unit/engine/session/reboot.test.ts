import { expect } from "chai";
import { stepKey } from "#engine/program/compile-step.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { ModelNode } from "#support/model-node.ts";
import { SessionWorld } from "#support/session-world.ts";
import { draftOf } from "#support/sessions.ts";

/** A connected session with one step. */
function connected(fields: Partial<Step> = {}): SessionWorld {
  const draft = draftOf("slow", { want: {}, probe: sh`:`, ...fields });
  const node = new ModelNode(new Map([[stepKey(draft.id), { outcome: "changed", needsBlob: false }]]));
  const world = new SessionWorld({ node, drafts: [draft], waitForLock: false, retryDelays: [0] });
  world.perform([draft], true);
  world.answerConnect();
  world.answerConnect();
  return world;
}
const ends = (world: SessionWorld) =>
  world.ended.map((end) => end.do === "return" && [end.nodeFailure?.outcome, end.nodeFailure?.problem.code]);

describe("an abort", () => {
  function begun(): SessionWorld {
    const world = connected();
    while (world.deliverCommand());
    world.node.act();
    while (world.deliverFrame());
    world.stop("abort");
    return world;
  }

  it("interrupts the run after its time limit when the node does not respond", () => {
    const world = begun();
    expect([...world.timers]).to.deep.equal([["abort", 60_000]]);
    world.wait();
    expect(ends(world)).to.deep.equal([["interrupted", "INTERRUPTED"]]);
  });

  it("finishes as soon as the node has ended the step", () => {
    const world = begun();
    while (world.deliverCommand() || world.node.act() || world.deliverFrame());
    world.ask({ type: "finish", outcome: "interrupted" });
    while (world.deliverCommand() || world.node.act() || world.deliverFrame());
    expect([ends(world), [...world.timers]]).to.deep.equal([[[undefined, undefined], false], []]);
  });
});

describe("a node that reboots", () => {
  /** A session whose step boots the node within 30 s. The step is done, and the node is going down. */
  function goneDown(): SessionWorld {
    const world = connected({ ends: "boot", timeout: 30 });
    while (world.deliverCommand() || world.node.act() || world.deliverFrame());
    return world;
  }
  const problemOf = (world: SessionWorld) =>
    world.ended.flatMap((end) => {
      const { message, detail } = (end.do === "return" && end.nodeFailure?.problem) || {};
      return end.do === "return" ? [message, detail] : [];
    });
  const tooLong = "n1 did not come back within 30 s";

  it("fails after its step's timeout", () => {
    const world = goneDown();
    expect([...world.timers]).to.deep.equal([["reboot", 30_000]]);
    world.wait();
    const seen = "last seen: the connection of its old boot, which has not ended";
    expect(problemOf(world)).to.deep.equal([tooLong, seen]);
  });

  it("fails with the last state in which it was seen", () => {
    const world = goneDown();
    world.reboot();
    for (let attempt = 0; attempt < 40 && world.ended.length === 0; attempt++) {
      world.wait();
      world.refuseConnect(0);
    }
    expect(problemOf(world)).to.deep.equal([tooLong, "last seen: n1 does not answer"]);
  });

  it("is reconnected when it answers", () => {
    const world = goneDown();
    world.reboot();
    world.wait();
    world.answerConnect();
    world.answerConnect();
    while (world.deliverFrame());
    expect([problemOf(world), [...world.timers]]).to.deep.equal([[undefined, undefined], []]);
  });
});
