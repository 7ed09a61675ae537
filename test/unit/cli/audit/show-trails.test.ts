import { expect } from "chai";
import { newestOf } from "#cli/audit/show-trails.ts";

describe("kcore audit show", () => {
  it("prints the newest entries, and none with --limit 0", () => {
    const of = (limit: number) => newestOf(["a", "b", "c"], limit);
    expect([of(0), of(2), of(9)]).to.deep.equal([[], ["b", "c"], ["a", "b", "c"]]);
  });
});
