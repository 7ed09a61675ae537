import { expect } from "chai";
import { limitRate } from "#controller/server/rate.ts";

describe("how fast one peer may ask", () => {
  let now = 0;
  const limit = (perSecond: number, burst: number) => limitRate({ perSecond, burst }, () => now);

  beforeEach(() => (now = 0));

  it("S-17: is bounded by what was saved up, and by what comes with time", () => {
    const mayAsk = limit(2, 3);
    expect([1, 2, 3, 4].map(() => mayAsk("a"))).to.deep.equal([true, true, true, false]);
    expect(mayAsk("b")).to.equal(true);
    now += 1_000;
    expect([1, 2, 3].map(() => mayAsk("a"))).to.deep.equal([true, true, false]);
    now += 3_600_000;
    expect(
      [1, 2, 3, 4].map(() => mayAsk("a")),
      "after a long rest",
    ).to.deep.equal([true, true, true, false]);
  });

  it("S-17: holds however many others come meanwhile: a bucket that is not full is kept", () => {
    const mayRenew = limit(1 / 60, 10);
    for (let times = 0; times < 10; times++) mayRenew("a");
    now += 61_000;
    for (let other = 0; other < 10_050; other++) mayRenew(`other ${other}`);
    // One token came back in the minute, not ten.
    expect([1, 2].map(() => mayRenew("a"))).to.deep.equal([true, false]);
  });
});
