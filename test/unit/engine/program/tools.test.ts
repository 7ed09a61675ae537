import { expect } from "chai";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { compileStep } from "#engine/program/compile-step.ts";
import { segmentText } from "#engine/program/segment.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { plannedStep, runStepOn, shells } from "#support/steps.ts";

const withTool: Step = {
  want: { a: "1" },
  probe: sh`no-such-tool --version >/dev/null 2>&1; fact a 0`,
  apply: sh`no-such-tool`,
  tools: [{ command: "no-such-tool", package: "its-package" }],
};
const other: Step = { want: { a: "1" }, probe: sh`fact a 0`, apply: sh`:` };

const plan = (id: string, step: Step, more: Partial<PlannedStep> = {}): PlannedStep =>
  plannedStep(step, { id, title: id, ...more });

/** The programs that a segment checks in advance. */
function looks(...plans: readonly PlannedStep[]): string[] {
  const steps = plans.map((one) => ({ plan: one, compiled: compileStep(one, { owes: [], randomName: () => "0" }) }));
  return segmentText({ steps, facts: false })
    .split("\n")
    .filter((line) => line.startsWith("k_tools "))
    .map((line) => line.replace(/^k_tools \w+ /, ""));
}

describe("programs that a step needs", () => {
  for (const shell of shells)
    it(`are reported with their package when they are missing, on ${shell}`, async () => {
      const { outcome, problem } = await runStepOn(shell, withTool);
      expect([outcome, problem?.code]).to.deep.equal(["failed", "TOOL_MISSING"]);
      expect(problem?.message).to.equal("no-such-tool is not on the node; the package its-package has it");
    });

  it("are not checked for a step with a PATH of its own", async () => {
    const { outcome } = await runStepOn(
      "dash",
      { ...withTool, want: { a: "0" } },
      { plan: { environment: { PATH: "/opt" } } },
    );
    expect(outcome).to.equal("ok");
  });

  it("make the step unknown in a dry run after a step that would change something", async () =>
    expect((await runStepOn("dash", withTool, { dryRun: true, unsure: true })).outcome).to.equal("unknown"));

  it("are not checked for a step that `creates` shows in order", async () =>
    expect((await runStepOn("dash", withTool, { plan: { creates: "/etc" } })).outcome).to.equal("ok"));

  it("are checked once a segment, before the first step is applied", () => {
    const word = "no-such-tool=its-package";
    expect(looks(plan("a", other), plan("b", withTool), plan("c", withTool))).to.deep.equal([word]);
  });

  it("are checked at the step where an earlier step may install them, or a condition may skip the step", () => {
    expect(looks(plan("a", { ...other, brings: true }), plan("b", withTool))).to.deep.equal([]);
    for (const more of [
      { onlyIf: "false" },
      { unless: "true" },
      { creates: "/a" },
      { runAs: "a" },
      { onChanges: ["a"] },
      { environment: { PATH: "/opt" } },
    ])
      expect(looks(plan("a", other), plan("b", withTool, more))).to.deep.equal([]);
  });
});
