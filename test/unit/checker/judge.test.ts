import { expect } from "chai";
import type { History, ListedConflict, Outcome, View, Write } from "../../checker/history.ts";
import { judge, type Rule } from "../../checker/judge.ts";

const key = "object/Own/x";
const node = "decision/n";

/** A write of controller `at` that takes one unit of time from `began` on. */
function write(at: number, value: string | null, began: number, more: Partial<Write> = {}): Write {
  return { episode: 1, at, key, value, began, ended: began + 1, outcome: "ok" as Outcome, ...more };
}

function decide(at: number, value: "approved" | "rejected", began: number, more: Partial<Write> = {}): Write {
  return write(at, value, began, { key: node, ...more });
}

/** The same view at four controllers. */
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

/** The rules that a history breaks. */
function brokenRules(history: Partial<History>): readonly Rule[] {
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
  const [a, b] = [write(0, "a", 1), write(0, "b", 3)];
  const setBack = { setBacks: [{ at: 0, from: 10, to: 20 }] };
  for (const [title, rules, writes, shown, more = {}] of [
    ["accepts a view of the last write", [], [a, b, write(2, null, 5, { key: "object/Own/y" })], ["b"]],
    ["finds an acknowledged write that is lost", ["lost"], [a, b], ["a", undefined]],
    ["accepts a write without an answer as done or not", [], [a, { ...b, outcome: "unknown" }], ["a", "b"]],
    ["finds a refused or unknown write", ["invented"], [a, { ...b, outcome: "refused" }], ["b", "c"]],
    ["finds a removed value that came back", ["came back"], [a, write(2, null, 5)], ["a"], { agreed: [3] }],
    ["accepts the removal of a value", [], [a, write(2, null, 5)], [undefined], { agreed: [3] }],
    [
      "orders a write after the value that its writer had read at another controller",
      ["lost"],
      [write(0, "a", 11), write(2, "b", 15, { read: "a" })],
      ["a"],
    ],
    [
      "assumes no order for a controller that was set back to an old folder",
      [],
      [a, write(0, "b", 13)],
      ["a"],
      setBack,
    ],
  ] as readonly [string, readonly Rule[], readonly Write[], readonly (string | undefined)[], Partial<History>?][])
    it(title, () => {
      for (const value of shown)
        expect(
          brokenRules({ writes, ...more, views: views(value === undefined ? {} : { [key]: value }) }),
          value,
        ).to.deep.equal(rules);
    });

  it("finds replicas that differ", () => {
    const [first, second] = [...views({ [key]: "a" }), ...views({})].toSpliced(1, 3) as [View, View];
    expect(brokenRules({ writes: [write(0, "a", 1, { outcome: "unknown" })], views: [first, second] })).to.deep.equal([
      "views differ",
    ]);
  });

  it("finds replicas that agree late or never", () => {
    expect(brokenRules({ healedMs: 10_001 })).to.deep.equal(["slow"]);
    expect(brokenRules({ healedMs: undefined })).to.deep.equal(["no agreement"]);
  });

  it("finds an approve that wins against a reject that it had not read", () => {
    const writes = [
      decide(0, "approved", 1),
      decide(0, "rejected", 11),
      decide(2, "rejected", 12),
      decide(2, "approved", 14),
    ];
    const known = { writes, cuts: [cut], agreed: [5] };
    expect(brokenRules({ ...known, views: views({ [node]: "approved" }) })).to.deep.equal(["reject beaten"]);
    expect(brokenRules({ ...known, views: views({ [node]: "rejected" }) })).to.deep.equal([]);
  });

  it("finds an approve that had read every reject and does not count", () => {
    const writes = [decide(0, "rejected", 1), decide(2, "approved", 7)];
    expect(brokenRules({ writes, agreed: [5], views: views({ [node]: "rejected" }) })).to.deep.equal([
      "approve ignored",
    ]);
    expect(brokenRules({ writes, views: views({ [node]: "rejected" }) })).to.deep.equal([]);
  });

  describe("conflicts", () => {
    const writes = [write(0, "a", 11), write(2, "b", 12), write(2, "c", 14)];
    const known = { writes, cuts: [cut] };
    const due = { key, winner: "c", loser: "a" };

    it("one conflict is due for concurrent writes on two sides of a partition", () => {
      expect(brokenRules({ ...known, views: views({ [key]: "c" }, [due]) })).to.deep.equal([]);
      expect(brokenRules({ ...known, views: views({ [key]: "c" }) })).to.deep.equal(["conflict missing"]);
    });

    it("no conflict is due for a value superseded on its own side", () => {
      const undue = { key, winner: "a", loser: "b" };
      expect(brokenRules({ ...known, views: views({ [key]: "c" }, [due, undue]) })).to.deep.equal(["conflict undue"]);
    });

    it("no conflict is due for successive writes", () => {
      const after = [write(0, "a", 1), write(2, "b", 7)];
      const listed = [{ key, winner: "b", loser: "a" }];
      expect(brokenRules({ writes: after, agreed: [4], views: views({ [key]: "b" }, listed) })).to.deep.equal([
        "conflict undue",
      ]);
    });
  });

  it("finds a controller that refused writes and reported itself healthy", () =>
    expect(brokenRules({ falselyHealthy: ["3"] })).to.deep.equal(["falsely healthy"]));
});
