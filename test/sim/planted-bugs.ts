import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { runCampaign, type Campaign, type CampaignOptions } from "./campaign.ts";
import type { Mutant } from "./mutants.ts";
import { applyEdit } from "./plant.ts";

const root = join(import.meta.dirname, "../..");

/** Declares the tests of planted bugs: a campaign of at most 150 seeds finds each, and the product has none of them. */
export function describePlantedBugs(
  title: string,
  bugs: Readonly<Record<string, Pick<Mutant, "edits" | "seed" | "why">>>,
  { processes, what }: Pick<CampaignOptions, "what"> & { readonly processes: number },
): void {
  describe(title, () => {
    const found = new Map<string, Promise<Campaign>>();
    before(() => {
      // A few campaigns run at once, started before the first is awaited.
      const queues: Promise<unknown>[] = Array.from({ length: processes }, () => Promise.resolve());
      for (const [index, [mutant, { seed: from = 1 }]] of Object.entries(bugs).entries()) {
        const queue = index % processes;
        const campaign = (queues[queue] as Promise<unknown>).then(() =>
          runCampaign({ from, seeds: 150, mutant, untilFirst: true, ...(what && { what }) }),
        );
        queues[queue] = campaign.catch(() => undefined);
        found.set(mutant, campaign);
      }
    });

    for (const [name, { why, seed = 1 }] of Object.entries(bugs))
      it(`are found: ${name}, ${why}`, async () => {
        const missed = `no seed from ${seed} finds it; record another one: npm run test:sim -- --seeds 3000 --mutant ${name}`;
        expect((await found.get(name))?.failures.length, missed).to.equal(1);
      });

    it("are not in the product, and each occurs once in the source", () => {
      const shipped = globSync("{src,dist,bin}/**/*.{ts,js}", { cwd: root });
      const texts = shipped.map((file) => [file, readFileSync(join(root, file), "utf8")] as const);
      const whys = Object.values(bugs).map(({ why }) => why);
      const own = texts.filter(
        ([, text]) => /sim\/(mutants|plant)/.test(text) || whys.some((why) => text.includes(why)),
      );
      expect(own.map(([file]) => file)).to.deep.equal([]);
      for (const { edits } of Object.values(bugs))
        for (const edit of edits) applyEdit(readFileSync(join(root, "src", edit.file), "utf8"), edit);
    });
  });
}
