import { expect } from "chai";
import type { History, ListedConflict, Outcome, View, Write } from "../../checker/history.ts";
import { judge, type Rule } from "../../checker/judge.ts";

const key = "object/Own/x";
const node = "decision/n";

/** A write of one unit of time, from a whole number on. */
function write(at: number, value: string | null, began: number, more: Partial<Write> = {}): Write {
  return { episode: 1, at, key, value, began, ended: began + 1, outcome: "ok" as Outcome, ...more };
}

function decide(at: number, value: "approved" | "rejected", began: number, more: Partial<Write> = {}): Write {
  return write(at, value, began, { key: node, ...more });
}

/** Four controllers that show the same. */
function views(values: Readonly<Record<string, string>>, conflicts: readonly ListedConflict[] = []): readonly View[] {
  return [0, 1, 2, 3].map((at) => ({ at, values: new Map(Object.entries(values)), conflicts }));
}

const cut = {
  from: 10,
  to: 20,
  sides: [
    [0, 1],
    [2, 3],
  ],
};

function rulesOf(history: Partial<History>): readonly Rule[] {
  const whole: History = {
    episode: 1,
    writes: [],
    cuts: [],
    agreed: [],
    setBacks: [],
    views: [],
    healedMs: 100,
    falselyHealthy: [],
    ...history,
  };
  return [...new Set(judge(whole).map(({ rule }) => rule))];
}

describe("the checker's judge", () => {
  it("has nothing to say of what is as promised", () => {
    const writes = [write(0, "a", 1), write(0, "b", 3), write(2, null, 5, { key: "object/Own/y" })];
    expect(rulesOf({ writes, views: views({ [key]: "b" }) })).to.deep.equal([]);
  });

  it("finds one acknowledged write that is lost", () => {
    const writes = [write(0, "a", 1), write(0, "b", 3)];
    expect(rulesOf({ writes, views: views({ [key]: "a" }) })).to.deep.equal(["lost"]);
    expect(rulesOf({ writes, views: views({}) })).to.deep.equal(["lost"]);
  });

  it("takes what was asked and never answered for done, or not", () => {
    const writes = [write(0, "a", 1), write(0, "b", 3, { outcome: "unknown" })];
    for (const value of ["a", "b"]) expect(rulesOf({ writes, views: views({ [key]: value }) })).to.deep.equal([]);
  });

  it("finds what nobody wrote, or was told to be refused", () => {
    const writes = [write(0, "a", 1), write(0, "b", 3, { outcome: "refused" })];
    for (const value of ["b", "c"])
      expect(rulesOf({ writes, views: views({ [key]: value }) })).to.deep.equal(["invented"]);
  });

  it("finds a removed value that came back", () => {
    const writes = [write(0, "a", 1), write(2, null, 5)];
    expect(rulesOf({ writes, agreed: [3], views: views({ [key]: "a" }) })).to.deep.equal(["came back"]);
    expect(rulesOf({ writes, agreed: [3], views: views({}) })).to.deep.equal([]);
  });

  it("knows that who had read a value saw it, wherever that was written", () => {
    const writes = [write(0, "a", 11), write(2, "b", 15, { read: "a" })];
    expect(rulesOf({ writes, views: views({ [key]: "a" }) })).to.deep.equal(["lost"]);
  });

  it("does not know what a controller with an old folder had seen", () => {
    const writes = [write(0, "a", 1), write(0, "b", 13)];
    const setBacks = [{ at: 0, from: 10, to: 20 }];
    expect(rulesOf({ writes, setBacks, views: views({ [key]: "a" }) })).to.deep.equal([]);
  });

  it("finds replicas that differ", () => {
    const [first, second] = [...views({ [key]: "a" }), ...views({})].toSpliced(1, 3) as [View, View];
    expect(rulesOf({ writes: [write(0, "a", 1, { outcome: "unknown" })], views: [first, second] })).to.deep.equal([
      "views differ",
    ]);
  });

  it("finds that they agree late, or never", () => {
    expect(rulesOf({ healedMs: 10_001 })).to.deep.equal(["slow"]);
    expect(rulesOf({ healedMs: undefined })).to.deep.equal(["no agreement"]);
  });

  it("V1: a reject beats every approve that cannot have read it", () => {
    const writes = [
      decide(0, "approved", 1),
      decide(0, "rejected", 11),
      decide(2, "rejected", 12),
      decide(2, "approved", 14),
    ];
    const known = { writes, cuts: [cut], agreed: [5] };
    expect(rulesOf({ ...known, views: views({ [node]: "approved" }) })).to.deep.equal(["reject beaten"]);
    expect(rulesOf({ ...known, views: views({ [node]: "rejected" }) })).to.deep.equal([]);
  });

  it("V1: who approves having read every reject lets the node in", () => {
    const writes = [decide(0, "rejected", 1), decide(2, "approved", 7)];
    expect(rulesOf({ writes, agreed: [5], views: views({ [node]: "rejected" }) })).to.deep.equal(["approve ignored"]);
    expect(rulesOf({ writes, views: views({ [node]: "rejected" }) })).to.deep.equal([]);
  });

  describe("V2: conflicts", () => {
    const writes = [write(0, "a", 11), write(2, "b", 12), write(2, "c", 14)];
    const known = { writes, cuts: [cut] };
    const due = { key, winner: "c", loser: "a" };

    it("due is one record for what was written on two sides of a cut", () => {
      expect(rulesOf({ ...known, views: views({ [key]: "c" }, [due]) })).to.deep.equal([]);
      expect(rulesOf({ ...known, views: views({ [key]: "c" }) })).to.deep.equal(["conflict missing"]);
    });

    it("what was superseded on its own side is none", () => {
      const undue = { key, winner: "a", loser: "b" };
      expect(rulesOf({ ...known, views: views({ [key]: "c" }, [due, undue]) })).to.deep.equal(["conflict undue"]);
    });

    it("one after the other is none", () => {
      const after = [write(0, "a", 1), write(2, "b", 7)];
      const listed = [{ key, winner: "b", loser: "a" }];
      expect(rulesOf({ writes: after, agreed: [4], views: views({ [key]: "b" }, listed) })).to.deep.equal([
        "conflict undue",
      ]);
    });
  });

  it("V4: says which controller refused writes and said that it was healthy", () =>
    expect(rulesOf({ falselyHealthy: ["3"] })).to.deep.equal(["falsely healthy"]));
});
