import { expect } from "chai";
import type { UpdateRecords } from "#controller/updates/update-records.ts";
import { isBundleNeeded } from "#controller/updates/needed-bundles.ts";
import type { UpdatePhase } from "#rollout/records.ts";
import { statementOf } from "#support/update-world.ts";

const statement = statementOf("0.2.0");
const sha256 = statement.bundle?.sha256 ?? "";

function needed(phase: UpdatePhase | undefined, more: object = {}, generation = 1): boolean {
  const progress = phase && { value: { phase, generation: 1 } };
  const update = { statement, head: { value: { generation } }, wishes: {}, progress, ...more };
  return isBundleNeeded({ all: () => [update as unknown as UpdateRecords] }, sha256);
}

describe("the bundles that controllers keep", () => {
  it("are those of updates that nodes may still be brought to", () => {
    expect([needed(undefined), needed("rolling_out"), needed("succeeded", {}, 2)]).to.deep.equal([true, true, true]);
    expect(isBundleNeeded({ all: () => [] }, sha256)).to.equal(false);
  });

  it("are not those of updates that have ended", () => {
    for (const phase of ["succeeded", "failed", "cancelled", "rolled_back"] as const)
      expect(needed(phase), phase).to.equal(false);
  });
});
