import { expect } from "chai";
import type { Outcome, RunEventBody } from "#engine/events/event.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import { changesOf } from "#engine/session/step-problem.ts";
import { StepReport } from "#engine/session/step-report.ts";
import { ReplayBuffer } from "#engine/session/replay-buffer.ts";
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
  const reported = () => events.map((event) => ("outcome" in event ? `${event.type} ${event.outcome}` : event.type));
  return { report, attempt, reported };
}

describe("ReplayBuffer", () => {
  it("keeps frames of unknown steps up to 8 MiB (S-4)", () => {
    const buffer = new ReplayBuffer();
    for (let at = 0; at < 10; at++) buffer.add({ type: "note", rest: `${key} ${"x".repeat(1 << 20)}` }, () => false);
    expect(buffer.framesOf(key)).to.have.length(7);
  });
});

describe("changesOf", () => {
  it("shortens desired and actual values to 4096 characters and “…”", () => {
    const long = draftOf("long", { want: { a: "x".repeat(9000) }, probe: sh`:`, apply: sh`:` });
    const rendered = long.render({ steps: new Map() });
    const plan = rendered.kind === "step" ? rendered.plan : undefined;
    const [change] = changesOf({ plan, have: { a: "y".repeat(9000) } });
    expect([change?.want.length, change?.have?.length]).to.deep.equal([4097, 4097]);
  });
});

describe("StepReport", () => {
  const changed = ["step.started", "step.note", "step.output", "step.finished changed", "node.milestone"];
  for (const [title, recorded, attempts, events] of [
    ["no event that the record of a resumed run has (F-3)", ["changed"], ["changed"], []],
    ["the events behind the recorded ones", ["failed", "failed"], ["failed", "failed", "changed"], changed],
    [
      "all events from a contradiction to the record on",
      ["changed", "ok"],
      ["failed", "changed"],
      ["step.finished failed", ...changed],
    ],
  ] as const)
    it(`emits ${title}`, () => {
      const { report, attempt, reported } = reportWith(recorded);
      for (const end of attempts) attempt(end);
      expect([reported(), report.records.get(key)?.outcome]).to.deep.equal([events, "changed"]);
    });

  /** Takes these frames; K stands for the step's key. */
  const take = (report: StepReport, ...frames: readonly string[]): void => {
    for (const frame of frames) {
      const [type = "", ...rest] = frame.replace("K", key).split(" ");
      report.take({ type, rest: rest.join(" ") });
    }
  };

  it("drops an attempt's refusal at the next attempt", () => {
    const { report, attempt } = reportWith([]);
    take(report, "start K", "refused K DISK_HAS_DATA the disk holds data", "end K failed 13");
    expect(report.problemOf(key)?.code).to.equal("DISK_HAS_DATA");
    attempt("failed");
    expect(report.problemOf(key)?.code).to.equal("STEP_FAILED");
  });

  it("reports the exit code of the step's command", () => {
    const { report, attempt } = reportWith([]);
    take(report, "start K", "apply K apply", "rc K 7", "end K failed 13");
    expect(report.problemOf(key)?.message).to.equal("“config” (test.step) failed with exit code 7");
    attempt("failed");
    expect(report.problemOf(key)?.message).to.equal("“config” (test.step) failed");
  });

  it("hints at the cause of known error messages", () => {
    for (const [stderr, hint] of [
      ["mv: cannot move 'a' to '/etc/x': Operation not permitted\n", /chattr -i FILE/],
      ["/tmp/s: 1: echo\r: not found\n", /CR LF/],
      ["bash: line 1: $'\\r': command not found\n", /CR LF/],
      ["/tmp/s: 1: ech: not found\n", /^none$/],
      ["/usr/bin/env: 'bash\\r': No such file or directory\n", /CR LF/],
      ["sed: -e expression #1: unknown option in s/\\r$//x\n", /^none$/],
    ] as const) {
      const { report } = reportWith([]);
      report.take({ type: "start", rest: key });
      report.take({ type: "out", rest: `${key}.e.0 0 0 0`, bytes: Buffer.from(stderr) });
      report.take({ type: "end", rest: `${key} failed 13` });
      expect(report.problemOf(key)?.hint ?? "none", stderr).to.match(hint);
    }
  });

  it("reports a command that says it changed nothing as ok, with its exit code", () => {
    const { report, reported } = reportWith([]);
    take(report, "start K", "apply K apply", "rc K 3 same", "end K ok 0");
    expect(reported()).to.deep.equal(["step.finished ok"]);
    expect(report.registered(key)).to.deep.include({ changed: false, rc: 3 });
  });

  it("reports a step as changed that is in order after an interrupted apply", () => {
    const { report, reported } = reportWith([]);
    take(report, "start K", "apply K apply", "start K", "end K ok 0");
    expect(reported().at(-1)).to.equal("step.finished changed");
  });

  it("counts the characters of values that are held (S-4)", () => {
    const large = "x".repeat(3 << 20);
    const { report } = reportWith([]);
    take(report, "start K", `have K a=${large}`, `show K ${large}`, "apply K apply", "start K");
    expect(() => report.budget.keep(3 << 20)).to.throw("n1 sent more than 8 MiB of values");

    const { report: other } = reportWith([]);
    other.add(key, { ...draft, register: "config" }, "s");
    take(other, "start K", `have K a=${large}`, `show K ${large}`, "end K ok 0");
    expect(() => other.budget.keep(4 << 20)).not.to.throw();
    expect(() => other.budget.keep(2 << 20)).to.throw("n1 sent more than 8 MiB of values");
  });

  it("refuses more than 32 starts of a step (S-4)", () => {
    const { report } = reportWith(["failed", "failed"]);
    const begin = (times: number): void => {
      for (let at = 0; at < times; at++) report.take({ type: "start", rest: key });
    };
    begin(34);
    expect(() => begin(1)).to.throw("n1 sent the start of “config” 32 times");
  });

  it("names the argument of a failed step, but no line or output of a sensitive one (S-7)", () => {
    const place = { file: "states/test.yaml", line: 3, column: 9 };
    let outputs = 0;
    const emit = ({ type }: RunEventBody) => void (outputs += type === "step.output" ? 1 : 0);
    const problem = (sensitive: boolean) => {
      const report = new StepReport({ node: "n1", emit, recorded: new Map() });
      const one = { ...draft, argumentAt: () => place };
      report.add(key, one, "s");
      const rendered = draftOf("config", { want: {}, probe: sh`:` }, { sensitive }).render({ steps: new Map() });
      if (rendered.kind === "step") report.plan(key, rendered.plan);
      report.take({ type: "start", rest: key });
      report.take({ type: "out", rest: `${key}.o.0 0 0 0`, bytes: Buffer.from("text") });
      report.take({ type: "end", rest: `${key} failed 13` });
      return report.problemOf(key);
    };
    expect(problem(false)).to.deep.include({ at: place }).and.to.not.have.property("conceal");
    expect(outputs).to.equal(1);
    expect(problem(true)).to.deep.include({ at: draft.at, conceal: true });
    expect(outputs).to.equal(1);
  });

  it("takes an unknown outcome as failed", () => {
    const { report, attempt } = reportWith([]);
    attempt("constructor");
    expect(report.records.get(key)?.outcome).to.equal("failed");
  });

  it("accepts one end for each start, and no frame of a finished step", () => {
    const { attempt, report, reported } = reportWith([]);
    attempt("failed");
    for (const end of ["failed", "failed"]) report.take({ type: "end", rest: `${key} ${end} 1` });
    attempt("changed");
    for (const type of ["start", "note", "end"]) report.take({ type, rest: `${key} failed 1` });
    expect(reported().filter((type) => type.startsWith("step.finished"))).to.deep.equal([
      "step.finished failed",
      "step.finished changed",
    ]);
    expect(report.outcomeOf(key)).to.equal("changed");
  });

  describe("in the order of the steps", () => {
    /**
     * The events of these frames, whose keys are steps. `skip b` ends b without the node, `release` ends the wait for missing frames, and c
     * has onFailure with the given steps.
     */
    function eventsOf(frames: string, onFailure: readonly string[] = []): string {
      const events: string[] = [];
      const report = new StepReport({
        node: "n1",
        emit: (event) => events.push(`${event.type} ${"step" in event ? event.step.replace("test/", "") : ""}`.trim()),
        recorded: new Map(),
      });
      const keyOf = (name: string): string => stepKey(`test/${name}`);
      for (const name of ["a", "b", "c"]) {
        const extra = name === "c" ? { onFailure } : {};
        report.add(keyOf(name), draftOf(name, { want: {}, probe: sh`:` }, extra), "s");
      }
      report.expect(["a", "b", "c"].map(keyOf));
      for (const frame of frames.split(", ")) {
        const [type = "", name = "", ...rest] = frame.split(" ");
        const foreseen = { outcome: "skipped", reason: "when is false" } as const;
        if (type === "skip") report.endWithoutNode(keyOf(name), foreseen);
        else if (type === "release") report.events.release();
        else report.take({ type, rest: [keyOf(name), ...rest].join(" ") });
        if (type === "skip") expect(report.outcomeOf(keyOf(name))).to.equal("skipped");
      }
      return events.join(", ").replaceAll("step.", "").replaceAll("finished", "end").replaceAll("started", "start");
    }

    const batch = "start b, start c, end b changed 10, milestone b m, end c changed 10";
    const again = "skip b, start a, end a failed 1";
    const cases: Readonly<
      Record<string, readonly (readonly [frames: string, events: string, onFailure?: string[]])[]>
    > = {
      "emits the end of a step without the node after the steps before it": [
        ["skip b, start a, end a changed 0, start c", "start a, end a, end b, start c"],
      ],
      "emits the steps of a batch one after the other, with their milestones": [
        [batch, ""],
        [`${batch}, quick a`, "end a, start b, end b, node.milestone, start c, end c"],
      ],
      "does not delay output, nor a step with onFailure": [
        ["start b", ""],
        ["start b, note b at it", "start b, note b"],
        ["start a, end a failed 1, start c", "start a, end a, start c", ["test/a"]],
      ],
      "emits no end without the node for a step that was not reached": [
        ["skip b, release", ""],
        [`${again}, start c`, "start a, end a, start c", ["test/a"]],
      ],
      "emits an end without the node once the failed step before it succeeds": [
        [again, "start a, end a"],
        [`${again}, start a, end a changed 10`, "start a, end a, start a, end a, end b"],
        [`${again}, quick a`, "start a, end a, end a, end b"],
      ],
      "emits delayed events at the end though frames are missing": [["start c, release", "start c"]],
    };
    for (const [title, rows] of Object.entries(cases))
      it(title, () => {
        for (const [frames, events, onFailure] of rows) expect(eventsOf(frames, onFailure), frames).to.equal(events);
      });
  });
});
