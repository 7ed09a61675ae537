import { expect } from "chai";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sliceBase } from "#support/slice.ts";
import { runCampaign, type Campaign } from "../campaign.ts";
import { applyEdit } from "../plant.ts";
import { rolloutMutants } from "./mutants.ts";
import { runKills, runRolloutSeed } from "./seed.ts";

const root = join(import.meta.dirname, "../../..");
const processes = 2;

function told({ failures }: Campaign): readonly string[] {
  return failures.map(({ seed, failure }) => `${seed}: ${failure}`);
}

describe("the simulator of rollouts", () => {
  it("never has two owners on one node, nor too many nodes down, nor leaves one between generations, in 150 seeds", async () => {
    const campaign = await runCampaign({ from: sliceBase(), seeds: 150, processes, what: "rollouts" });
    expect(told(campaign)).to.deep.equal([]);
    expect(campaign.seeds).to.equal(150);
    // The campaign met its purpose.
    const { figures } = campaign;
    const met = [
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
    for (const name of met) expect(figures[name], name).to.be.greaterThan(15);
    for (const name of ["failures", "removed"]) expect(figures[name], name).to.be.greaterThan(3);
    for (const name of ["activations", "ended"]) expect(figures[name], name).to.be.greaterThan(80);
  });

  it("takes the owner's death at its writes, before they are durable and after", async () => {
    const seed = sliceBase();
    const { failure, figures } = await runKills(seed, 12);
    expect(failure, `seed ${seed}`).to.equal(undefined);
    expect(figures["killed"]).to.be.greaterThan(0);
  });

  it("does the same twice for one seed", async () => {
    for (const seed of [3, 17, 42])
      expect((await runRolloutSeed(seed)).trace).to.equal((await runRolloutSeed(seed)).trace);
  });
});

describe("the planted bugs of rollouts", () => {
  const found = new Map<string, Promise<Campaign>>();
  before(() => {
    const lanes: Promise<unknown>[] = Array.from({ length: processes }, () => Promise.resolve());
    for (const [index, [mutant, { seed = 1 }]] of Object.entries(rolloutMutants).entries()) {
      const lane = index % processes;
      const campaign = (lanes[lane] as Promise<unknown>).then(() =>
        runCampaign({ from: seed, seeds: 150, mutant, untilFirst: true, what: "rollouts" }),
      );
      lanes[lane] = campaign.catch(() => undefined);
      found.set(mutant, campaign);
    }
  });

  for (const [name, { why }] of Object.entries(rolloutMutants))
    it(`are found: ${name}, ${why}`, async () => {
      const campaign = await found.get(name);
      expect(campaign?.failures.length, `${campaign?.seeds} seeds did not find it`).to.equal(1);
    });

  it("are nowhere in the product, and each has its place in the source", () => {
    const shipped = globSync("{src,dist,bin}/**/*.{ts,js}", { cwd: root });
    const whys = Object.values(rolloutMutants).map(({ why }) => why);
    const own = shipped.filter((file) => whys.some((why) => readFileSync(join(root, file), "utf8").includes(why)));
    expect(own).to.deep.equal([]);
    for (const { edits } of Object.values(rolloutMutants))
      for (const edit of edits) applyEdit(readFileSync(join(root, "src", edit.file), "utf8"), edit);
  });
});
