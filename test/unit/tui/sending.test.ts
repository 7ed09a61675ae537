import { expect } from "chai";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { BriefLines } from "#tui/brief.ts";
import { describeEvent } from "#tui/describe-event.ts";
import { drawReport } from "#tui/html/report.ts";
import { nodeRows } from "#tui/node-row.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { linesOf, sceneOf } from "#support/scenes.ts";

const total = 44_000_000;
const sending = (sent: number, rate = 8_400_000): RunEventBody => ({
  type: "node.sending",
  node: "n1",
  name: "kcore-0.1.0",
  sent,
  total,
  rate,
});
const sent = (duration: number): RunEventBody => ({
  type: "node.sent",
  node: "n1",
  name: "kcore-0.1.0",
  bytes: total,
  duration,
});
const text = "sending kcore-0.1.0  31.2/44.0 MB  8.4 MB/s";

/** A recorded run until its first node is connected, then these events, one a second. */
function runWith(...bodies: readonly RunEventBody[]): RunEvent[] {
  const all = recordedRun("done");
  const at = all.findIndex((event) => event.type === "node.connected" && event.node === "n1");
  const first = all.slice(0, at + 1);
  const { seq = 0, at: since = 0 } = first.at(-1) ?? {};
  return [
    ...first,
    ...bodies.map((body, index) => ({ ...body, seq: seq + 1 + index, at: since + 1000 * (index + 1) })),
  ];
}

/** The lines of each event, given the run before the event. */
function linesFor(events: readonly RunEvent[], describe: typeof describeEvent): string[] {
  return events.flatMap((event, index) =>
    describe(reduceEvents(events.slice(0, index)), event).map((line) => line.text),
  );
}

describe("the transfer of a large content in views", () => {
  it("is in the node's row of the live view, and the node counts as running", () => {
    const screen = { columns: 120, rows: 30 };
    const events = runWith(sending(31_200_000));
    expect(nodeRows(reduceEvents(events)).find(({ name }) => name === "n1")?.state).to.equal("running");
    expect(linesOf(sceneOf(events, screen), screen).join("\n")).to.contain(text);
    const ended = runWith(sending(31_200_000), sent(5200));
    expect(linesOf(sceneOf(ended, screen), screen).join("\n")).not.to.contain("sending");
  });

  it("is in the report, and when done with its size and time", () => {
    expect(drawReport(reduceEvents(runWith(sending(31_200_000))))).to.contain(text);
    const report = drawReport(reduceEvents(runWith(sending(31_200_000), sent(5200))));
    expect(report).to.contain("sent kcore-0.1.0  44.0 MB  5.2 s").and.not.to.contain("sending kcore");
  });

  it("has the name of the sending node", () => {
    const byN2 = (event: RunEventBody): RunEventBody => ({ ...event, from: "n2" }) as RunEventBody;
    const events = runWith(byN2(sending(31_200_000)), byN2(sent(5200)));
    expect(linesFor(events, describeEvent).filter((line) => line.includes("kcore"))).to.deep.equal([
      "n1  sending kcore-0.1.0 from n2  31.2/44.0 MB  8.4 MB/s",
      "n1  sent kcore-0.1.0 from n2  44.0 MB  5.2 s",
    ]);
    expect(drawReport(reduceEvents(events))).to.contain("sent kcore-0.1.0 from n2  44.0 MB  5.2 s");
  });

  it("is dropped when the connection is lost", () => {
    const lost = { type: "node.disconnected", node: "n1", reason: "gone" } as const;
    expect(reduceEvents(runWith(sending(31_200_000), lost)).nodes.get("n1")?.sending).to.equal(undefined);
  });

  it("is a plain line for each tenth, and one at the end", () => {
    const events = runWith(...[1, 2, 4.5, 5, 9, 44].map((mega) => sending(mega * 1_000_000)), sent(6000));
    expect(linesFor(events, describeEvent).filter((line) => line.includes("kcore"))).to.deep.equal([
      "n1  sending kcore-0.1.0  1.0/44.0 MB  8.4 MB/s",
      "n1  sending kcore-0.1.0  4.5/44.0 MB  8.4 MB/s",
      "n1  sending kcore-0.1.0  9.0/44.0 MB  8.4 MB/s",
      "n1  sending kcore-0.1.0  44.0/44.0 MB  8.4 MB/s",
      "n1  sent kcore-0.1.0  44.0 MB  6.0 s",
    ]);
  });

  it("is in the brief view only if it takes long, and not in the quiet view", () => {
    const events = runWith(...[5, 10, 15, 20, 25, 30, 35].map((mega) => sending(mega * 1_000_000)), sent(8000));
    const lines = (detail: "brief" | "quiet") => {
      const brief = new BriefLines({ detail, folds: false });
      return linesFor(events, (before, event) => brief.linesOf(before, event).lines).filter((line) =>
        line.includes("kcore"),
      );
    };
    expect(lines("brief")).to.deep.equal([
      "n1  sending kcore-0.1.0  30.0/44.0 MB  8.4 MB/s",
      "n1  sending kcore-0.1.0  35.0/44.0 MB  8.4 MB/s",
      "n1  sent kcore-0.1.0  44.0 MB  8.0 s",
    ]);
    expect(lines("quiet")).to.deep.equal([]);
    const fast = new BriefLines({ detail: "brief", folds: false });
    const [, ...rest] = runWith(sent(900));
    expect(fast.linesOf(reduceEvents([]), rest.at(-1) as RunEvent).lines).to.deep.equal([]);
  });
});
