import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { OutputCap } from "#engine/run/output-cap.ts";

const output: RunEventBody = { type: "step.output", node: "n1", step: "s", stream: "out", text: "x" };
const finished: RunEventBody = { type: "node.finished", node: "n1", outcome: "done" };

describe("OutputCap", () => {
  it("passes all events below its limit", () => expect(new OutputCap(100).pass(output, 99)).to.equal(output));

  it("drops output beyond its limit with one warning, and passes other events", () => {
    const cap = new OutputCap(3_000_000);
    expect(cap.pass(output, 3_145_728)).to.deep.equal({
      type: "warning",
      text: "the run's record has 3 MiB: output of steps is not recorded from now on",
      cutsOutput: true,
    });
    expect(cap.pass(output, 3_145_728)).to.equal(undefined);
    expect(cap.pass(finished, 3_145_728)).to.equal(finished);
  });

  it("drops output of one node beyond the node's limit, and passes output of other nodes", () => {
    const cap = new OutputCap(100_000_000, 2_097_152);
    const much = { ...output, text: "x".repeat(1_500_000) };
    expect(cap.pass(much, 0)).to.equal(much);
    expect(cap.pass(much, 1_500_000)).to.deep.equal({
      type: "warning",
      node: "n1",
      text: "n1 printed 2 MiB: output of its steps is not recorded from now on",
      cutsOutput: true,
    });
    expect(cap.pass(output, 3_000_000)).to.equal(undefined);
    const others = { ...output, node: "n2" };
    expect(cap.pass(others, 3_000_000)).to.equal(others);
  });
});
