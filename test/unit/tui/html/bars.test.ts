import { expect } from "chai";
import { drawBars, placeOf, WIDE } from "#tui/html/bars.ts";
import type { Piece } from "#tui/html/work.ts";

const span = { from: 1000, to: 2000 };
const piece = (outcome: Piece["outcome"], from: number, to: number): Piece => ({
  stage: "s",
  title: "t",
  kind: "k",
  from,
  to,
  ...(outcome && { outcome }),
});

describe("The bars of the timeline", () => {
  it("stand where their time is in the run's", () => {
    expect([1000, 1500, 2000].map((at) => placeOf(at, span))).to.deep.equal([0, WIDE / 2, WIDE]);
  });

  it("stay inside when a time is outside", () => {
    expect([0, 9999].map((at) => placeOf(at, span))).to.deep.equal([0, WIDE]);
  });

  it("have a path for each outcome, taller where it matters more", () => {
    const { source } = drawBars([piece("ok", 1000, 1100), piece("failed", 1100, 1200), piece("ok", 1200, 1300)], span);
    expect(source.match(/<path class="ok" d="M15 6h970v8h-970zM2015 6h970v8h-970z"\/>/)).not.to.equal(null);
    expect(source.match(/<path class="failed" d="M1015 0h970v20h-970z"\/>/)).not.to.equal(null);
  });

  it("show also what took no time", () => {
    expect(drawBars([piece("ok", 1500, 1500)], span).source).to.include("M5000 6h1v8h-1z");
  });
});
