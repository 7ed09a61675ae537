import { expect } from "chai";
import { reduceEvents } from "#engine/events/reduce.ts";
import { runTime } from "#engine/events/run-model.ts";
import { runProgress, type RunProgressProps } from "#tui/ink/header.ts";
import { PaceReading, formatTimeLeft } from "#tui/time-left.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { linesOf, plainTheme, sceneOf } from "#support/scenes.ts";

const events = recordedRun("deploy-three");
const reading = new PaceReading();
for (const event of events) reading.add(event);
const paces = [reading.pace ?? expect.fail("no pace")];

describe("the progress of a run", () => {
  const textOf = (count: number, more: Partial<RunProgressProps> = {}) => {
    const model = reduceEvents(events.slice(0, count));
    const line = runProgress({ model, theme: plainTheme, width: 80, now: model.lastAt, ...more });
    return line.map(({ text }) => text).join("");
  };
  const half = Math.floor(events.length / 2);

  it("is a bar during the run", () => {
    expect([textOf(0), textOf(events.length)]).to.deep.equal(["", ""]);
    expect(textOf(half)).to.match(/^━+─+ \d+ %$/);
  });

  it("has the time left if an earlier run had the same shape", () => {
    for (let count = 2; count < events.length; count++) {
      const model = reduceEvents(events.slice(0, count));
      if (model.state !== "running") continue;
      const left = runTime(reduceEvents(events)) - runTime(model);
      expect(textOf(count, { paces })).to.match(new RegExp(` %  ${formatTimeLeft(left)}$`));
    }
  });

  it("has no time left during a question, or without a matching earlier run", () => {
    expect(textOf(half, { paces, isAsking: true })).to.match(/ %$/);
    expect(textOf(half, { paces: paces.map((pace) => ({ ...pace, nodes: 7 })) })).to.match(/ %$/);
  });

  it("is in the head of the view, also in a low terminal", () => {
    const now = sceneOf(events.slice(0, half), { paces });
    expect(linesOf(now)[1]).to.match(/ {2}━+─+ \d+ % {2}about \d+ s left$/);
    const low = linesOf(sceneOf(events.slice(0, half), { paces, rows: 15 }));
    expect(low[0]).to.match(/about \d+ s left {2}\S+ running {2}\d+s$/);
    const [narrow] = linesOf(sceneOf(events.slice(0, half), { paces, rows: 15, columns: 60 }), { columns: 60 });
    expect(narrow).to.match(/ {2}~\d+ s left {2}\S+ running {2}\d+s$/);
    for (const columns of [40, 55]) {
      const [first] = linesOf(sceneOf(events.slice(0, half), { paces, rows: 15, columns }), { columns });
      expect(first).to.match(/running {2}\d+s$/);
    }
  });
});
