import { expect } from "chai";
import { collectAfterDeletions } from "#controller/heap.ts";

describe("the memory of a controller", () => {
  const collectionsAt = (...sizes: readonly number[]): readonly number[] => {
    const at: number[] = [];
    let place = 0;
    const sample = collectAfterDeletions(() => at.push(place));
    for (const size of sizes) {
      sample(size);
      place++;
    }
    return at;
  };

  it("is collected once, after many deletions have ended", () =>
    expect(collectionsAt(110_000, 110_000, 90_000, 70_000, 60_000, 60_000, 60_000, 60_000)).to.deep.equal([5]));

  it("is not collected after few deletions or those of a small share of the state", () => {
    expect(collectionsAt(12_000, 12_000, 3_000, 3_000)).to.deep.equal([]);
    expect(collectionsAt(1_000_000, 900_000, 900_000)).to.deep.equal([]);
  });

  it("is returned to the system by V8", () => {
    let big: unknown[] | undefined = Array.from({ length: 100_000 }, (_, index) => ({ index, text: `${index}` }));
    const before = process.memoryUsage().heapTotal;
    const sample = collectAfterDeletions();
    for (const size of [big.length, big.length]) sample(size);
    big = undefined;
    for (const size of [0, 0]) sample(size);
    expect(process.memoryUsage().heapTotal).to.be.lessThan(before);
  });
});
