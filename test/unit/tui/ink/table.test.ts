import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { windowAround } from "#tui/ink/blocks.ts";
import { headingLine, placeColumns, rowLine, type Column } from "#tui/ink/table.ts";
import { paintLine, span } from "#tui/ink/text.ts";
import { plainTheme } from "#support/scenes.ts";

type Row = readonly [string, number];

const columns: readonly Column<Row>[] = [
  { title: "NAME", width: 4, grow: 1, max: 8, drop: 0, cell: ([name]) => [span(name)] },
  { title: "WORD", width: 6, grow: 1, drop: 2, cell: () => [span("done")] },
  { title: "COUNT", width: 5, align: "right", drop: 1, cell: ([, count]) => [span(String(count))] },
];

const { glyphs } = plainTheme;
const draw = (width: number) => {
  const placed = placeColumns(columns, width);
  return [headingLine(placed, glyphs), rowLine(placed, ["n1", 7], glyphs)].map((line) =>
    stripVTControlCharacters(paintLine(line, width, plainTheme)),
  );
};

describe("a table", () => {
  it("gives what is left over to the columns that grow, each up to its most", () =>
    expect(draw(25)).to.deep.equal(["NAME     WORD       COUNT", "n1       done           7"]));

  it("drops the least important columns where there is no room", () => {
    expect(draw(17)).to.deep.equal(["NAME WORD   COUNT", "n1   done       7"]);
    expect(draw(12)).to.deep.equal(["NAME   COUNT", "n1         7"]);
    expect(draw(4)).to.deep.equal(["NAME", "n1"].map((text) => text.padEnd(4)));
  });

  it("shows a window that moves no further than the selected row asks", () => {
    expect(windowAround(1000, 10, 0, 5)).to.deep.equal({ top: 0, end: 10 });
    expect(windowAround(1000, 10, 0, 10)).to.deep.equal({ top: 1, end: 11 });
    expect(windowAround(1000, 10, 500, 499)).to.deep.equal({ top: 499, end: 509 });
    expect(windowAround(5, 10, 3, 4)).to.deep.equal({ top: 0, end: 5 });
    expect(windowAround(12, 10, 50)).to.deep.equal({ top: 2, end: 12 });
  });
});
