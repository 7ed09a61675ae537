import { expect } from "chai";
import { lossId } from "#crdt/conflict.ts";
import { Siblings } from "#crdt/siblings.ts";
import type { Register } from "#crdt/register.ts";

const blank = { ms: 1, c: 0, x: { origins: [], seqs: [] } } as const;
const write = (key: string, o: string, text = "1"): Register => ({ ...blank, key, text, o, s: 1 });

describe("siblings", () => {
  it("are bounded in number, in bytes and per key; the first ones stay", () => {
    const limits = { count: 10, bytes: 3_000, ofKey: 3 };
    const many = new Siblings(() => false, limits);
    for (let index = 0; index < 50; index++) many.updateAfterMerge(write(`k${index}`, "a"), write(`k${index}`, "b"));
    expect([many.count, many.turnedAway, many.isFull]).to.deep.equal([10, 40, true]);
    expect([...many.keys()][0]).to.equal("k0");

    const large = new Siblings(() => false, limits);
    for (let index = 0; index < 50; index++)
      large.updateAfterMerge(write(`k${index}`, "a"), write(`k${index}`, "b", "x".repeat(2_000)));
    expect([large.count, large.isFull]).to.deep.equal([2, true]);

    const one = new Siblings(() => false, limits);
    for (let index = 0; index < 50; index++) one.updateAfterMerge(write("k", "a"), write("k", `b${index}`));
    expect([one.count, one.turnedAway]).to.deep.equal([3, 47]);
  });

  it("free room when superseded or dropped, and are acknowledged by id", () => {
    const siblings = new Siblings(() => false, { count: 1, bytes: 1_000, ofKey: 1 });
    const lost = write("k", "b");
    siblings.updateAfterMerge(write("k", "a"), lost);
    // The losing writer writes again without having seen the winner.
    const later = { ...lost, s: 2, text: "2" };
    siblings.updateAfterMerge(write("k", "a"), later);
    expect(siblings.of("k")).to.deep.equal([later]);
    expect(siblings.acknowledge(lossId("k", lost))).to.equal(undefined);
    expect(siblings.acknowledge(lossId("k", later))).to.equal(later);
    expect([siblings.acknowledge(lossId("k", later)), siblings.isSettled(later)]).to.deep.equal([undefined, true]);
    siblings.drop(later);
    expect([siblings.count, siblings.isFull, siblings.isSettled(later)]).to.deep.equal([0, false, false]);
  });

  it("are settled if they arrive after their acknowledgement", () => {
    const lost = write("k", "b");
    const siblings = new Siblings((id) => id === lossId("k", lost));
    siblings.updateAfterMerge(write("k", "a"), lost);
    expect(siblings.of("k")).to.deep.equal([lost]);
    expect(siblings.isSettled(lost)).to.equal(true);
  });
});
