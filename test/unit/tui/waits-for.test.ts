import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { waitsFor } from "#tui/node-row.ts";
import { runStarted } from "#support/run-started.ts";

const started: RunEventBody = runStarted({
  title: "roll",
  command: "kcore orchestrate roll",
  nodes: ["n1", "n2"],
  stages: [
    { id: "build", title: "build the image", nodes: [], action: "local.command" },
    { id: "web", title: "web", nodes: ["n1", "n2"] },
    { id: "check", title: "check", nodes: ["n1"] },
  ],
});
const modelOf = (...bodies: readonly RunEventBody[]) =>
  reduceEvents([started, ...bodies].map((body, index) => ({ seq: index + 1, at: 1000 + index, ...body })));
const question = { id: "q1", kind: "confirm", text: "go on?", secret: false } as const;

describe("a node that has not begun", () => {
  it("V9: says what it waits for", () => {
    const built: RunEventBody[] = [
      { type: "stage.started", stage: "build" },
      { type: "stage.finished", stage: "build", outcome: "ok" },
    ];
    expect(waitsFor(modelOf(), "n2")).to.equal("waits for build the image");
    expect(waitsFor(modelOf(...built), "n2")).to.equal("waits for its turn: web");
    const step = { node: "n1", stage: "web", step: "web/a", title: "a", module: "file.managed" } as const;
    const begun = modelOf(...built, { type: "stage.started", stage: "web" }, { type: "step.started", ...step });
    expect(waitsFor(begun, "n1")).to.equal("waits for web");
    expect(waitsFor(modelOf(...built, { type: "question.asked", question }), "n2")).to.equal("waits for your answer");
    expect(waitsFor(modelOf({ type: "node.finished", node: "n2", outcome: "done" }), "n2")).to.equal(undefined);
  });
});
