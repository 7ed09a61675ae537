import { expect } from "chai";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { compileStep } from "#engine/program/compile-step.ts";
import { segmentText } from "#engine/program/segment.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { plannedStep, runStepOn, shells } from "#support/steps.ts";

const needs: Step = {
  want: { a: "1" },
  probe: sh`no-such-tool --version >/dev/null 2>&1; fact a 0`,
  apply: sh`no-such-tool`,
  tools: [{ command: "no-such-tool", package: "its-package" }],
};
const other: Step = { want: { a: "1" }, probe: sh`fact a 0`, apply: sh`:` };

const plan = (id: string, step: Step, more: Partial<PlannedStep> = {}): PlannedStep =>
  plannedStep(step, { id, title: id, ...more });

/** The lines of a segment that look for programs in advance. */
function looks(...plans: readonly PlannedStep[]): string[] {
  const steps = plans.map((one) => ({ plan: one, compiled: compileStep(one, { owes: [], randomName: () => "0" }) }));
  return segmentText({ steps, facts: false })
    .split("\n")
    .filter((line) => line.startsWith("k_tools "))
    .map((line) => line.replace(/^k_tools \w+ /, ""));
}

describe("programs that steps need", () => {
  for (const shell of shells)
    it(`are named with their package when they are not there, on ${shell}`, async () => {
      const { outcome, problem } = await runStepOn(shell, needs);
      expect([outcome, problem?.code]).to.deep.equal(["failed", "TOOL_MISSING"]);
      expect(problem?.message).to.equal("no-such-tool is not on the node; the package its-package has it");
    });

  it("O5: are not missed by a step that has a PATH of its own", async () => {
    const { outcome } = await runStepOn(
      "dash",
      { ...needs, want: { a: "0" } },
      { plan: { environment: { PATH: "/opt" } } },
    );
    expect(outcome).to.equal("ok");
  });

  it("make a step unknown in a dry run behind one that would change", async () =>
    expect((await runStepOn("dash", needs, { dryRun: true, unsure: true })).outcome).to.equal("unknown"));

  it("are not looked for by a step that is in order without its probe", async () =>
    expect((await runStepOn("dash", needs, { plan: { creates: "/etc" } })).outcome).to.equal("ok"));

  it("are looked for once a segment, before anything is applied", () => {
    const word = "no-such-tool=its-package";
    expect(looks(plan("a", other), plan("b", needs), plan("c", needs))).to.deep.equal([word]);
  });

  it("wait for their step's turn where an earlier one may bring them, or it may not run at all", () => {
    expect(looks(plan("a", { ...other, brings: true }), plan("b", needs))).to.deep.equal([]);
    for (const more of [
      { onlyIf: "false" },
      { unless: "true" },
      { creates: "/a" },
      { runAs: "a" },
      { onChanges: ["a"] },
      { environment: { PATH: "/opt" } },
    ])
      expect(looks(plan("a", other), plan("b", needs, more))).to.deep.equal([]);
  });
});
