import { expect } from "chai";
import { watchLag } from "#controller/server/event-loop-lag.ts";

describe("a pause of the process", () => {
  let now = 1_000;
  const pauses = watchLag(() => now);
  after(() => pauses.stop());

  it("F-31: of more than 5 s makes reads of its time and right after it stale, and no others", () => {
    expect(pauses.mayBeStale(now)).to.equal(false);
    now += 4_900;
    expect(pauses.mayBeStale(now)).to.equal(false);
    const before = now;
    now += 5_100;
    expect(pauses.mayBeStale(now)).to.equal(true);
    now += 200;
    // A read in the second turn of the event loop, and a read that had begun before.
    expect([pauses.mayBeStale(now), pauses.mayBeStale(before)]).to.deep.equal([true, true]);
    now += 100;
    expect(pauses.mayBeStale(now)).to.equal(false);
  });
});
