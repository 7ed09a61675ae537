import { expect } from "chai";
import { tellLongForm, tries } from "#support/hostile.ts";
import { seedsOfSlice } from "#support/slice.ts";
import { runSeedOverTls } from "../../hostile/processes.ts";

describe("a member that lies, as a process over mTLS", function () {
  this.timeout(1_200_000);

  for (const seed of seedsOfSlice(tries(1, 20)))
    it(`does no harm to three controllers, and is named (seed ${seed})`, async () => {
      const { failures, acknowledged, agreedMs } = await runSeedOverTls(seed);
      expect(failures).to.deep.equal([]);
      tellLongForm(`seed ${seed}: ${acknowledged} writes, agreed ${Math.round(agreedMs ?? 0)} ms after the removal`);
    });
});
