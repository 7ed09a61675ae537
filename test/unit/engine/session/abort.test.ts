import { expect } from "chai";
import { stepKey } from "#engine/program/compile-step.ts";
import { sh } from "#engine/step/sh.ts";
import { ModelNode } from "#support/model-node.ts";
import { SessionWorld } from "#support/session-world.ts";
import { draftOf } from "#support/sessions.ts";

describe("an abort", () => {
  /** A session whose node has begun its one step. */
  function begun(): SessionWorld {
    const draft = draftOf("slow", { want: {}, probe: sh`:` });
    const node = new ModelNode(new Map([[stepKey(draft.id), { outcome: "changed", needsBlob: false }]]));
    const world = new SessionWorld({ node, drafts: [draft], waitForLock: false, retryDelays: [0] });
    world.perform([draft], true);
    world.answerDial();
    world.answerDial();
    while (world.deliverCommand());
    node.act();
    while (world.deliverFrame());
    return world;
  }
  const ends = (world: SessionWorld) =>
    world.ended.map((end) => end.do === "return" && [end.trouble?.outcome, end.trouble?.problem.code]);

  it("O15: is over within its limit when the node ends nothing", () => {
    const world = begun();
    world.stop("abort");
    expect([...world.timers]).to.deep.equal([["abort", 60_000]]);
    world.wait();
    expect(ends(world)).to.deep.equal([["interrupted", "INTERRUPTED"]]);
  });

  it("waits for nothing more when the node ended its step", () => {
    const world = begun();
    world.stop("abort");
    while (world.deliverCommand() || world.node.act() || world.deliverFrame());
    world.ask({ type: "finish", outcome: "interrupted" });
    while (world.deliverCommand() || world.node.act() || world.deliverFrame());
    expect([ends(world), [...world.timers]]).to.deep.equal([[[undefined, undefined], false], []]);
  });
});
