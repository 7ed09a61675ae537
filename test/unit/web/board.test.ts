import { expect } from "chai";
import { Board } from "#web/board.ts";

describe("The board of a page", () => {
  it("tells what is new since a version, and nothing twice", () => {
    const board = new Board();
    board.show([
      ["a", "1"],
      ["b", "1"],
    ]);
    const first = board.since("");
    expect(first.parts).to.deep.equal([
      ["a", "1"],
      ["b", "1"],
    ]);
    expect(board.since(first.version).parts).to.deep.equal([]);
    board.show([
      ["a", "1"],
      ["b", "2"],
      ["c", "3"],
    ]);
    expect(board.since(first.version).parts).to.deep.equal([
      ["b", "2"],
      ["c", "3"],
    ]);
  });

  it("tells all to whoever knows another board's version, or none", () => {
    const [one, other] = [new Board(), new Board()];
    for (const board of [one, other]) board.show([["a", "1"]]);
    for (const version of [other.version, "", "0.9", "x", `${one.version.split(".")[0]}.x`])
      expect(one.since(version).parts, version).to.deep.equal([["a", "1"]]);
  });

  it("calls its readers when something is new, and only then", () => {
    const board = new Board();
    let calls = 0;
    expect(board.isRead).to.equal(false);
    const leave = board.read(() => (calls += 1));
    expect(board.isRead).to.equal(true);
    board.show([["a", "1"]]);
    board.show([["a", "1"]]);
    board.show([["a", "2"]]);
    expect(calls).to.equal(2);
    leave();
    board.show([["a", "3"]]);
    expect(calls).to.equal(2);
    expect(board.isRead).to.equal(false);
  });
});
