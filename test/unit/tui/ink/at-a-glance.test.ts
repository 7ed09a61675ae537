import { expect } from "chai";
import { linesOf, sceneOf } from "#support/scenes.ts";
import { wideRun } from "#support/wide-run.ts";

const all = wideRun({ nodes: 200, steps: 8, failEvery: 50, apart: 1 });
/** The moment at which all nodes have begun and some have failed. */
const events = all.slice(
  0,
  all.findLastIndex((event) => event.type === "node.finished" && event.outcome === "failed") + 1,
);

describe("the live view of a large fleet", () => {
  it("shows the visible range of the list, unless all of it is visible", () => {
    const [, , , rule] = linesOf(sceneOf(events));
    expect(rule).to.match(/ 1–\d+ of 200 ─$/);
    expect(linesOf(sceneOf(wideRun({ nodes: 3, steps: 8 }))).join("\n")).not.to.match(/\d+–\d+ of/);
  });

  it("shows counts by marks without words in a narrow terminal", () => {
    const { wide, narrow } = { wide: { columns: 120, rows: 24 }, narrow: { columns: 60, rows: 15 } };
    const counts = (size: typeof wide) =>
      linesOf(sceneOf(events, size), size).find((line) => line.includes(" nodes  ")) ?? "";
    const countsIn = (line: string) => [...line.matchAll(/[^ ] (\d+)(?= |$)/g)].map(([text]) => text);
    expect(counts(wide)).to.contain("failed").and.to.contain("active");
    expect(counts(narrow)).to.not.contain("failed").and.to.not.contain("…");
    const marks = [...counts(wide).matchAll(/([✗◐·✓]) (\d+) [a-z]/g)].map(([, mark, count]) => `${mark} ${count}`);
    expect(marks).to.have.length.above(2);
    expect(countsIn(counts(narrow))).to.include.members(marks);
  });

  it("has a mark for each group of nodes, a failure's first", () => {
    const marksAt = (columns: number) =>
      linesOf(sceneOf(events, { columns, rows: 40 }), { columns })[columns < 140 ? 4 : 3]?.trim() ?? "";
    for (const columns of [60, 80, 120]) {
      expect(marksAt(columns).length).to.equal(columns - 2);
      expect(marksAt(columns).split("✗").length - 1).to.equal(4);
    }
  });

  it("counts nodes by their present step, failures first", () => {
    const lines = linesOf(sceneOf(events, { columns: 120 }), { columns: 120 });
    const line = lines[5] ?? "";
    expect(line).to.match(/^ 4 failed: nix step 6 {2}· {2}\d+ [a-z]+/);
    const counts = [...line.matchAll(/(\d+) /g)].map(([, count]) => Number(count));
    expect(counts.reduce((sum, count) => sum + count, 0)).to.be.at.most(200 + 6 * 9);
  });
});
