import { expect } from "chai";
import { detachMessage } from "../../../../src/cli/watch/watch-run.ts";

describe("leaving a run before its end", () => {
  const runId = "20261121-061500-a1b2";

  it("says that the run goes on only when nobody has told it to stop", () => {
    expect(detachMessage({ runId })).to.equal(`The run goes on: kcore runs attach ${runId}`);
    for (const asked of ["stop", "abort"] as const)
      expect(detachMessage({ runId }, asked))
        .to.match(/^The run (ends|is being)/)
        .and.to.contain(`runs attach ${runId}`);
  });

  it("knows what another viewer told it, and takes the hardest word", () => {
    const [stopped, aborted] = (["stop", "abort"] as const).map((how) => ({ runId, stopping: { how, by: "them" } }));
    if (!stopped || !aborted) throw new Error("both are there");
    expect(detachMessage(stopped)).to.contain("ends after the steps that are running");
    expect(detachMessage(stopped, "abort")).to.contain("is being aborted");
    expect(detachMessage(aborted)).to.contain("is being aborted");
    expect(detachMessage(aborted, "stop")).to.contain("is being aborted");
  });
});
