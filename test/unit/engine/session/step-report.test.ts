import { expect } from "chai";
import type { Outcome, RunEventBody } from "#engine/events/event.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import { StepReport } from "#engine/session/step-report.ts";
import { sh } from "#engine/step/sh.ts";
import { draftOf } from "#support/sessions.ts";

const draft = draftOf("config", { want: { a: "1" }, probe: sh`:`, apply: sh`:` });
const key = stepKey(draft.id);

function reportWith(recorded: readonly Outcome[]) {
  const events: RunEventBody[] = [];
  const report = new StepReport({
    node: "n1",
    emit: (event) => events.push(event),
    recorded: new Map([[draft.id, recorded]]),
  });
  report.add(key, draft, "s");
  const attempt = (end: string): void => {
    report.take({ type: "start", rest: key });
    report.take({ type: "note", rest: `${key} at it` });
    report.take({ type: "out", rest: `${key}.o.0 0 0 0`, bytes: Buffer.from("text") });
    report.take({ type: "end", rest: `${key} ${end} 0` });
    if (end === "changed") report.take({ type: "milestone", rest: `${key} configured` });
  };
  const told = () => events.map((event) => ("outcome" in event ? `${event.type} ${event.outcome}` : event.type));
  return { report, attempt, told };
}

describe("what a node's frames tell of its steps", () => {
  it("F-3: tells nothing again that the record of a resumed run holds", () => {
    const { report, attempt, told } = reportWith(["changed"]);
    attempt("changed");
    expect(told()).to.deep.equal([]);
    expect(report.records.get(key)?.outcome).to.equal("changed");
  });

  it("tells what comes after the part that the record holds", () => {
    const { attempt, told } = reportWith(["failed", "failed"]);
    attempt("failed");
    attempt("failed");
    expect(told()).to.deep.equal([]);
    attempt("changed");
    expect(told()).to.deep.equal([
      "step.started",
      "step.note",
      "step.output",
      "step.finished changed",
      "node.milestone",
    ]);
  });

  it("tells everything of a journal that says something else than the record", () => {
    const { attempt, told } = reportWith(["changed", "ok"]);
    attempt("failed");
    attempt("ok");
    expect(told().filter((type) => type.startsWith("step.finished"))).to.deep.equal([
      "step.finished failed",
      "step.finished ok",
    ]);
  });

  it("does not carry the refusal of one attempt over to the next", () => {
    const { report, attempt } = reportWith([]);
    report.take({ type: "start", rest: key });
    report.take({ type: "refused", rest: `${key} DISK_HAS_DATA the disk holds data` });
    report.take({ type: "end", rest: `${key} failed 13` });
    expect(report.problemOf(key)?.code).to.equal("DISK_HAS_DATA");
    attempt("failed");
    expect(report.problemOf(key)?.code).to.equal("STEP_FAILED");
  });

  it("M1: knows no outcome but its own words", () => {
    const { report, attempt } = reportWith([]);
    attempt("constructor");
    expect(report.records.get(key)?.outcome).to.equal("failed");
  });

  it("M1: takes one end for each start, and nothing more of a step that is over", () => {
    const { attempt, report, told } = reportWith([]);
    attempt("failed");
    for (const end of ["failed", "failed"]) report.take({ type: "end", rest: `${key} ${end} 1` });
    attempt("changed");
    for (const type of ["start", "note", "end"]) report.take({ type, rest: `${key} failed 1` });
    expect(told().filter((type) => type.startsWith("step.finished"))).to.deep.equal([
      "step.finished failed",
      "step.finished changed",
    ]);
    expect(report.outcomeOf(key)).to.equal("changed");
  });
});
