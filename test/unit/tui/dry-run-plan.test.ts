import { expect } from "chai";
import { reduceEvents } from "#engine/events/reduce.ts";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { digestRun } from "#tui/digest.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { planOf, formatNodes, dryRunTotal, formatTotal } from "#tui/dry-run-plan.ts";
import { drawReport } from "#tui/html/report.ts";
import { dryRunLines } from "#tui/ink/overlay.ts";
import { drawMarkdown } from "#tui/markdown.ts";
import { runStarted } from "#support/run-started.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { plainTheme } from "#support/scenes.ts";
import { RunParts } from "#web/run-parts.ts";

const step = (node: string, more: Partial<Extract<RunEventBody, { type: "step.finished" }>>): RunEventBody => ({
  type: "step.finished",
  node,
  stage: "web",
  step: "config",
  title: "config",
  module: "file.managed",
  outcome: "would-change",
  ...more,
});
const nodes = ["n1", "n2", "n3", "n4"];
const run = (...bodies: readonly RunEventBody[]) =>
  reduceEvents(
    [runStarted({ nodes, stages: ["web"], dryRun: true }), ...bodies].map((body, index): RunEvent => ({
      ...body,
      seq: index + 1,
      at: index,
    })),
  );

describe("the plan of a dry run", () => {
  const diff = "--- a\n+++ b\n-one\n+two\n";
  const content = { name: "content", have: "sha256:1", want: "sha256:2" };
  const mode = { name: "mode", have: "0600", want: "0644" };

  it("has equal changes of several nodes once, with a diff instead of hashes", () => {
    const alike = nodes.slice(0, 3).map((node) => step(node, { diff, changes: [content, mode] }));
    const { changes, unknown } = planOf(run(...alike, step("n4", { diff, changes: [content] })));
    expect(changes).to.deep.equal([
      { stage: "web", title: "config", module: "file.managed", nodes: ["n1", "n2", "n3"], changes: [mode], diff },
      { stage: "web", title: "config", module: "file.managed", nodes: ["n4"], changes: [], diff },
    ]);
    expect(unknown).to.deep.equal([]);
  });

  it("has hashes without a diff, and the reason of unknown steps", () => {
    const { changes, unknown } = planOf(
      run(
        step("n1", { changes: [content] }),
        step("n2", { outcome: "unknown", reason: "after install" }),
        step("n3", { outcome: "ok" }),
      ),
    );
    expect(changes[0]?.changes).to.deep.equal([content]);
    expect(unknown).to.have.length(1);
    expect(unknown[0]).to.include({ reason: "after install" });
  });

  it("has the condition of a change in every view", () => {
    const reason = "unless packages brings it";
    const model = run(step("n1", { changes: [mode], reason }));
    const about = { id: "r", state: "done", who: "me", command: "c", created: 0, logOf: () => undefined };
    const digest = digestRun(model, about);
    const lines = dryRunLines(model, plainTheme, 80).map((line) => line.map(({ text }) => text).join(""));
    for (const text of [lines.join("\n"), drawDigest(digest), drawMarkdown(digest), drawReport(model)])
      expect(text).to.contain(reason);
  });

  it("names few nodes, or the first and last of many", () =>
    expect([formatNodes(["a", "b"]), formatNodes(["a", "b", "c", "d"])]).to.deep.equal(["a, b", "a…d (4): the same"]));
});

const events = recordedRun("dry-run");
const model = reduceEvents(events);

describe("a dry run in the views", () => {
  it("has one total", () => {
    expect(formatTotal({ wouldChange: 3, unknown: 38 }, 2)).to.equal("3 to change on 2 nodes, 38 unknown");
    expect(formatTotal({ wouldChange: 1, unknown: 0 }, 1)).to.equal("1 to change on 1 node");
    expect(formatTotal({ wouldChange: 0, unknown: 2 }, 0)).to.equal("nothing to change, 2 unknown");
    expect(dryRunTotal(model)).to.equal("1 to change on 1 node, 2 unknown");
  });

  for (const [view, page] of [
    ["the report", drawReport(model)],
    ["the page", new RunParts().drawPage(model, { base: "/", isLive: false }).source],
  ] as const)
    it(`has its plan in ${view}: changes, and the reason of unknown steps`, () => {
      const plan = /<section class="foresight"[^]*?<\/section>/.exec(page)?.[0] ?? "";
      expect(plan).to.contain("issue file").and.to.contain("would change").and.to.contain("after kcore/key");
      expect(page).to.contain("1 to change on 1 node, 2 unknown").and.not.to.contain("●");
    });
});
