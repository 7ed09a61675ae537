import { expect } from "chai";
import { LiveParts } from "#web/live-parts.ts";

describe("the live parts of a page", () => {
  it("are sent if changed since the reader's version", () => {
    const live = new LiveParts();
    live.show([
      ["a", "1"],
      ["b", "1"],
    ]);
    const first = live.since("");
    expect(first.parts).to.deep.equal([
      ["a", "1"],
      ["b", "1"],
    ]);
    expect(live.since(first.version).parts).to.deep.equal([]);
    live.show([
      ["a", "1"],
      ["b", "2"],
      ["c", "3"],
    ]);
    expect(live.since(first.version).parts).to.deep.equal([
      ["b", "2"],
      ["c", "3"],
    ]);
  });

  it("are all sent to a reader with a version of another object, or none", () => {
    const [one, other] = [new LiveParts(), new LiveParts()];
    for (const live of [one, other]) live.show([["a", "1"]]);
    for (const version of [other.version, "", "0.9", "x", `${one.version.split(".")[0]}.x`])
      expect(one.since(version).parts, version).to.deep.equal([["a", "1"]]);
  });

  it("notify readers of changes only", () => {
    const live = new LiveParts();
    let calls = 0;
    expect(live.isRead).to.equal(false);
    const leave = live.read(() => (calls += 1));
    expect(live.isRead).to.equal(true);
    live.show([["a", "1"]]);
    live.show([["a", "1"]]);
    live.show([["a", "2"]]);
    expect(calls).to.equal(2);
    leave();
    live.show([["a", "3"]]);
    expect(calls).to.equal(2);
    expect(live.isRead).to.equal(false);
  });
});
