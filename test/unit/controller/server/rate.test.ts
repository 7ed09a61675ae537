import { expect } from "chai";
import { limitRate } from "#controller/server/rate.ts";

describe("the rate limit of a caller", () => {
  let now = 0;
  const limit = (perSecond: number, burst: number) => limitRate({ perSecond, burst }, () => now);

  beforeEach(() => (now = 0));

  it("S-17: allows a burst, then so many requests per second, and no larger burst after a rest", () => {
    const isAllowed = limit(2, 3);
    expect([1, 2, 3, 4].map(() => isAllowed("a"))).to.deep.equal([true, true, true, false]);
    expect(isAllowed("b")).to.equal(true);
    now += 1_000;
    expect([1, 2, 3].map(() => isAllowed("a"))).to.deep.equal([true, true, false]);
    now += 3_600_000;
    expect([1, 2, 3, 4].map(() => isAllowed("a"))).to.deep.equal([true, true, true, false]);
  });

  it("S-17: keeps a bucket that is not full while thousands of other callers come", () => {
    const isAllowed = limit(1 / 60, 10);
    for (let times = 0; times < 10; times++) isAllowed("a");
    now += 61_000;
    for (let other = 0; other < 10_050; other++) isAllowed(`other ${other}`);

    expect([1, 2].map(() => isAllowed("a"))).to.deep.equal([true, false]);
  });
});
