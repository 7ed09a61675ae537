import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { TransferProgress } from "#engine/session/transfer-progress.ts";
import type { Problem } from "#errors/problem.ts";

const MB = 1_000_000;

describe("TransferProgress", () => {
  let now: number;
  let taken: number;
  let events: RunEventBody[];
  let problems: Problem[];
  let progress: TransferProgress;
  beforeEach(() => {
    [now, taken, events, problems] = [0, 7 * MB, [], []];
    progress = new TransferProgress({
      node: "n1",
      bytesTaken: () => taken,
      emit: (event) => events.push(event),
      stall: 60_000,
      onStall: (problem) => problems.push(problem),
      now: () => now,
    });
  });
  afterEach(() => progress.stop());

  function begin(name: string, size: number): void {
    progress.begin(name, size);
    progress.write(size);
  }
  /** Samples once a second while the node takes `rate` bytes a second. */
  function pass(seconds: number, rate: number): void {
    for (let second = 0; second < seconds; second++) {
      now += 1000;
      taken += rate;
      progress.sample();
    }
  }

  it("emits name, sent bytes and recent rate once a second", () => {
    begin("kcore-0.1.0", 44 * MB);
    pass(2, 10 * MB);
    expect(events).to.deep.equal([
      { type: "node.sending", node: "n1", name: "kcore-0.1.0", sent: 10 * MB, total: 44 * MB },
      { type: "node.sending", node: "n1", name: "kcore-0.1.0", sent: 20 * MB, total: 44 * MB, rate: 10 * MB },
    ]);
    pass(10, MB / 2);
    expect(events.at(-1)).to.include({ sent: 25 * MB, rate: MB / 2 });
  });

  it("emits the arrival once, with size and duration", () => {
    begin("kcore-0.1.0", 44 * MB);
    pass(3, 20 * MB);
    progress.end();
    now += 500;
    progress.arrive();
    expect(events.at(-2)).to.include({ type: "node.sending", sent: 44 * MB });
    const sent = { type: "node.sent", node: "n1", name: "kcore-0.1.0", bytes: 44 * MB, duration: 3500 };
    expect(events.at(-1)).to.deep.equal(sent);
  });

  it("emits no event for a small content", () => {
    begin("site.conf", 90_000);
    begin("image", 2 * MB);
    progress.arrive();
    expect(events.map((event) => "name" in event && event.name)).to.deep.equal(["image"]);
  });

  it("emits the arrival of the first content when the second one begins", () => {
    begin("first", 10 * MB);
    begin("second", 10 * MB);
    pass(3, 5 * MB);
    const emitted = events.map((event) => (event.type === "node.sending" ? [event.name, event.sent] : event.type));
    expect(emitted).to.deep.equal([["first", 5 * MB], ["first", 10 * MB], "node.sent", ["second", 5 * MB]]);
  });

  it("emits at most 320 events in an hour", () => {
    begin("image", 3600 * MB);
    pass(3600, MB);
    expect(events.length).to.be.within(150, 320);
  });

  it("fails after 60 s without progress, with the sent bytes", () => {
    begin("kcore-0.1.0", 44 * MB);
    pass(3, 4 * MB);
    pass(59, 0);
    expect(problems).to.deep.equal([]);
    pass(5, 0);
    expect(problems.map(({ code, message }) => `${code} ${message}`)).to.deep.equal([
      "TRANSFER_STALLED n1 took nothing more of kcore-0.1.0 for 60 s, after 12.0/44.0 MB",
    ]);
  });

  it("does not fail a slow transfer that makes progress", () => {
    begin("kcore-0.1.0", 44 * MB);
    for (let minute = 0; minute < 600; minute++) {
      pass(1, 4096);
      pass(58, 0);
    }
    expect(problems).to.deep.equal([]);
  });

  it("gives the node time to hash a content", () => {
    begin("image", 600 * MB);
    progress.end();
    pass(6, 100 * MB);
    pass(600, 0);
    expect(problems).to.deep.equal([]);
    pass(61, 0);
    expect(problems.length).to.equal(1);
  });

  it("gives the node time to hash the first content before it reads the second", () => {
    begin("image", 600 * MB);
    begin("kcore-0.1.0", 44 * MB);
    progress.end();
    pass(6, 100 * MB);
    // The pipe of a process that does not read takes this much.
    pass(1, 64 << 10);
    pass(600, 0);
    expect(problems).to.deep.equal([]);
    pass(1, MB);
    pass(61, 0);
    expect(problems.length).to.equal(1);
  });

  it("does not fail while it is on hold", () => {
    begin("image", 600 * MB);
    pass(6, 100 * MB);
    progress.hold(true);
    const before = events.length;
    pass(3600, 0);
    progress.hold(false);
    expect([problems, events.length]).to.deep.equal([[], before]);
    progress.arrive();
    begin("kcore-0.1.0", 44 * MB);
    pass(2, MB);
    expect(events.at(-1)).to.include({ name: "kcore-0.1.0", sent: 2 * MB });
    pass(59, 0);
    expect(problems).to.deep.equal([]);
    pass(2, 0);
    expect(problems.length).to.equal(1);
  });

  it("emits no event after a stop", () => {
    begin("kcore-0.1.0", 44 * MB);
    progress.stop();
    pass(100, 0);
    progress.arrive();
    expect([events, problems]).to.deep.equal([[], []]);
  });
});
