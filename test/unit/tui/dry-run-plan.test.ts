import { expect } from "chai";
import { reduceEvents } from "#engine/events/reduce.ts";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { digestRun } from "#tui/digest.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { planOf, formatNodes } from "#tui/dry-run-plan.ts";
import { drawReport } from "#tui/html/report.ts";
import { foresightLines } from "#tui/ink/overlay.ts";
import { createTheme } from "#tui/ink/theme.ts";
import { drawMarkdown } from "#tui/markdown.ts";
import { runStarted } from "#support/run-started.ts";

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

describe("What a dry run foresees", () => {
  const diff = "--- a\n+++ b\n-one\n+two\n";
  const content = { name: "content", have: "sha256:1", want: "sha256:2" };
  const mode = { name: "mode", have: "0600", want: "0644" };

  it("is told once for nodes on which it is the same; the diff stands for the content's hashes", () => {
    const alike = nodes.slice(0, 3).map((node) => step(node, { diff, changes: [content, mode] }));
    const { changes, unknown } = planOf(run(...alike, step("n4", { diff, changes: [content] })));
    expect(changes).to.deep.equal([
      { stage: "web", title: "config", module: "file.managed", nodes: ["n1", "n2", "n3"], changes: [mode], diff },
      { stage: "web", title: "config", module: "file.managed", nodes: ["n4"], changes: [], diff },
    ]);
    expect(unknown).to.deep.equal([]);
  });

  it("keeps the hashes where there is no diff, and tells why something is unknown", () => {
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

  it("O4: tells the condition beside what would change, in every view of it", () => {
    const reason = "unless packages brings it";
    const model = run(step("n1", { changes: [mode], reason }));
    const about = { id: "r", state: "done", who: "me", command: "c", created: 0, logOf: () => undefined };
    const digest = digestRun(model, about);
    const theme = createTheme({ depth: 0, background: "dark", unicode: true });
    const lines = foresightLines(model, theme, 80).map((line) => line.map(({ text }) => text).join(""));
    for (const text of [lines.join("\n"), drawDigest(digest), drawMarkdown(digest), drawReport(model)])
      expect(text).to.contain(reason);
  });

  it("names few nodes, and of many the first and the last", () =>
    expect([formatNodes(["a", "b"]), formatNodes(["a", "b", "c", "d"])]).to.deep.equal(["a, b", "a…d (4): the same"]));
});
