import { expect } from "chai";
import { staleViewFilter } from "#actions/stale-view-filter.ts";

const word = (generation: number, epoch: number, id = "c1") => ({ generation, owner: { id, epoch } });

describe("the filter of stale views of an update", () => {
  it("is no former owner's, and of no former generation", () => {
    const filter = staleViewFilter();
    const all = [
      word(1, 1),
      word(1, 2, "c2"),
      word(1, 1),
      word(1, 2, "c2"),
      word(2, 2, "c2"),
      word(1, 3, "c3"),
      word(2, 3),
    ];
    expect(all.map(filter.accept)).to.deep.equal([true, true, false, true, true, false, true]);
  });

  it("is the latest of each node, and another owner counts anew", () => {
    const filter = staleViewFilter();
    filter.accept(word(1, 1));
    const told = [4, 7, 4, 7].map((seq) => filter.acceptNode({ id: "n1", seq }));
    expect(told).to.deep.equal([true, true, false, true]);
    expect(filter.acceptNode({ id: "n2", seq: 1 })).to.equal(true);
    for (const other of [word(1, 2), word(1, 2, "c2"), word(2, 2, "c2")]) {
      filter.accept(other);
      expect([4, 3].map((seq) => filter.acceptNode({ id: "n1", seq }))).to.deep.equal([true, false]);
    }
    expect(filter.acceptNode({ id: "n3" })).to.equal(true);
  });
});
