import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { startOwnerLoop, type OwnerLoopParts } from "#controller/updates/owner-loop.ts";
import { inputOf, readNodes } from "#controller/updates/known-input.ts";
import { isSettled } from "#controller/updates/update-records.ts";
import { FakeTimers } from "#support/fake-timers.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";

describe("the loop of an update's owner", () => {
  it("runs also while changes never pause", async () => {
    let runs = 0;
    const index = { all: () => (runs++, []), names: () => [], read: () => undefined, stop: () => undefined };
    const timers = new FakeTimers();
    const parts = { index, controllerId: "c1", timers, monotonic: timers.now };
    const loop = startOwnerLoop(parts as unknown as OwnerLoopParts);
    for (let change = 0; change < 20; change++) {
      loop.nudge(["u"]);
      timers.pass(10);
      await turn();
    }
    expect(runs).to.be.greaterThan(0);
    await loop.stop();
  });

  it("continues with an ended update that waits for another update before its rollback", async () => {
    const known = await new KnownUpdates().nodes("n1");
    try {
      const rollout = new SteppedRollout({ nodes: ["n1"] }).settle().confirm().finish("n1");
      expect(isSettled(await known.update(rollout))).to.equal(true);
      rollout.view = { ...rollout.view, progress: { ...rollout.progress, waits: "the update “v”" } };
      expect(isSettled(await known.update(rollout))).to.equal(false);
    } finally {
      known.stop();
    }
  });

  it("finds other updates by the nodes that this update began with, not by its selector's present match", async () => {
    const known = await new KnownUpdates().nodes("n1", "n2");
    try {
      const spec = { selector: { nodeIds: ["n1"] } };
      const update = await known.update(new SteppedRollout({ nodes: ["n1"], spec }).settle());
      const other = new SteppedRollout({ nodes: ["n1"], spec });
      await known.update(other.set({ name: "v" }).confirm());
      // The selector matches no node now; the update began with n1.
      const { n1: _, ...left } = Object.fromEntries(readNodes(known.parts));
      expect(inputOf(known.parts, update, new Map(Object.entries(left))).other).to.equal("v");
    } finally {
      known.stop();
    }
  });
});
