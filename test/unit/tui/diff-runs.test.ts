import { expect } from "chai";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { diffRuns } from "#tui/diff-runs.ts";

type Finished = Extract<RunEventBody, { type: "step.finished" }>;

function run(nodes: Readonly<Record<string, Readonly<Record<string, Partial<Finished>>>>>) {
  const names = Object.keys(nodes);
  const start = { runId: "r", title: "t", command: "c", nodes: names, stages: [], dryRun: false, who: "w" };
  const bodies: RunEventBody[] = [{ type: "run.started", ...start }];
  for (const [node, steps] of Object.entries(nodes)) {
    for (const [title, fields] of Object.entries(steps)) {
      const common = { node, stage: "s", step: `s/${title}`, title, module: "file.managed" };
      bodies.push({ type: "step.started", ...common });
      bodies.push({ type: "step.finished", ...common, outcome: "ok", ...fields });
    }
    bodies.push({ type: "node.finished", node, outcome: "done" });
  }
  return reduceEvents(bodies.map((body, index): RunEvent => ({ seq: index + 1, at: index, ...body })));
}

const what = (a: ReturnType<typeof run>, b: ReturnType<typeof run>) =>
  diffRuns(a, b).steps.map((step) => [step.node, step.title, step.what]);

describe("the difference of two runs", () => {
  it("has steps whose outcome or changes differ", () => {
    const a = run({
      n1: { one: {}, two: { outcome: "changed", changes: [{ name: "mode", want: "0644" }] }, three: {} },
    });
    const b = run({ n1: { one: { outcome: "failed" }, two: { outcome: "changed", changes: [] }, three: {} } });
    expect(what(a, b)).to.deep.equal([
      ["n1", "one", "outcome"],
      ["n1", "two", "changes"],
    ]);
    expect(diffRuns(a, b).steps[0]).to.deep.include({
      a: { outcome: "ok", changes: [] },
      b: { outcome: "failed", changes: [] },
    });
  });

  it("has steps and nodes of one run only", () => {
    const a = run({ n1: { old: {} }, n2: {} });
    const b = run({ n1: { fresh: {} }, n3: {} });
    expect(what(a, b)).to.deep.equal([
      ["n1", "old", "gone"],
      ["n1", "fresh", "new"],
    ]);
    expect(diffRuns(a, b).nodes).to.deep.equal([
      { node: "n2", a: "done" },
      { node: "n3", b: "done" },
    ]);
  });

  it("has steps that are slower or faster beyond chance", () => {
    const a = run({
      n1: { much: { duration: 500 }, little: { duration: 10_000 }, short: { duration: 1 }, less: { duration: 9000 } },
    });
    const b = run({
      n1: { much: { duration: 4000 }, little: { duration: 15_000 }, short: { duration: 900 }, less: { duration: 10 } },
    });
    expect(what(a, b)).to.deep.equal([
      ["n1", "much", "slower"],
      ["n1", "less", "faster"],
    ]);
  });
});
