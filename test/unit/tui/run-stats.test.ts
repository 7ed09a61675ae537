import { expect } from "chai";
import type { Outcome, RunEvent } from "#engine/events/event.ts";
import { RunStats } from "#tui/run-stats.ts";
import { recordedRun } from "#support/recorded-runs.ts";

function ended(node: string, title: string, outcome: Outcome, duration: number): RunEvent {
  const names = { node, stage: "tools@2", step: title, title, module: "package.installed" } as const;
  return { seq: 1, at: 0, type: "step.finished", ...names, outcome, duration };
}

function statsOf(runs: readonly (readonly RunEvent[])[]) {
  const stats = new RunStats();
  for (const [index, events] of runs.entries()) {
    stats.begin(`run-${index}`);
    for (const event of events) stats.add(event);
  }
  return stats.result();
}

describe("the statistics of runs", () => {
  it("have the usually slowest step first, with median, ninth decile, maximum and its run", () => {
    const runs = [1, 2, 3, 4, 5, 6, 7, 8, 9, 90].map((seconds) => [
      ended("n1", "slow", "changed", seconds * 1000),
      ended("n2", "quick", "ok", 5),
    ]);
    const [slow, quick] = statsOf(runs).steps;
    expect(slow).to.deep.include({ title: "slow", module: "package.installed", times: 10, median: 5000, usual: 9000 });
    expect(slow).to.deep.include({ longest: 90_000, longestOn: "n1", longestIn: "run-9", failed: 0, flaky: false });
    expect(quick).to.deep.include({ title: "quick", times: 10, usual: 5 });
  });

  it("call a step flaky that failed and succeeded on the same node", () => {
    const { steps, nodes } = statsOf([
      [ended("n1", "now and then", "failed", 10), ended("n2", "never", "failed", 10)],
      [ended("n1", "now and then", "ok", 10), ended("n3", "never", "ok", 10)],
      [ended("n1", "now and then", "changed", 10), ended("n2", "never", "failed", 10)],
    ]);
    const summaries = steps.map(({ title, flaky, failed, times }) => [title, flaky, failed, times]);
    expect(summaries).to.have.deep.members([
      ["now and then", true, 1, 3],
      ["never", false, 2, 3],
    ]);
    const never = steps.find(({ title }) => title === "never");
    expect(never?.nodes).to.deep.equal([
      { node: "n2", times: 2, failed: 2 },
      { node: "n3", times: 1, failed: 0, usual: 10 },
    ]);
    expect(nodes.map(({ node }) => node)).to.deep.equal(["n1", "n2", "n3"]);
  });

  it("have each node's failed and unreachable runs, and its slowest steps", () => {
    const { nodes } = statsOf([recordedRun("failed"), recordedRun("done")]);
    expect(nodes.map(({ node, runs, failed, unreachable }) => [node, runs, failed, unreachable])).to.deep.equal([
      ["n1", 2, 1, 0],
      ["n2", 2, 0, 1],
    ]);
    expect(nodes[0]?.slowest).to.deep.include({ title: "issue file", usual: 2400 });
  });
});
