import { expect } from "chai";
import { tickText } from "#tui/html/timeline.ts";

describe("the axis of a page", () => {
  it("V11: tells ticks that do not fall on whole seconds as they are", () => {
    expect([1500, 3000, 4500].map(tickText)).to.deep.equal(["1.5 s", "3.0 s", "4.5 s"]);
    expect([12_500, 25_000, 37_500].map(tickText)).to.deep.equal(["12.5 s", "25 s", "37.5 s"]);
    expect(tickText(90_000)).to.equal("1 min 30 s");
  });
});
