import { expect } from "chai";
import { runCampaign } from "./campaign.ts";
import { mutants } from "./mutants.ts";
import { applyEdit } from "./plant.ts";
import { describePlantedBugs } from "./planted-bugs.ts";
import { sliceBase } from "#support/slice.ts";
import { Scheduler } from "./scheduler.ts";
import { runSeed } from "./seed.ts";

const processes = 2;

/** The least number of each event in any 150 seeds: a quarter of the usual number, less for rare events. */
const leastEvents = {
  crashes: 100,
  partitions: 100,
  jumps: 100,
  losses: 3,
  restores: 5,
  joins: 20,
  conflicts: 100,
  dropped: 1_000,
};

describe("the simulator", () => {
  it("loses no acknowledged write and lets no two controllers diverge, in 150 seeds (F-6, F-8, F-26 to F-28, F-31)", async () => {
    const { seeds, failures, figures } = await runCampaign({ from: sliceBase(), seeds: 150, processes });
    expect(failures.map(({ seed, failure }) => `npm run test:sim -- --from ${seed}: ${failure}`)).to.deep.equal([]);
    expect(seeds).to.equal(150);
    // The seeds had enough of each event.
    for (const [name, least] of Object.entries(leastEvents)) expect(figures[name], name).to.be.greaterThan(least);
  });

  it("repeats a seed exactly", async () => {
    for (const seed of [0, 1, 2].map((place) => sliceBase() + place))
      expect((await runSeed(seed)).trace, `seed ${seed}`).to.equal((await runSeed(seed)).trace);
  });

  it("settles every promise of an event before the next event", async () => {
    const scheduler = new Scheduler();
    const seen: string[] = [];
    const settle = async (): Promise<void> => {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      seen.push("settled");
    };
    scheduler.after(1, () => void settle());
    scheduler.after(2, () => seen.push("next"));
    await scheduler.runUntil(3);
    expect(seen).to.deep.equal(["settled", "next"]);
  });
});

describePlantedBugs("the planted bugs of replication", mutants, { processes });

describe("planting a bug", () => {
  it("is refused when the source has changed", () => {
    const edit = { file: "x.ts", from: "const a = 1;", to: "" };
    expect(() => applyEdit("const b = 2;", edit)).to.throw("does not hold exactly once");
    expect(() => applyEdit("const a = 1; const a = 1;", edit)).to.throw("does not hold exactly once");
  });
});
