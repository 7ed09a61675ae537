import { expect } from "chai";
import { reduceEvents } from "#engine/events/reduce.ts";
import { dryRunTotal, formatTotal } from "#tui/dry-run-plan.ts";
import { drawReport } from "#tui/html/report.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { linesOf, sceneOf } from "#support/scenes.ts";
import { RunParts } from "#web/run-parts.ts";

const events = recordedRun("dry-run");
const model = reduceEvents(events);

describe("a dry run in the views", () => {
  it("V7: has one sum", () => {
    expect(formatTotal({ wouldChange: 3, unknown: 38 }, 2)).to.equal("3 to change on 2 nodes, 38 unknown");
    expect(formatTotal({ wouldChange: 1, unknown: 0 }, 1)).to.equal("1 to change on 1 node");
    expect(formatTotal({ wouldChange: 0, unknown: 2 }, 0)).to.equal("nothing to change, 2 unknown");
    expect(dryRunTotal(model)).to.equal("1 to change on 1 node, 2 unknown");
  });

  it("V7: marks what would change with ◇, never with what was changed, and counts what is unknown", () => {
    const frame = linesOf(sceneOf(events, { columns: 120, rows: 40 }), { columns: 120, rows: 40 }).join("\n");
    expect(frame).to.contain("1 to change on 1 node, 2 unknown").and.to.match(/UNKN/).and.to.match(/◇ n1 /);
    expect(frame).not.to.contain("◆");
  });

  for (const [view, page] of [
    ["the report", drawReport(model)],
    ["the page", new RunParts().drawPage(model, { base: "/", isLive: false }).source],
  ] as const)
    it(`V7: shows its plan in ${view}: each change with its diff, and why the rest is unknown`, () => {
      const plan = /<section class="foresight"[^]*?<\/section>/.exec(page)?.[0] ?? "";
      expect(plan).to.contain("issue file").and.to.contain("would change").and.to.contain("after kcore/key");
      expect(page).to.contain("1 to change on 1 node, 2 unknown").and.not.to.contain("●");
    });
});
