import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { emptyRun } from "#engine/events/run-model.ts";
import { describeEvent } from "#tui/describe-event.ts";
import { drawReport } from "#tui/html/report.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { linesOf, sceneOf, typeKeys } from "#support/scenes.ts";

const saved = {
  type: "node.saved",
  node: "n1",
  device: "S3Z8NB0K",
  save: "3fa9c1".padEnd(64, "0"),
  before: "wipe",
  isNew: true,
  bytes: 4096,
  pieces: 3,
} as const;
const text = "saved the table of S3Z8NB0K before it may be wiped (3fa9c1000000)";

describe("the saved partition table of a disk", () => {
  const events: RunEvent[] = recordedRun("done")
    .flatMap((event) =>
      event.type === "node.connected" && event.node === "n1" ? [event, { ...event, ...saved }] : [event],
    )
    .map((event, index) => ({ ...event, seq: index + 1 }) as RunEvent);

  it("is a line with the reason of the save", () => {
    const event = { seq: 1, at: 1, ...saved };
    expect(describeEvent(emptyRun, event)).to.deep.equal([{ mark: "done", text: `n1  ${text}` }]);
    const other = describeEvent(emptyRun, { ...event, before: "restore" });
    expect(other[0]?.text).to.contain("before an earlier one is put back");
  });

  it("is at its node in the report and the live view", () => {
    expect(drawReport(reduceEvents(events))).to.contain(text);
    const screen = { columns: 240, rows: 60 };
    const ui = typeKeys(events, ["enter"], screen);
    expect(linesOf(sceneOf(events, { ...screen, ui }), screen).join("\n")).to.contain("saved the table of S3Z8NB0K");
  });
});
