import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { StageTracker } from "#engine/orchestrate/stage-tracker.ts";

function tracking(...nodes: readonly string[]): { readonly tracker: StageTracker; readonly events: RunEventBody[] } {
  const events: RunEventBody[] = [];
  const tracker = new StageTracker((event) => events.push(event));
  tracker.expect("s", nodes);
  return { tracker, events };
}

const started = { type: "stage.started", stage: "s" };

describe("StageTracker", () => {
  it("starts a stage when a node enters, not when one skips it", () => {
    const { tracker, events } = tracking("n1", "n2");
    tracker.leave("s", "n1", "skipped", "its “when” is false");
    expect(events).to.deep.equal([]);
    tracker.enter("s");
    expect(events).to.deep.equal([started]);
    tracker.leave("s", "n2", "ok");
    expect(events).to.deep.equal([started, { type: "stage.finished", stage: "s", outcome: "ok" }]);
  });

  it("finishes a stage that every node skips without a start", () => {
    const { tracker, events } = tracking("n1", "n2");
    tracker.leave("s", "n1", "skipped", "n1 failed");
    tracker.leave("s", "n2", "skipped", "n2 failed");
    expect(events).to.deep.equal([{ type: "stage.finished", stage: "s", outcome: "skipped", reason: "n1 failed" }]);
  });

  it("starts a stage when a node leaves with another outcome than skipped", () => {
    for (const outcome of ["ok", "failed", "interrupted"] as const) {
      const { tracker, events } = tracking("n1", "n2");
      tracker.leave("s", "n1", outcome);
      expect(events, outcome).to.deep.equal([started]);
    }
  });

  it("gives a stage the outcome of its worst node", () => {
    for (const [outcomes, worst] of [
      [["ok", "failed", "skipped"], "failed"],
      [["ok", "interrupted"], "interrupted"],
      [["interrupted", "failed"], "failed"],
      [["skipped", "ok"], "ok"],
    ] as const) {
      const nodes = outcomes.map((_, place) => `n${place}`);
      const { tracker, events } = tracking(...nodes);
      for (const [place, outcome] of outcomes.entries()) tracker.leave("s", `n${place}`, outcome);
      expect(events.at(-1), outcomes.join()).to.include({ type: "stage.finished", outcome: worst });
    }
  });
});
