import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { drawJunit } from "#tui/junit.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";

const dtd = join(import.meta.dirname, "../../fixtures/junit.dtd");

/** Throws the message of libxml2 about XML that is not well-formed or not valid. */
function validate(xml: string): void {
  execFileSync("xmllint", ["--noout", "--nonet", "--dtdvalid", dtd, "-"], { input: xml, stdio: "pipe" });
}

describe("JUnit XML", () => {
  for (const name of recordedRunNames)
    it(`is valid for the recorded run “${name}”, also truncated`, () => {
      const events = recordedRun(name);
      validate(drawJunit(events));
      validate(drawJunit(events.slice(0, events.length >> 1)));
    });

  it("is valid for a run without events", () => {
    validate(drawJunit([]));
  });

  it("has a suite for each node and a case for each step", () => {
    const xml = drawJunit(recordedRun("done"));
    expect(xml).to.match(/<testsuite name="n1" tests="4" failures="0" errors="0" skipped="0"/);
    expect(xml).to.contain(`<testcase name="data disk" classname="disks"`);
    expect(xml).to.contain("table: none → gpt");
    expect(xml).to.match(/<testsuite name="n2" tests="4" failures="0" errors="0" skipped="1"/);
    expect(xml).to.contain(`<skipped message="when is false"/>`);
  });

  it("has a failed step as a failure with its cause, and an unreachable node as an error", () => {
    const xml = drawJunit(recordedRun("failed"));
    expect(xml).to.match(/<testsuites name="deploy_node" tests="4" failures="1" errors="1" skipped="1"/);
    expect(xml).to.contain(
      `<failure message="the command ended with exit code 100" type="STEP_FAILED">states/disks.yaml:2:5\n`,
    );
    expect(xml).to.contain(`<error message="n2 (192.0.2.12:22) does not answer within 10 s" type="HOST_UNREACHABLE">`);
    expect(xml).to.contain("E: Unable to locate package nope");
  });

  it("has the output of a step up to its limit, with the number of lines left out", () => {
    const began = recordedRun("failed").filter(({ type }) => type !== "step.output" && type !== "run.finished");
    const at = began.findIndex((event) => event.type === "step.started" && event.step === "disks/install");
    const { node, step } = began[at] as Extract<RunEvent, { type: "step.started" }>;
    const drawn = (lines: number) => {
      const text = (line: number) => `line ${line} ${"x".repeat(90)}\n`;
      const printed = Array.from({ length: lines }, (_, index) => ({
        type: "step.output",
        node,
        step,
        stream: index % 2 === 0 ? "out" : "err",
        text: text(index + 1),
      }));
      const all = [...began.slice(0, at + 1), ...printed, ...began.slice(at + 1)];
      return drawJunit(all.map((event, index) => ({ ...event, seq: index + 1, at: 1 }) as RunEvent));
    };
    expect(drawn(5000).match(/^(?:.*<system-out>)?line \d+ x{90}/gm)).to.have.length(5000);
    const cut = drawn(30_000).match(/(?:^|<system-out>)(?:line (\d+) x{90}|… .*)(?=$|<)/gm) ?? [];
    expect(cut[0]).to.match(/… 19\d\d\d lines before: the record has them$/);
    expect(cut[1]).to.equal(`line ${30_000 - cut.length + 2} ${"x".repeat(90)}`);
    expect(cut.length).to.be.greaterThan(10_000);
  });

  it("has the failure of a run that could not begin", () =>
    expect(drawJunit(recordedRun("refused"))).to.match(/<testsuite name="bastion" tests="1" failures="1"/));

  it("S-4: is well-formed for any output of a node", () => {
    const hostile = ']]><x a="b">&amp;\'\u0000\u001b[31m\u0008\ud800\ufffe\uffff\u2028\r\n\tend';
    const problem = { code: "STEP_FAILED", message: hostile, detail: hostile, hint: hostile };
    const events = [
      {
        type: "run.started",
        runId: hostile,
        title: hostile,
        command: hostile,
        nodes: [hostile],
        stages: [],
        who: hostile,
      },
      { type: "step.started", node: hostile, stage: hostile, step: "s", title: hostile, module: hostile },
      { type: "step.output", node: hostile, step: "s", stream: "out", text: hostile },
      // prettier-ignore
      { type: "step.finished", node: hostile, stage: hostile, step: "s", title: hostile, module: hostile, outcome: "failed", problem },
    ].map((event, index) => ({ seq: index + 1, at: index, ...event })) as unknown as RunEvent[];
    const xml = drawJunit(events);
    validate(xml);
    expect(xml).to.not.contain("\u001b");
  });
});
