import { expect } from "chai";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runCampaign } from "./campaign.ts";
import type { Campaign } from "./campaign.ts";
import { mutants } from "./mutants.ts";
import { applyEdit } from "./plant.ts";
import { sliceBase } from "#support/slice.ts";
import { Scheduler } from "./scheduler.ts";
import { runSeed } from "./seed.ts";

const root = join(import.meta.dirname, "../..");
const processes = 2;

/** The least number of each event in any 150 seeds: a quarter of the usual number, less for rare events. */
const met = {
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
    // The campaign met its purpose.
    for (const [name, least] of Object.entries(met)) expect(figures[name], name).to.be.greaterThan(least);
  });

  it("does the same twice for one seed", async () => {
    for (const seed of [0, 1, 2].map((place) => sliceBase() + place))
      expect((await runSeed(seed)).trace, `seed ${seed}`).to.equal((await runSeed(seed)).trace);
  });

  it("sees through all that an event settles before the next event, however many promises that takes", async () => {
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

describe("the planted bugs", () => {
  const found = new Map<string, Promise<Campaign>>();
  before(() => {
    // A few campaigns run at once, started before the first is awaited.
    const names = Object.keys(mutants);
    const lanes: Promise<unknown>[] = Array.from({ length: processes }, () => Promise.resolve());
    for (const [index, mutant] of names.entries()) {
      const lane = index % processes;
      const campaign = (lanes[lane] as Promise<unknown>).then(() =>
        runCampaign({ from: mutants[mutant]?.seed ?? 1, seeds: 150, mutant, untilFirst: true }),
      );
      lanes[lane] = campaign.catch(() => undefined);
      found.set(mutant, campaign);
    }
  });

  for (const [name, { why, seed = 1 }] of Object.entries(mutants))
    it(`are found: ${name}, ${why}`, async () => {
      const campaign = await found.get(name);
      const missed = `no seed from ${seed} on finds it; write another one down: npm run test:sim -- --seeds 3000 --mutant ${name}`;
      expect(campaign?.failures.length, missed).to.equal(1);
    });

  it("are refused when the source has moved on", () => {
    const edit = { file: "x.ts", from: "const a = 1;", to: "" };
    expect(() => applyEdit("const b = 2;", edit)).to.throw("does not hold exactly once");
    expect(() => applyEdit("const a = 1; const a = 1;", edit)).to.throw("does not hold exactly once");
  });

  it("are nowhere in the product, and each has its place in the source", () => {
    const shipped = globSync("{src,dist,bin}/**/*.{ts,js}", { cwd: root });
    const texts = shipped.map((file) => [file, readFileSync(join(root, file), "utf8")] as const);
    const whys = Object.values(mutants).map(({ why }) => why);
    const own = texts.filter(([, text]) => /sim\/(mutants|plant)/.test(text) || whys.some((why) => text.includes(why)));
    expect(own.map(([file]) => file)).to.deep.equal([]);
    for (const { edits } of Object.values(mutants))
      for (const edit of edits) applyEdit(readFileSync(join(root, "src", edit.file), "utf8"), edit);
  });
});
