import { expect } from "chai";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { reduceEvents, RunFold } from "#engine/events/reduce.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";

describe("reduceEvents", () => {
  it("makes a finished run's model of its events", () => {
    const model = reduceEvents(recordedRun("done"));
    const ended = { state: "finished", outcome: "done", exitCode: 0, title: "deploy_node", who: "ops@bastion" };
    expect(model).to.include(ended);
    const node = model.nodes.get("n1");
    expect(node).to.include({ state: "finished", outcome: "done", exchanges: 1 });
    expect([
      model.stages.map(({ id, state }) => `${id} ${state}`).join(),
      node?.steps.map(({ step, outcome }) => `${step} ${outcome}`).join(),
      model.stages[2]?.actions.map(({ item, outcome }) => `${item} ${outcome}`).join(),
    ]).to.deep.equal([
      "preflight ok,disks ok,issue ok",
      "preflight/os ok,disks/table changed,disks/issue changed",
      "n1 changed,n2 ok",
    ]);
  });

  it("returns the same model for events that it has already reduced", () => {
    const events = recordedRun("failed");
    const model = reduceEvents(events);
    expect(reduceEvents(events, model)).to.equal(model);
  });

  it("skips an event of an unknown type", () => {
    const model = reduceEvents(recordedRun("done").slice(0, -1));
    const at = { seq: model.lastSeq + 1, at: model.lastAt + 5 };
    const later = { type: "node.sang", node: "n1", ...at } as unknown as RunEvent;
    expect(reduceEvents([later], model)).to.deep.equal({ ...model, lastSeq: later.seq, lastAt: later.at });
  });

  it("ends a node's waiting at the next event of a transfer or step", () => {
    const bodies = [
      { type: "node.sending", name: "tool", sent: 1, total: 2 },
      { type: "node.sent", name: "tool", bytes: 2, duration: 1 },
      { type: "step.finished", step: "s/tool", title: "tool", outcome: "changed", duration: 1 },
    ] as const;
    for (const body of bodies) {
      const events = [{ type: "node.waiting", reason: "for tool" } as const, body].map(
        (one, index) => ({ seq: index + 1, at: index, node: "n1", stage: "s", ...one }) as unknown as RunEvent,
      );
      expect(reduceEvents(events.slice(0, 1)).nodes.get("n1")).to.include({ state: "waiting", reason: "for tool" });
      const after = reduceEvents(events).nodes.get("n1");
      expect([after?.state, after?.reason], body.type).to.deep.equal(["connected", undefined]);
    }
  });

  it("keeps the tail of a failed step's output, with the stream of each line", () => {
    const step = reduceEvents(recordedRun("failed"))
      .nodes.get("n1")
      ?.steps.find(({ outcome }) => outcome === "failed");
    expect(step?.tail).to.match(/^Reading lists\nE: Unable to locate package nope\n/);
    expect(step?.streams).to.equal("oee");
  });

  it("records the stream of each kept line once a step has printed to stderr", () => {
    const step = { node: "n1", step: "s/a" };
    const after = (...pieces: readonly (readonly ["out" | "err", string])[]) =>
      reduceEvents([
        { seq: 1, at: 1, type: "step.started", stage: "s", title: "a", module: "m", ...step },
        ...pieces.map(([stream, text], index): RunEvent => ({
          seq: index + 2,
          at: 2,
          type: "step.output",
          stream,
          text,
          ...step,
        })),
      ]).nodes.get("n1")?.steps[0];
    expect(after(["out", "one\ntwo\n"])).to.not.have.property("streams");
    expect(after(["out", "one\ntwo\n"], ["err", "three\n"], ["out", "four"])?.streams).to.equal("ooeo");
    // A line with text of both streams counts for the stream that began it.
    expect(after(["err", "half "], ["out", "a line\nnext\n"])?.streams).to.equal("eo");
    const long = after(["err", "first\n"], ["out", `${"x".repeat(99)}\n`.repeat(60)], ["err", "last\n"]);
    expect(long?.tail.match(/\n/g)).to.have.length(long?.streams?.length ?? 0);
    expect(long?.streams).to.match(/^o+e$/);
  });

  it("keeps the outcome changed of a step or action that a resumed run finds in order or skips", () => {
    const started = { type: "run.started", runId: "r", title: "t", command: "c", nodes: ["n1"], who: "w" } as const;
    const stages = [
      { id: "s", title: "s", nodes: ["n1"] },
      { id: "c", title: "c", nodes: [], action: "certificate.issue" },
    ];
    const part = { ...started, stages, dryRun: false };
    const step = { node: "n1", stage: "s", step: "a", title: "a", module: "m" };
    const changes = [{ name: "mode", want: "0600" }];
    const bodies: RunEventBody[] = [
      part,
      { type: "step.started", ...step },
      { type: "step.finished", ...step, outcome: "changed", changes },
      { type: "action.started", stage: "c", action: "certificate.issue" },
      { type: "action.finished", stage: "c", action: "certificate.issue", outcome: "changed" },
      { ...part, resumed: true },
      { type: "step.started", ...step },
      { type: "step.finished", ...step, outcome: "ok" },
      { type: "action.started", stage: "c", action: "certificate.issue" },
      { type: "action.finished", stage: "c", action: "certificate.issue", outcome: "skipped" },
    ];
    const model = reduceEvents(bodies.map((body, index) => ({ seq: index + 1, at: index, ...body })));
    expect(model.nodes.get("n1")?.steps).to.have.length(1);
    expect(model.nodes.get("n1")?.steps[0]).to.deep.include({ outcome: "changed", changes });
    expect(model.stages.find(({ id }) => id === "c")?.actions[0]).to.include({ outcome: "changed" });
  });

  it("keeps the steps of the first part in a resumed run", () => {
    const events = recordedRun("resumed");
    const model = reduceEvents(events);
    expect(model).to.include({ resumed: true, state: "finished", startedAt: events[0]?.at });
    expect(model.questions).to.deep.equal([]);
    expect(model.nodes.get("n1")?.steps.map(({ step, outcome }) => [step, outcome])).to.deep.equal([
      ["preflight/os", "ok"],
      ["disks/long", "changed"],
    ]);
  });

  it("drops outcome and exit code when a run is resumed", () => {
    const ended = recordedRun("done");
    const again = { ...(ended[0] as RunEvent), seq: 99, at: 99 };
    expect(reduceEvents([...ended, again])).to.not.have.any.keys("outcome", "exitCode");
  });

  it("lists a question until its answer", () => {
    const question = { id: "q1", kind: "confirm", text: "Go?", secret: false } as const;
    const asked = { seq: 1, at: 1, type: "question.asked", question } as const;
    const answered = { seq: 2, at: 2, type: "question.answered", id: "q1", by: "me" } as const;
    const model = reduceEvents([asked]);
    expect(model.questions).to.deep.equal([asked.question]);
    expect(reduceEvents([answered], model).questions).to.deep.equal([]);
  });

  it("marks nodes that never began as not-started when the run ends", () => {
    const begun = recordedRun("done").slice(0, 1);
    const end = { seq: 99, at: 99, type: "run.finished", outcome: "failed", exitCode: 1 } as const;
    const { nodes } = reduceEvents([...begun, end]);
    expect(Array.from(nodes.values(), ({ outcome }) => outcome)).to.include("not-started");
  });

  it("keeps every problem of a run that was refused", () => {
    const model = reduceEvents(recordedRun("refused"));
    expect(model).to.include({ runId: "", state: "finished", exitCode: 2 });
    expect(model.problems.map(({ code }) => code)).to.deep.equal(["TARGET_EMPTY"]);
  });
});

describe("RunFold", () => {
  for (const name of recordedRunNames)
    it(`leaves earlier models of the recording ${name} unchanged`, () => {
      const events = recordedRun(name);
      const fold = new RunFold();
      const taken: [string, RunModel][] = [];
      for (const [index, event] of events.entries()) {
        fold.add(event);
        if (index % 3 === 0) taken.push([JSON.stringify([...fold.model.nodes]), fold.model]);
      }
      expect(fold.model).to.deep.equal(reduceEvents(events));
      for (const [text, { nodes }] of taken) expect(JSON.stringify([...nodes])).to.equal(text);
    });

  it("records the times of stages, nodes and steps, and the number of planned steps", () => {
    const model = reduceEvents(recordedRun("failed"));
    expect(model.stages.map(({ startedAt, endedAt }) => [startedAt, endedAt])).to.deep.equal([
      [1795240000200, 1795240001000],
      [1795240001100, 1795240002100],
      [undefined, undefined],
    ]);
    const node = model.nodes.get("n1");
    expect(node).to.include({ startedAt: 1795240000300, endedAt: 1795240002300, planned: 3 });
    expect(node?.steps.find(({ step }) => step === "disks/install")?.heardAt).to.equal(1795240001700);
  });

  it("counts a content's transfer as sign of life of the step that waits for it", () => {
    const events = recordedRun("failed");
    const begun = events.findIndex((event) => event.type === "step.started");
    const sending = { type: "node.sending", node: "n1", name: "image", sent: 1, total: 2 } as const;
    const model = reduceEvents([...events.slice(0, begun + 1), { seq: 99, at: 1795249999999, ...sending }]);
    expect(model.nodes.get("n1")?.steps.at(-1)?.heardAt).to.equal(1795249999999);
  });
});
