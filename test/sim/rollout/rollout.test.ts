import { expect } from "chai";
import { sliceBase } from "#support/slice.ts";
import { runCampaign, type Campaign } from "../campaign.ts";
import { describePlantedBugs } from "../planted-bugs.ts";
import { rolloutMutants } from "./mutants.ts";
import { runKills, runRolloutSeed } from "./seed.ts";

const processes = 2;

function failuresOf({ failures }: Campaign): readonly string[] {
  return failures.map(({ seed, failure }) => `${seed}: ${failure}`);
}

describe("the simulator of rollouts", () => {
  it("never has two owners on a node, too many nodes down, or a node between generations, in 150 seeds", async () => {
    const campaign = await runCampaign({ from: sliceBase(), seeds: 150, processes, what: "rollouts" });
    expect(failuresOf(campaign)).to.deep.equal([]);
    expect(campaign.seeds).to.equal(150);
    // The seeds had enough of each event.
    const { figures } = campaign;
    const frequent = [
      "killed",
      "nodeCrashes",
      "cuts",
      "partitions",
      "jumps",
      "takeovers",
      "forged",
      "rollbacks",
      "cancels",
      "hooks",
    ];
    for (const name of frequent) expect(figures[name], name).to.be.greaterThan(15);
    for (const name of ["failures", "removed"]) expect(figures[name], name).to.be.greaterThan(3);
    for (const name of ["activations", "ended"]) expect(figures[name], name).to.be.greaterThan(80);
  });

  it("survives the owner's death at its writes, before and after they are durable", async () => {
    const seed = sliceBase();
    const { failure, figures } = await runKills(seed, 12);
    expect(failure, `seed ${seed}`).to.equal(undefined);
    expect(figures["killed"]).to.be.greaterThan(0);
  });

  it("repeats a seed exactly", async () => {
    for (const seed of [3, 17, 42])
      expect((await runRolloutSeed(seed)).trace).to.equal((await runRolloutSeed(seed)).trace);
  });
});

describePlantedBugs("the planted bugs of rollouts", rolloutMutants, { processes, what: "rollouts" });
