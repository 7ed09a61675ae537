import { expect } from "chai";
import { isInWindow } from "#rollout/window.ts";
import { aSpec } from "#support/stepped-rollout.ts";

function isIn(window: object | undefined, time: string): boolean {
  return isInWindow(window && aSpec({ window }).window, Date.parse(time));
}

describe("the maintenance window", () => {
  it("is always when there is none", () => expect(isIn(undefined, "2026-03-04T12:00:00Z")).to.equal(true));

  it("holds its first moment and not its last", () => {
    const window = { from: "01:00", to: "05:30" };
    expect(isIn(window, "2026-03-04T00:59:59.999Z")).to.equal(false);
    expect(isIn(window, "2026-03-04T01:00:00Z")).to.equal(true);
    expect(isIn(window, "2026-03-04T05:29:59.999Z")).to.equal(true);
    expect(isIn(window, "2026-03-04T05:30:00Z")).to.equal(false);
  });

  it("goes over midnight, and belongs to the day on which it began", () => {
    const window = { from: "22:00", to: "04:00", days: ["sat"] };
    expect(isIn(window, "2026-03-07T21:59:00Z"), "Saturday").to.equal(false);
    expect(isIn(window, "2026-03-07T22:00:00Z"), "Saturday").to.equal(true);
    expect(isIn(window, "2026-03-08T03:59:00Z"), "Sunday").to.equal(true);
    expect(isIn(window, "2026-03-08T04:00:00Z"), "Sunday").to.equal(false);
    expect(isIn(window, "2026-03-08T22:30:00Z"), "Sunday").to.equal(false);
    expect(isIn(window, "2026-03-07T03:00:00Z"), "Saturday, begun on Friday").to.equal(false);
  });

  it("is on its days alone", () => {
    const days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    for (const [index, day] of days.entries()) {
      const window = { from: "10:00", to: "11:00", days: [day] };
      // 2 March 2026 was a Monday.
      for (let other = 0; other < 7; other++)
        expect(isIn(window, `2026-03-0${2 + other}T10:30:00Z`), `${day} ${other}`).to.equal(other === index);
    }
  });

  it("is a whole day when it ends as it begins", () => {
    const window = { from: "06:00", to: "06:00", days: ["sun"] };
    expect([isIn(window, "2026-03-08T05:59:00Z"), isIn(window, "2026-03-08T06:00:00Z")]).to.deep.equal([false, true]);
    expect([isIn(window, "2026-03-09T05:59:00Z"), isIn(window, "2026-03-09T06:00:00Z")]).to.deep.equal([true, false]);
  });
});
