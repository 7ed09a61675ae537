import { expect } from "chai";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { tallyOf, tallyOfBastion, tallyOfNode, tallyOfRun } from "#tui/tally.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { runStarted } from "#support/run-started.ts";

describe("the tally", () => {
  it("counts every step once, and succeeded, failed and interrupted ones as run", () => {
    const outcomes = ["ok", "changed", "would-change", "failed", "interrupted", "skipped", "unknown"] as const;
    const tally = tallyOf([...outcomes.map((outcome) => ({ outcome })), {}], 11);
    expect(tally).to.include({ succeeded: 3, changed: 1, wouldChange: 1, failed: 1, interrupted: 1, unfinished: 1 });
    expect(tally).to.include({ skipped: 1, unknown: 1, unreachable: 0, notStarted: 0, run: 5, time: 11 });
  });

  /** A run of one stage over these nodes, each with its events. */
  function runOf(nodes: Readonly<Record<string, readonly RunEventBody[]>>, end?: RunEventBody) {
    const names = Object.keys(nodes);
    const started = runStarted({ nodes: names, stages: ["s"] });
    const bodies = [started, ...Object.values(nodes).flat(), ...(end ? [end] : [])];
    return reduceEvents(bodies.map((body, index): RunEvent => ({ seq: index + 1, at: 1000 * (index + 1), ...body })));
  }
  const step = (node: string, outcome: "ok" | "failed" | "interrupted"): RunEventBody => ({
    type: "step.finished",
    node,
    stage: "s",
    step: `s/${node}`,
    title: "step",
    module: "command.run",
    outcome,
  });
  const end = (node: string, outcome: "failed" | "unreachable" | "interrupted" | "not-started"): RunEventBody => ({
    type: "node.finished",
    node,
    outcome,
    problem: { code: "STATE_UNUSABLE", message: `${node}: no space left` },
  });
  const failedRun: RunEventBody = { type: "run.finished", outcome: "failed", exitCode: 1 };

  it("counts a node that failed without a failed step", () => {
    const model = runOf({ n1: [{ type: "node.connecting", node: "n1", attempt: 1 }, end("n1", "failed")] }, failedRun);
    expect(tallyOfRun(model)).to.include({ failed: 1, run: 0 });
  });

  it("counts a node's failure once: by its step, else by the node", () => {
    const model = runOf({
      a: [step("a", "failed"), end("a", "failed")],
      b: [step("b", "ok"), end("b", "failed")],
      c: [step("c", "interrupted"), end("c", "interrupted")],
      d: [step("d", "ok"), end("d", "interrupted")],
      e: [step("e", "ok"), end("e", "unreachable")],
      f: [end("f", "not-started")],
    });
    expect(tallyOfRun(model)).to.include({ succeeded: 3, failed: 2, interrupted: 2, unreachable: 1, notStarted: 1 });
    expect(tallyOfRun(model)).to.include({ run: 5, unfinished: 0 });
  });

  it("counts unfinished steps, unfinished nodes, and nodes that were not started", () => {
    const begun: RunEventBody = {
      type: "step.started",
      node: "a",
      stage: "s",
      step: "s/a",
      title: "step",
      module: "command.run",
    };
    const model = runOf({ a: [begun], b: [step("b", "ok")], c: [] });
    expect(tallyOfRun(model)).to.include({ unfinished: 2, notStarted: 1, succeeded: 1 });
  });

  it("counts a failure of the run itself as the bastion's", () => {
    const problem = { code: "RUN_RECORD_UNWRITABLE", message: "the bastion’s disk is full" } as const;
    const model = runOf({ a: [step("a", "ok")], b: [] }, { ...failedRun, problem });
    expect(tallyOfBastion(model)).to.include({ failed: 1 });
    expect(tallyOfRun(model)).to.include({ failed: 1, unfinished: 1, notStarted: 1 });
    expect(model.nodes.get("b")?.outcome).to.equal("not-started");
  });

  it("has the time of a run and a node, without the pause before a resume", () => {
    const model = reduceEvents(recordedRun("resumed"));
    const parts = recordedRun("resumed").findIndex((event) => event.type === "run.started" && event.resumed);
    const [before, after] = [recordedRun("resumed").slice(0, parts), recordedRun("resumed").slice(parts)];
    const took = (events: readonly RunEvent[]) => (events.at(-1)?.at ?? 0) - (events[0]?.at ?? 0);
    expect(tallyOfRun(model).time).to.equal(took(before) + took(after));
    expect(tallyOfRun(model).time).to.be.lessThan(model.lastAt - model.startedAt);
    const [node] = [...model.nodes.values()];
    if (!node) throw new Error("no node");
    expect(tallyOfNode(model, node).time).to.be.within(1, tallyOfRun(model).time);
  });
});
