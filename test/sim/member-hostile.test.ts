import { expect } from "chai";
import { tellLongForm, tries } from "#support/hostile.ts";
import { seedsOfSlice } from "#support/slice.ts";
import { runSeed } from "../hostile/world.ts";

describe("three honest members and one that lies in every field", function () {
  this.timeout(1_200_000);

  it(`keep what was acknowledged and revoked, agree within 10 s of its removal, and name it (${tries(40, 1_000)} seeds)`, async () => {
    const failed: string[] = [];
    let lies = 0;
    let acknowledged = 0;
    for (const seed of seedsOfSlice(tries(40, 1_000))) {
      const outcome = await runSeed(seed);
      lies += outcome.lies;
      acknowledged += outcome.acknowledged;
      if (outcome.failures.length > 0)
        failed.push(`seed ${seed} (${outcome.habits.join(", ")}): ${outcome.failures[0]}`);
    }
    tellLongForm(`${lies} lies, ${acknowledged} writes acknowledged, ${failed.length} seeds failed`);
    expect(failed).to.deep.equal([]);
    expect(acknowledged).to.be.greaterThan(tries(40, 1_000) * 20);
  });
});
