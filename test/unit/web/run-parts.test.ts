import { expect } from "chai";
import { reduceEvents, RunFold } from "#engine/events/reduce.ts";
import { axisLength, RunParts } from "#web/run-parts.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";
import { wideRun } from "#support/wide-run.ts";

/** The parts without the rows' change counters. */
const uncounted = (parts: ReturnType<RunParts["draw"]>) =>
  parts.map(([id, html]) => [id, html.replace(/ data-count="\d+"/, "")]);

describe("the parts of a run's page", () => {
  for (const name of recordedRunNames)
    it(`are the same drawn event by event and all at once: ${name}`, () => {
      const events = recordedRun(name);
      const [fold, live] = [new RunFold(), new RunParts()];
      for (const [index, event] of events.entries()) {
        fold.add(event);
        const whole = new RunParts().draw(reduceEvents(events.slice(0, index + 1)), true);
        expect(uncounted(live.draw(fold.model, true))).to.deep.equal(uncounted(whole));
      }
    });

  it("have a row that changes only with its node", () => {
    const events = wideRun({ nodes: 50, steps: 8, failEvery: 9, apart: 300 });
    const [fold, parts] = [new RunFold(), new RunParts()];
    let known = new Map<string, string>();
    let [most, changed] = [0, 0];
    const axes = new Set<number>();
    for (const event of events) {
      fold.add(event);
      const now = new Map(parts.draw(fold.model, true));
      const rows = [...now].filter(([id, html]) => id.startsWith("node-") && known.get(id) !== html).length;
      if (known.size > 0) most = Math.max(most, rows);
      changed += rows;
      const { to, from } = JSON.parse(now.get("rows") ?? "{}") as { to: number; from: number };
      axes.add(to - from);
      known = now;
    }
    // The axis grew several times without a change of rows.
    expect(axes.size).to.be.above(2);
    expect(most).to.equal(1);
    expect(changed).to.be.above(50 * 8);
  });

  it("have running clocks for a running run and its stages only", () => {
    const events = recordedRun("deploy-three");
    const clocks = (count: number, isLive: boolean) => {
      const parts = new Map(new RunParts().draw(reduceEvents(events.slice(0, count)), isLive));
      const [head = "", stages = ""] = [parts.get("head"), parts.get("stages")];
      return {
        head: /<dt>Took<\/dt>\s*<dd><span data-since="(\d+)"/.exec(head)?.[1],
        bars: stages.split("data-from=").length - 1,
      };
    };
    const half = Math.floor(events.length / 2);
    expect(clocks(half, true)).to.deep.equal({ head: String(events[0]?.at), bars: 1 });
    expect(new Map(new RunParts().draw(reduceEvents(events.slice(0, half)), true)).get("head")).to.not.match(
      / finished, in /,
    );
    expect(clocks(half, false)).to.deep.equal({ head: undefined, bars: 0 });
    expect(clocks(events.length, true)).to.deep.equal({ head: undefined, bars: 0 });
  });

  it("have failed nodes first in the order of rows", () => {
    const model = reduceEvents(wideRun({ nodes: 6, steps: 6, failEvery: 3 }));
    const rows = JSON.parse(new Map(new RunParts().draw(model, false)).get("rows") ?? "") as { order: string[] };
    expect(rows.order.slice(0, 2)).to.deep.equal(["node-2", "node-5"]);
    expect(rows.order).to.have.length(6);
  });

  it("can be searched by names and steps, and have a body for each row", () => {
    const model = reduceEvents(wideRun({ nodes: 12, steps: 6 }));
    const parts = new RunParts();
    expect(parts.find(model, ["n07"])).to.deep.equal(["node-6"]);
    expect(parts.find(model, ["disks step", "N12"])).to.deep.equal(["node-11"]);
    expect(parts.find(model, ["nothing of this"])).to.deep.equal([]);
    expect(parts.drawBody(model, "node-3")?.source).to.include("Steps of n04").and.include("data-key=");
    expect(parts.bars(model, "node-3")).to.have.length(6);
    for (const id of ["node-12", "node--1", "node-x", "bastion", ""])
      expect(parts.drawBody(model, id), id).to.equal(undefined);
  });

  it("have an axis of a round length beyond the elapsed time", () =>
    expect([0, 9_999, 10_000, 59_000, 61_000, 3_600_000, 7_200_000, 90_000_000].map(axisLength)).to.deep.equal([
      10_000, 10_000, 20_000, 60_000, 120_000, 7_200_000, 14_400_000, 115_200_000,
    ]));
});
