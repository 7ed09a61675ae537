import { expect } from "chai";
import { stepKey } from "#engine/program/compile-step.ts";
import { sh } from "#engine/step/sh.ts";
import { ModelNode } from "#support/model-node.ts";
import { SessionWorld } from "#support/session-world.ts";
import { draftOf } from "#support/sessions.ts";

describe("a node that reboots", () => {
  /** A session whose one step boots the node; the step was done, and the node is on its way down. */
  function goneDown(timeout: number): SessionWorld {
    const draft = draftOf("reboot", { want: {}, probe: sh`:`, ends: "boot", timeout });
    const node = new ModelNode(new Map([[stepKey(draft.id), { outcome: "changed", needsBlob: false }]]));
    const world = new SessionWorld({ node, drafts: [draft], waitForLock: false, retryDelays: [0] });
    world.perform([draft], true);
    world.answerDial();
    world.answerDial();
    while (world.deliverCommand() || node.act() || world.deliverFrame());
    return world;
  }
  const problemOf = (world: SessionWorld) =>
    world.ended.flatMap((end) => (end.do === "return" ? [end.trouble?.problem.message] : []));
  const lastSeen = (world: SessionWorld) =>
    world.ended.flatMap((end) => (end.do === "return" ? [end.trouble?.problem.detail] : []));

  it("is waited for as long as its step may take", () => {
    const world = goneDown(30);
    expect([...world.timers]).to.deep.equal([["reboot", 30_000]]);
    world.wait();
    expect(problemOf(world)).to.deep.equal(["n1 did not come back within 30 s"]);
    expect(lastSeen(world)).to.deep.equal(["last seen: the connection of its old boot, which has not ended"]);
  });

  it("is told of with what was seen of it last", () => {
    const world = goneDown(30);
    world.reboot();
    for (let attempt = 0; attempt < 40 && world.ended.length === 0; attempt++) {
      world.wait();
      world.refuseDial(0);
    }
    expect(problemOf(world)).to.deep.equal(["n1 did not come back within 30 s"]);
    expect(lastSeen(world)).to.deep.equal(["last seen: n1 does not answer"]);
  });

  it("is met when it is back", () => {
    const world = goneDown(30);
    world.reboot();
    world.wait();
    world.answerDial();
    world.answerDial();
    while (world.deliverFrame());
    expect([problemOf(world), [...world.timers]]).to.deep.equal([[undefined], []]);
  });
});
