import { expect } from "chai";
import { stepKey } from "#engine/program/compile-step.ts";
import { sh } from "#engine/step/sh.ts";
import { workResult } from "#engine/session/work-result.ts";
import type { Outcome } from "#engine/events/event.ts";
import type { StepResults } from "#engine/session/session-events.ts";
import { draftOf } from "#support/sessions.ts";

describe("workResult", () => {
  const step = { want: { a: "1" }, probe: sh`fact a 1` };
  const drafts = [draftOf("a", step), draftOf("b", step)];
  const resultOf = (a: Outcome | undefined, b: Outcome | undefined, isStopped = false) => {
    const outcomes = new Map([
      [stepKey("test/a"), a],
      [stepKey("test/b"), b],
    ]);
    const results = { outcomeOf: (key: string) => outcomes.get(key) } as StepResults;
    const rest = { registered: new Map(), nodeFailure: undefined, failed: undefined };
    return workResult([{ stage: "s", drafts }], { node: "n1", runId: "r1", results, isStopped, ...rest });
  };

  it("is done when every step has an outcome", () => {
    const { outcome, finishedStages } = resultOf("changed", "ok");
    expect([outcome, [...finishedStages]]).to.deep.equal(["done", ["s"]]);
  });

  it("is done when a stop came in the last step and that step ended, else interrupted", () => {
    expect(resultOf("changed", "ok", true).outcome).to.equal("done");
    expect(resultOf("changed", undefined, true).outcome).to.equal("interrupted");
    expect(resultOf("changed", "interrupted", true).outcome).to.equal("interrupted");
  });

  for (const left of [undefined, "interrupted"] as const)
    it(`is failed when a step ${left === undefined ? "has no outcome" : `is ${left}`}`, () => {
      const { outcome, problem, finishedStages } = resultOf(left, "ok");
      expect([outcome, problem?.code, [...finishedStages]]).to.deep.equal(["failed", "RUN_ABANDONED", []]);
    });
});
