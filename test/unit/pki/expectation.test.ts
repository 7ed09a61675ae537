import { expect } from "chai";
import { expiryWarning } from "#pki/expectation.ts";

const day = 86_400_000;

describe("the warning about a certificate's end", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const endingIn = (days: number) =>
    expiryWarning({ what: "the certificate", notAfter: new Date(now + days * day), way: "renew it" }, now);

  it("begins at 30, 14 and 7 days, and is a failure at 2", () => {
    for (const [days, threshold, isFailure] of [
      [31, undefined, undefined],
      [30, 30, false],
      [15, 30, false],
      [14, 14, false],
      [8, 14, false],
      [7, 7, false],
      [3, 7, false],
      [2, 2, true],
      [1, 2, true],
      [-1, 2, true],
    ] as const)
      expect([endingIn(days)?.days, endingIn(days)?.isFailure]).to.deep.equal([threshold, isFailure]);
  });

  it("names the days left, the date and the command that renews the certificate", () => {
    const messages = [6.5, 1.5, -3].map((days) => endingIn(days)?.message);
    expect(messages).to.deep.equal([
      "the certificate ends in 6 days, on 2026-01-07: renew it",
      "the certificate ends in 1 day, on 2026-01-02: renew it",
      "the certificate ended on 2025-12-29: renew it",
    ]);
  });
});
