import { expect } from "chai";
import { isOlder } from "#rollout/version.ts";

describe("the comparison of versions", () => {
  it("follows semantic versions, with missing numbers as zeros", () => {
    const ascending = ["0.9", "0.10.0-rc.1", "0.10.0", "1", "1.2.3-alpha.beta", "1.2.3", "25.05", "25.11"];
    for (const [at, version] of ascending.entries())
      for (const [place, other] of ascending.entries())
        expect(isOlder(version, other), `${version} < ${other}`).to.equal(at < place);
    expect([isOlder("1.0", "1.0.0"), isOlder("1.0.0+a", "1.0.0+b")]).to.deep.equal([false, false]);
  });

  it("calls a malformed version neither older nor newer", () => {
    for (const other of ["", "main", "25.11.20260101.abcdef", "1.0.0-rc..1", "1.0-rc1", "1..0"])
      expect([isOlder(other, "99.0.0"), isOlder("0.0.1", other)], other).to.deep.equal([false, false]);
  });
});
