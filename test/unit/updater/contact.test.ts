import { expect } from "chai";
import type { FencingToken } from "#rollout/records.ts";
import { statementOf, UpdateWorld } from "#support/update-world.ts";

const [old, young] = ["0.1.0", "0.2.0"];
const quick = { timeouts: { activateSeconds: 40, prepareSeconds: 60, rebootSeconds: 60 } };

/** A node whose agent reaches no controller, and the bastion, which orders `hold` once the node waits for it, or too early. */
async function updated(hold: Partial<FencingToken> | undefined, isEarly = false): Promise<UpdateWorld> {
  const world = new UpdateWorld(old);
  world.fetch(young);
  world.behaviours.set(young, { reaches: false });
  world.contact = "bastion";
  await world.give(statementOf(young, quick), "prepare");
  if (isEarly) await world.give(statementOf(young, quick), "hold");
  world.onEffect = () => {
    if (hold === undefined || world.report()?.waitsFor !== "bastion") return;
    world.onEffect = () => undefined;
    world.order("hold", statementOf(young, quick), { seq: 9, ...hold });
  };
  await world.give(statementOf(young, quick), "activate");
  return world;
}

describe("an activation that the bastion confirms", () => {
  it("holds by its order alone, though no controller is reached", async () => {
    const world = await updated({});
    expect(world.said.map(({ state, waitsFor }) => waitsFor ?? state)).to.deep.equal(
      "preparing prepared activating bastion bastion activated".split(" "),
    );
    expect(world.version()).to.equal(young);
  });

  it("goes back without it, and by another owner's, and by one that was given before", async () => {
    for (const world of [await updated(undefined), await updated({ owner: "c2" }), await updated(undefined, true)]) {
      expect(world.report()?.failure).to.deep.equal({
        kind: "unreachable",
        message: "the bastion did not come back over a new connection",
      });
      expect(world.version()).to.equal(old);
    }
  });
});
