import { expect } from "chai";
import { LastOutput } from "#engine/orchestrate/last-output.ts";

const step = { node: "n1", stage: "s", step: "s/a", title: "answers", module: "http.ready" } as const;

describe("LastOutput", () => {
  it("describes a timed-out step by the drift of its last probe, else by its last line of output", () => {
    const last = new LastOutput();
    expect(last.describe("on n1")).to.deep.equal({});
    last.handle({ type: "step.started", ...step });
    expect(last.describe("on n1").detail).to.equal("at work on n1: “answers” (http.ready)\nit gave no answer");
    last.handle({ type: "step.output", node: "n1", step: "s/a", stream: "err", text: "one\ntwo\n" });
    expect(last.describe("on n1").detail).to.contain("\nits last answer: two");
    const changes = [
      { name: "status", have: "503", want: "200" },
      { name: "text", want: "ok" },
    ];
    last.handle({ type: "step.finished", ...step, outcome: "interrupted", changes });
    expect(last.describe("on n1").detail).to.contain(
      "\nits last answer: status: 503, wanted 200; text: nothing, wanted ok",
    );
  });
});
