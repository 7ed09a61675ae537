import { expect } from "chai";
import { foldNames } from "#tui/draw-digest.ts";

describe("folded names", () => {
  const folded = (...names: readonly string[]) => foldNames(names).map(({ text }) => text);

  it("are the first and last of four or more names with ascending numbers", () => {
    expect(folded("n1", "n2", "n3", "n4")).to.deep.equal(["n1…n4"]);
    expect(folded("n8", "n9", "n10", "n11", "n13")).to.deep.equal(["n8…n11", "n13"]);
    expect(folded("w-009.dc1", "w-010.dc1", "w-011.dc1", "w-012.dc1")).to.deep.equal(["w-009.dc1…w-012.dc1"]);
    expect(folded("n1", "n2", "n3")).to.deep.equal(["n1", "n2", "n3"]);
  });

  it("are unchanged if anything else differs", () => {
    for (const names of [
      ["a1", "b2", "c3", "d4"],
      ["n4", "n3", "n2", "n1"],
      ["n1", "n3", "n5", "n7"],
      ["n1.a", "n2.b", "n3.c", "n4.d"],
      ["n9", "n010", "n011", "n012"],
      ["n1.1", "n1.2", "n2.2", "n2.3"],
      ["one", "two", "three", "four"],
      [],
    ])
      expect(folded(...names)).to.deep.equal(names);
  });
});
