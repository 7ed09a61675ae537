import { expect } from "chai";
import { quietOf, type WorkItem } from "#tui/work-item.ts";

const item: WorkItem = {
  key: "k",
  stage: "nix",
  title: "install",
  module: "command.run",
  startedAt: 10_000,
  changes: [],
  tail: "",
  always: false,
};
const usual = new Map([["command.run install", 6000]]);

describe("the marker of quiet steps", () => {
  it("marks a step without output for 45 s", () => {
    expect(quietOf(item, 54_999)).to.equal(undefined);
    expect(quietOf(item, 55_000)).to.deep.equal({ kind: "silent", since: 10_000 });
    expect(quietOf({ ...item, heardAt: 30_000 }, 60_000)).to.equal(undefined);
    expect(quietOf({ ...item, heardAt: 30_000 }, 75_000)).to.deep.equal({ kind: "silent", since: 30_000 });
  });

  it("marks a step that takes more than one and a half times as long as usual", () => {
    expect(quietOf(item, 19_000, usual)).to.equal(undefined);
    expect(quietOf(item, 19_001, usual)).to.deep.equal({ kind: "slow", usual: 6000 });
    expect(quietOf({ ...item, title: "other" }, 40_000, usual)).to.equal(undefined);
  });

  it("marks neither short nor ended steps", () => {
    expect(quietOf(item, 11_900, new Map([["command.run install", 100]]))).to.equal(undefined);
    expect(quietOf({ ...item, outcome: "ok" }, 99_000, usual)).to.equal(undefined);
  });
});
