import { expect } from "chai";
import { isOlder } from "#rollout/version.ts";

/** Each is older than the one behind it. */
function expectAscending(...versions: readonly string[]): void {
  for (const [at, version] of versions.entries())
    for (const [place, other] of versions.entries())
      expect(isOlder(version, other), `${version} < ${other}`).to.equal(at < place);
}

describe("whether a version is older", () => {
  it("is told by its numbers, however many there are", () => {
    expectAscending("0.9", "0.10.0", "1", "1.2.3", "1.2.3.4", "2.0.0");
    expect([isOlder("1.0", "1.0.0"), isOlder("1.0.0", "1.0")]).to.deep.equal([false, false]);
    expectAscending("1.0.9007199254740992", "1.0.9007199254740993");
  });

  it("is told by the precedence of semantic versions", () => {
    expectAscending(
      "0.3.0-rc1",
      "0.3.0",
      "1.0.0-alpha",
      "1.0.0-alpha.1",
      "1.0.0-alpha.beta",
      "1.0.0-beta",
      "1.0.0-beta.2",
      "1.0.0-beta.11",
      "1.0.0-rc.1",
      "1.0.0",
    );
    // Numbers come before words, and words in the order of ASCII.
    expectAscending("1.0.0--", "1.0.0-A", "1.0.0-a");
    expectAscending("1.0.0-9", "1.0.0--1");
  });

  it("does not depend on what is behind a plus sign", () => {
    expect(isOlder("1.0.0+a", "1.0.0+b")).to.equal(false);
    expectAscending("1.0.0-rc.1+z", "1.0.0+a", "1.0.1-0.3.7");
  });

  it("is not known of what is neither", () => {
    for (const other of [
      "",
      "main",
      "25.11.20260101.abcdef",
      "1.0.0-",
      "1.0.0-rc..1",
      "1.0.0-01",
      "1.0-rc1",
      "v1.0.0",
      "1..0",
    ])
      expect([isOlder(other, "99.0.0"), isOlder("0.0.1", other)], other).to.deep.equal([false, false]);
  });
});
