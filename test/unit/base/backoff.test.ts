import { expect } from "chai";
import { createBackoff } from "#base/backoff.ts";

describe("the pauses between failed tries", () => {
  it("double up to the cap, and begin again after a reset", () => {
    const backoff = createBackoff({ base: 1000, cap: 30_000, random: () => 1 });
    const waits = Array.from({ length: 7 }, () => backoff.next());
    expect(waits).to.deep.equal([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    backoff.reset();
    expect(backoff.next()).to.equal(1000);
  });

  it("are random, but at least a tenth of the base", () =>
    expect(createBackoff({ base: 1000, cap: 30_000, random: () => 0 }).next()).to.equal(100));

  it("take a base that changes, and may be 0 with `least: 0`", () => {
    let base = 200;
    const [numbers, random] = [[1, 1, 0, 0.5], (): number => numbers.shift() ?? 0];
    const backoff = createBackoff({ base: () => base, cap: 3000, random, least: 0 });
    expect([backoff.next(), backoff.next(), backoff.next()]).to.deep.equal([200, 400, 0]);
    backoff.reset();
    base = 300;
    expect(backoff.next()).to.equal(150);
  });
});
