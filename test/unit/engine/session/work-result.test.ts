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

  const done = ["done", undefined, ["s"]];
  const failed = ["failed", "RUN_ABANDONED", []];
  for (const [title, given, wanted] of [
    ["done when every step has an outcome", ["changed", "ok"], done],
    ["done when a stop came in the last step and that step ended", ["changed", "ok", true], done],
    ["interrupted when a step had no outcome at a stop", ["changed", undefined, true], ["interrupted", undefined, []]],
    ["interrupted when a stop interrupted a step", ["changed", "interrupted", true], ["interrupted", undefined, []]],
    ["failed when a step has no outcome", [undefined, "ok"], failed],
    ["failed when a step is interrupted without a stop", ["interrupted", "ok"], failed],
  ] as const)
    it(`is ${title}`, () => {
      const { outcome, problem, finishedStages } = resultOf(given[0], given[1], given[2]);
      expect([outcome, problem?.code, [...finishedStages]]).to.deep.equal(wanted);
    });
});
