import { expect } from "chai";
import { drawBars, fitBars, GrowingBars, positionOn, drawingWidth } from "#tui/html/bars.ts";
import { tickText } from "#tui/html/timeline.ts";
import type { Piece } from "#tui/html/work.ts";
import type { WorkItem } from "#tui/work-item.ts";

const span = { from: 1000, to: 2000 };
const item: WorkItem = {
  key: "k",
  stage: "s",
  title: "t",
  module: "m",
  startedAt: 0,
  changes: [],
  tail: "",
  always: false,
};
const piece = (outcome: WorkItem["outcome"], from: number, to: number): Piece => ({
  item: { ...item, ...(outcome && { outcome }) },
  title: "t",
  from,
  to,
});

describe("The bars of the timeline", () => {
  it("are at their time's position on the axis", () =>
    expect([1000, 1500, 2000].map((at) => positionOn(at, span))).to.deep.equal([0, drawingWidth / 2, drawingWidth]));

  it("are at the edge for a time outside the run", () =>
    expect([0, 9999].map((at) => positionOn(at, span))).to.deep.equal([0, drawingWidth]));

  it("have a path for each outcome, taller for failures", () => {
    const { source } = drawBars([piece("ok", 1000, 1100), piece("failed", 1100, 1200), piece("ok", 1200, 1300)], span);
    expect(source.match(/<path class="ok" d="M15 6h970v8h-970zM2015 6h970v8h-970z"\/>/)).not.to.equal(null);
    expect(source.match(/<path class="failed" d="M1015 0h970v20h-970z"\/>/)).not.to.equal(null);
  });

  it("are visible also without a duration", () =>
    expect(drawBars([piece("ok", 1500, 1500)], span).source).to.include("M5000 6h1v8h-1z"));

  it("are in milliseconds on a growing axis, so that only the axis changes", () => {
    const pieces = [piece("ok", 1000, 1100), piece(undefined, 31_000, Infinity)];
    const { source } = new GrowingBars().draw(pieces, 1000);
    expect(source).to.include('viewBox="0 0 10000 20"').and.to.include('class="ok" d="M6 6h88v8h-88z"');
    expect(source).to.include('class="running" d="M30045 3h999969910v14h-999969910z"');
    expect(fitBars(source, 60_000)).to.equal(source.replace("0 0 10000 20", "0 0 60000 20"));
  });

  it("are the same drawn piece by piece and all at once", () => {
    const [first, second] = [piece("ok", 1000, 1100), piece("ok", 1100, 1200)];
    const bars = new GrowingBars();
    for (const pieces of [
      [piece(undefined, 1000, Infinity)],
      [first, piece(undefined, 1100, Infinity)],
      [first, second],
      // An action that began in between, but is known only now.
      [first, piece("failed", 1050, 1060), second],
      [second],
    ])
      expect(bars.draw(pieces, 1000).source).to.equal(new GrowingBars().draw(pieces, 1000).source);
  });

  it("have an axis with ticks in tenths of a second where needed", () => {
    expect([1500, 3000, 4500].map(tickText)).to.deep.equal(["1.5 s", "3.0 s", "4.5 s"]);
    expect([12_500, 25_000, 37_500, 90_000].map(tickText)).to.deep.equal(["12.5 s", "25 s", "37.5 s", "1 min 30 s"]);
  });
});
