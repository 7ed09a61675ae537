import { expect } from "chai";
import { freshUi } from "#tui/ink/run-ui.ts";
import { arrangeBody } from "#tui/ink/step-body.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { itemOf, type WorkItem } from "#tui/work-item.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { plainTheme } from "#support/scenes.ts";

const node = reduceEvents(recordedRun("failed")).nodes.get("n1");
const failed = node && node.steps.map(itemOf).find(({ outcome }) => outcome === "failed");
const detail = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`).join("\n");

function bodyOf(tail: string): string {
  if (!failed) throw new Error("no step of n1 failed in this record");
  const item: WorkItem = { ...failed, tail, problem: { code: "STEP_FAILED", message: "it failed", detail } };
  return arrangeBody({ ui: { ...freshUi, follow: false }, theme: plainTheme, now: 0 }, item, 80, 100)
    .lines.map((line) => line.map(({ text }) => text).join(""))
    .join("\n");
}

describe("a failed step in the live view", () => {
  it("has the end of the cause above the whole output", () => {
    const [cause = "", output = ""] = bodyOf(detail).split("   output\n");
    expect(cause).to.contain("… 14 lines before").and.to.contain("line 20");
    expect(cause).to.not.match(/line 14\n/);
    expect(output)
      .to.match(/line 1\n/)
      .and.to.contain("line 20");
  });

  it("has the whole cause without output", () =>
    expect(bodyOf(""))
      .to.match(/line 1\n/)
      .and.to.contain("line 20")
      .and.to.not.contain("lines before"));
});
