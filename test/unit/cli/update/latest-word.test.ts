import { expect } from "chai";
import { latestWord } from "../../../../src/cli/update/latest-word.ts";

const word = (generation: number, epoch: number, id = "c1") => ({ generation, owner: { id, epoch } });

describe("the latest word of an update", () => {
  it("is no former owner's, and of no former generation", () => {
    const latest = latestWord();
    const all = [
      word(1, 1),
      word(1, 2, "c2"),
      word(1, 1),
      word(1, 2, "c2"),
      word(2, 2, "c2"),
      word(1, 3, "c3"),
      word(2, 3),
    ];
    expect(all.map(latest.isLatest)).to.deep.equal([true, true, false, true, true, false, true]);
  });

  it("is the latest of each node, and another owner counts anew", () => {
    const latest = latestWord();
    latest.isLatest(word(1, 1));
    const told = [4, 7, 4, 7].map((seq) => latest.isLatestOf({ id: "n1", seq }));
    expect(told).to.deep.equal([true, true, false, true]);
    expect(latest.isLatestOf({ id: "n2", seq: 1 })).to.equal(true);
    for (const other of [word(1, 2), word(1, 2, "c2"), word(2, 2, "c2")]) {
      latest.isLatest(other);
      expect([4, 3].map((seq) => latest.isLatestOf({ id: "n1", seq }))).to.deep.equal([true, false]);
    }
    expect(latest.isLatestOf({ id: "n3" })).to.equal(true);
  });
});
