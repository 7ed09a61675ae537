import { expect } from "chai";
import { detachMessage } from "../../../../src/cli/watch/watch-run.ts";

describe("the message when a view leaves a run", () => {
  const runId = "20261121-061500-a1b2";

  it("says that the run continues unless the operator stopped or aborted it", () => {
    expect(detachMessage({ runId })).to.equal(`The run goes on: kcore runs attach ${runId}`);
    for (const how of ["stop", "abort"] as const)
      expect(detachMessage({ runId }, how))
        .to.match(/^The run (ends|is being)/)
        .and.to.contain(`runs attach ${runId}`);
  });

  it("takes another viewer's stop or abort into account, the abort first", () => {
    const [stopped, aborted] = (["stop", "abort"] as const).map((how) => ({ runId, stopping: { how, by: "them" } }));
    if (!stopped || !aborted) throw new Error("unreachable");
    expect(detachMessage(stopped)).to.contain("ends after the steps that are running");
    expect(detachMessage(stopped, "abort")).to.contain("is being aborted");
    expect(detachMessage(aborted)).to.contain("is being aborted");
    expect(detachMessage(aborted, "stop")).to.contain("is being aborted");
  });
});
