import { expect } from "chai";
import { staleViewFilter } from "#actions/stale-view-filter.ts";

const viewOf = (generation: number, epoch: number, id = "c1") => ({ generation, owner: { id, epoch } });

describe("the filter of stale views of an update", () => {
  it("drops views of a lower epoch or generation", () => {
    const filter = staleViewFilter();
    for (const [view, isAccepted] of [
      [viewOf(1, 1), true],
      [viewOf(1, 2, "c2"), true],
      [viewOf(1, 1), false],
      [viewOf(1, 2, "c2"), true],
      [viewOf(2, 2, "c2"), true],
      [viewOf(1, 3, "c3"), false],
      [viewOf(2, 3), true],
    ] as const)
      expect(filter.accept(view)).to.equal(isAccepted);
  });

  it("drops a node's view with a lower seq, and begins again with each owner or generation", () => {
    const filter = staleViewFilter();
    filter.accept(viewOf(1, 1));
    const accepted = [4, 7, 4, 7].map((seq) => filter.acceptNode({ id: "n1", seq }));
    expect(accepted).to.deep.equal([true, true, false, true]);
    expect(filter.acceptNode({ id: "n2", seq: 1 })).to.equal(true);
    for (const other of [viewOf(1, 2), viewOf(1, 2, "c2"), viewOf(2, 2, "c2")]) {
      filter.accept(other);
      expect([4, 3].map((seq) => filter.acceptNode({ id: "n1", seq }))).to.deep.equal([true, false]);
    }
    expect(filter.acceptNode({ id: "n3" })).to.equal(true);
  });
});
