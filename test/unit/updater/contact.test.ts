import { expect } from "chai";
import { statementOf, UpdateWorld } from "#support/update-world.ts";

const [old, young] = ["0.1.0", "0.2.0"];
const quick = { timeouts: { activateSeconds: 40, prepareSeconds: 60, rebootSeconds: 60 } };
const confirmed = "/var/lib/kcore/updates/confirmed";

/** A node whose agent reaches no controller, and the bastion that says `word` once the node waits for it. */
async function updated(word: string | undefined, early?: string): Promise<UpdateWorld> {
  const world = new UpdateWorld(old);
  world.fetch(young);
  world.behaviours.set(young, { reaches: false });
  world.contact = "bastion";
  if (early !== undefined) world.files.set(confirmed, early);
  await world.give(statementOf(young, quick), "prepare");
  world.onEffect = () => {
    if (word !== undefined && world.report()?.waitsFor === "bastion") world.files.set(confirmed, word);
  };
  await world.give(statementOf(young, quick), "activate");
  return world;
}

describe("an activation that the bastion confirms", () => {
  it("holds by its word alone, though no controller is reached", async () => {
    const world = await updated("u1 1 c1\n");
    expect(world.said.map(({ state, waitsFor }) => waitsFor ?? state)).to.deep.equal(
      "preparing prepared activating bastion activated".split(" "),
    );
    expect(world.version()).to.equal(young);
  });

  it("goes back without it, and by another owner's, and by one that was said before", async () => {
    for (const world of [await updated(undefined), await updated("u1 2 c2\n"), await updated(undefined, "u1 1 c1\n")]) {
      expect(world.report()?.failure).to.deep.equal({
        kind: "unreachable",
        message: "the bastion did not come back over a new connection",
      });
      expect(world.version()).to.equal(old);
    }
  });
});
