import { expect } from "chai";
import { isInGrace } from "#api/late-renewal.ts";

describe("the renewal of a certificate that has expired", () => {
  it("F-25: is allowed for 30 days from its end", () => {
    const day = 86_400_000;
    const isTaken = [-1, 0, 30 * day, 30 * day + 1].map((since) => isInGrace(new Date(1e12), 1e12 + since));
    expect(isTaken).to.deep.equal([false, true, true, false]);
  });
});
