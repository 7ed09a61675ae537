import { expect } from "chai";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { PaceReading, formatTimeLeft, timeLeft, type RunPace } from "#tui/time-left.ts";
import { runStarted } from "#support/run-started.ts";

const second = 1000;

/** The pace of a node with steps of these seconds, and one more second until the end. */
function paceOf(...seconds: readonly number[]): RunPace {
  let at = 0;
  const ends = seconds.map((each) => (at += each * second));
  return { nodes: 1, ends, whole: at + second };
}

describe("the time left of a run", () => {
  const left = (paces: readonly RunPace[], ended: number, elapsed: number, nodes = 1) =>
    timeLeft(paces, { nodes, ended, elapsed: elapsed * second });

  it("is the rest of an earlier run from the same step on", () => {
    const pace = paceOf(10, 100, 10);
    expect(left([pace], 0, 4)).to.equal(117 * second);
    expect(left([pace], 1, 10)).to.equal(111 * second);

    expect(left([pace], 1, 70)).to.equal(51 * second);
    expect(left([pace], 3, 120)).to.equal(second);
  });

  it("does not run out during a step that takes longer, nor jump back after one that took less", () => {
    const pace = paceOf(10, 100, 10);
    expect(left([pace], 1, 150)).to.equal(11 * second);
    expect(left([pace], 2, 60)).to.equal(11 * second);
  });

  it("is unknown for other nodes, more steps, or another pace", () => {
    const pace = paceOf(10, 100, 10);
    expect([left([pace], 1, 10, 2), left([pace], 4, 121)]).to.deep.equal([undefined, undefined]);
    expect([left([pace], 2, 300), left([pace], 2, 20)]).to.deep.equal([undefined, undefined]);
    expect(left([], 0, 0)).to.equal(undefined);
  });

  it("is known once the earlier runs agree or the run resembles one group of them", () => {
    const inOrder = paceOf(0.1, 0.1, 0.1);
    const bare = paceOf(20, 100, 10);
    const both = [inOrder, inOrder, bare, bare];
    expect(left(both, 0, 0)).to.equal(undefined);
    expect(left(both, 0, 15)).to.equal(116 * second);
    expect(left(both, 2, 0.2)).to.equal(1.1 * second);
    // One outlier among several does not count.
    expect(left([bare, bare, bare, bare, paceOf(20, 1000, 10)], 1, 20)).to.equal(111 * second);
  });

  it("is shown in rounded units", () => {
    const shown = [1, 7, 12, 38, 57, 58, 89, 91, 600, 5399, 5400, 7300].map((each) => formatTimeLeft(each * second));
    expect(shown).to.deep.equal([
      "a few seconds left",
      "a few seconds left",
      "about 10 s left",
      "about 40 s left",
      "about 55 s left",
      "about a minute left",
      "about a minute left",
      "about 2 min left",
      "about 10 min left",
      "about 90 min left",
      "about 2 h left",
      "about 2 h left",
    ]);
  });
});

describe("the pace of a run", () => {
  const started: RunEventBody = runStarted({ nodes: ["n1", "n2"] });
  const done: RunEventBody = { type: "run.finished", outcome: "done", exitCode: 0 };
  const step = (outcome: "ok" | "interrupted" = "ok"): RunEventBody => ({
    type: "step.finished",
    node: "n1",
    stage: "s",
    step: "s/1",
    title: "t",
    module: "m",
    outcome,
  });
  /** An event a second. */
  const eventsOf = (...bodies: readonly RunEventBody[]) =>
    bodies.map((body, index) => ({ ...body, seq: index + 1, at: 5000 + index * second }) as RunEvent);
  const read = (...bodies: readonly RunEventBody[]) => {
    const reading = new PaceReading();
    for (const event of eventsOf(...bodies)) reading.add(event);
    return reading.pace;
  };

  it("has the end of each step and action", () => {
    const action: RunEventBody = { type: "action.finished", stage: "s", action: "a", outcome: "changed" };
    expect(read(started, step(), step("interrupted"), step(), action, done)).to.deep.equal({
      nodes: 2,
      ends: [1000, 3000, 4000],
      whole: 5000,
    });
  });

  it("is unknown for a failed, interrupted, resumed or incomplete run, or one with a question", () => {
    const asked: RunEventBody = {
      type: "question.asked",
      question: { id: "q", kind: "confirm", text: "go on?", secret: false },
    };
    expect(read(started, step())).to.equal(undefined);
    expect(read(started, step(), { ...done, outcome: "failed", exitCode: 1 })).to.equal(undefined);
    expect(read(started, asked, step(), done)).to.equal(undefined);
    expect(read(started, step(), { ...started, resumed: true }, step(), done)).to.equal(undefined);
    expect(read(started, { type: "run.stopping", how: "stop", by: "me" }, done)).to.equal(undefined);
    // A record without its beginning.
    expect(read(step(), done)).to.equal(undefined);
  });
});
