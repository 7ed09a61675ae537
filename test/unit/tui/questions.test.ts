import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { runState } from "#cli/records/known-run.ts";
import { describeDryRun, operatorCaller, upcomingStages } from "#tui/questions.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { digestOf } from "#support/digests.ts";
import { linesOf, sceneOf } from "#support/scenes.ts";
import { RunParts } from "#web/run-parts.ts";
import { runStarted } from "#support/run-started.ts";
import { wideRun } from "#support/wide-run.ts";

const started: RunEventBody = runStarted({
  title: "deploy_node",
  command: "kcore orchestrate deploy_node n1",
  nodes: ["n1", "n2"],
  stages: ["disks"],
});
const question = { id: "q1", kind: "password", text: "sudo password of op", node: "n1", secret: true } as const;
const bodies: readonly RunEventBody[] = [
  started,
  { type: "node.connecting", node: "n1", attempt: 1 },
  { type: "question.asked", question },
];
const events = bodies.map((body, index) => ({ seq: index + 1, at: 1000 + index, ...body }));
const model = reduceEvents(events);

describe("a run that waits for an answer", () => {
  it("is shown in the live view's row", () => {
    const frame = linesOf(sceneOf(events, { columns: 120, rows: 30 }), { columns: 120, rows: 30 }).join("\n");
    expect(frame).to.match(/\? n1 +waiting for you +asks: sudo password of op/);
  });

  it("is shown in runs show and -o json, with the question and the command that answers it", () => {
    expect([runState({ model, alive: true }), runState({ model, alive: false })]).to.deep.equal(["waiting", "died"]);
    const digest = digestOf(events, { id: "r1", state: "waiting" });
    const asked = { node: "n1", kind: "password", text: question.text, command: "kcore runs attach r1" };
    expect(digest.questions).to.deep.equal([asked]);
    expect(digest.nodes.map(({ outcome }) => outcome)).to.deep.equal(["waiting for you", "waiting"]);
    expect(drawDigest(digest))
      .to.match(/^deploy_node {2}waiting for you for /)
      .and.to.contain("Waiting for you:\n  n1  sudo password of op")
      .and.to.match(/kcore runs attach r1 +answer it/);
    expect(digestOf(events, { state: "died" }).questions, "without its process").to.deep.equal([]);
  });

  it("is shown on its page until it is answered", () => {
    const parts = new RunParts();
    const page = (isLive: boolean) => new Map(parts.draw(model, isLive));
    expect(page(true).get("head")).to.contain("waiting for you").and.to.contain("kcore runs attach");
    expect(page(true).get("node-0")).to.contain("waiting for you");
    expect(page(false).get("node-0")).to.contain("not finished").and.not.to.contain("waiting for you");
    const answered = { seq: 4, at: 1010, type: "question.answered", id: "q1", by: "op" } as const;
    expect(new Map(parts.draw(reduceEvents([...events, answered]), true)).get("node-0")).to.contain("running");
  });

  it("rings the bell once per question, and restores the terminal's title", () => {
    let written = "";
    const call = operatorCaller((text) => (written += text), true);
    for (const open of [0, 1, 1, 2, 1, 0, 0]) call(open);
    expect(written).to.equal("\u001B[22;2t\u001B]2;kcore: waiting for you\u0007\u0007\u0007\u001B[23;2t");
    written = "";
    const plain = operatorCaller((text) => (written += text), false);
    for (const open of [1, 0]) plain(open);
    expect(written).to.equal("\u0007");
  });
});

describe("the context of a confirmation", () => {
  it("names the next stages with their nodes, and the number of others", () => {
    const model = reduceEvents(wideRun({ nodes: 5, steps: 4 }).slice(0, 1));
    expect(upcomingStages(model)).to.equal(
      "then: preflight on 5 nodes; disks on 5 nodes; nix on 5 nodes; kcore on 5 nodes",
    );
    const few = model.stages.slice(0, 2).map((stage) => ({ ...stage, nodes: ["a", "b"] }));
    expect(upcomingStages({ stages: few })).to.equal("then: preflight on a, b; disks on a, b");
    const action = { id: "x", title: "register", nodes: [], state: "pending" as const, actions: [] };
    expect(upcomingStages({ stages: [...model.stages, action, action] })).to.match(/kcore on 5 nodes; 2 more stages$/);
    expect(upcomingStages({ stages: [action] })).to.equal("then: register");
    expect(upcomingStages(reduceEvents(wideRun({ nodes: 2, steps: 2 })))).to.equal("");
  });

  it("has the result of the last dry run", () => {
    const last = { at: 0, wouldChange: 7, unknown: 2, failed: 0, isSame: true };
    expect(describeDryRun(last, "12m")).to.equal("the dry run 12m ago: 7 would change, 2 unknown, 0 failed");
    expect(describeDryRun({ ...last, unknown: 0, isSame: false }, "2d")).to.equal(
      "the dry run 2d ago: 7 would change, 0 failed (the project has changed since)",
    );
  });
});
