import { expect } from "chai";
import { reduceEvents } from "#engine/events/reduce.ts";
import { drawSummary } from "#tui/summary.ts";
import { recordedRun } from "#support/recorded-runs.ts";

const options = {
  logOf: (node = "of the bastion") => `.kcore/runs/ID/nodes/${node}.log`,
  sourceLine: ({ line }: { line: number }) =>
    line === 2 ? "  - command.run: { command: apt-get install nope }" : undefined,
};
const draw = (name: string) => drawSummary(reduceEvents(recordedRun(name)), options);

describe("the summary", () => {
  it("counts each node and the total as Salt does", () => {
    const lines = draw("done").split("\n");
    expect(lines[0]).to.match(
      /^n1 {2}Succeeded: 4 \(changed=3\) {3}Failed: 0 {3}Total steps run: 4 {3}Total run time: 2\.7 s$/,
    );
    expect(lines[1]).to.match(/^n2 {2}Succeeded: 3 \(changed=0\) {3}Failed: 0 {3}Skipped: 1 {3}Total steps run: 3/);
    expect(lines).to.include("Summary of run 20261121-061500-a1b2");
    expect(lines).to.include("Succeeded:       7 (changed=3)");
    expect(lines).to.include("Failed:          0");
    expect(lines).to.include("Total steps run: 7");
    expect(lines.some((line) => line.startsWith("Total run time:  "))).to.equal(true);
    expect(draw("done")).to.not.contain("resume");
  });

  it("shows the first cause of each failure with place, stderr, log and the command to resume", () => {
    const text = draw("failed");
    expect(text).to.contain("The first cause of each failure:\nn1  install tool  (command.run)\n");
    expect(text).to.contain("  states/disks.yaml:2:5  the command ended with exit code 100  [STEP_FAILED]\n");
    expect(text).to.contain("    | E: Unable to locate package nope".slice(2));
    expect(text).to.contain("| E: giving up");
    expect(text).to.contain("  log: .kcore/runs/ID/nodes/n1.log");
    expect(text).to.contain("n2 (192.0.2.12:22) does not answer within 10 s  [HOST_UNREACHABLE]");
    expect(text).to.match(/kcore runs resume 20261121-061500-a1b2$/);
    expect(text).to.not.contain("after it");
  });

  it("speaks of what would change, and of what it cannot know, in a dry run", () => {
    const text = draw("dry-run");
    expect(text).to.contain("Succeeded:       2 (would change=1)");
    expect(text).to.contain("Unknown:         2");
    expect(text).to.contain("nothing was changed");
  });

  it("draws the problems alone of a run that was refused", () => {
    expect(draw("refused")).to.equal("no node matches “n9”  [TARGET_EMPTY]\n  hint: n1, n2");
  });
});
