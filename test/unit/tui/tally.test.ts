import { expect } from "chai";
import { tallyOf } from "#tui/tally.ts";

describe("the tally", () => {
  it("counts an interrupted step among the steps that ran", () => {
    const tally = tallyOf([{ outcome: "ok" }, { outcome: "interrupted" }, { outcome: "interrupted" }]);
    expect(tally).to.include({ succeeded: 1, failed: 0, interrupted: 2, run: 3 });
  });

  it("runs up all that ran: succeeded, failed and interrupted, not skipped and not unknown", () => {
    const tally = tallyOf([
      { outcome: "ok", duration: 1 },
      { outcome: "changed", duration: 10 },
      { outcome: "would-change", duration: 100 },
      { outcome: "failed", duration: 1000 },
      { outcome: "interrupted", duration: 10_000 },
      { outcome: "skipped" },
      { outcome: "unknown" },
    ]);
    expect(tally).to.deep.equal({
      succeeded: 3,
      changed: 1,
      wouldChange: 1,
      failed: 1,
      skipped: 1,
      unknown: 1,
      interrupted: 1,
      run: 5,
      time: 11_111,
    });
  });

  it("leaves out what has not ended", () => {
    expect(tallyOf([{ duration: 5 }, { outcome: "ok", duration: 7 }])).to.include({ run: 1, time: 7 });
  });
});
