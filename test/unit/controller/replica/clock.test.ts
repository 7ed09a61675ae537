import { expect } from "chai";
import { ClockGuard } from "#controller/replica/clock-guard.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { restamp } from "#controller/replica/restamp.ts";
import { defaultTuning } from "#controller/replica/tuning.ts";
import { encodePage } from "#crdt/page.ts";
import { Scheduler } from "../../../sim/scheduler.ts";
import { connect, pair, refusalOf, TestReplica } from "#support/replica.ts";

const hour = 3_600_000;

const stateOf = (records: Iterable<JournalRecord>): ClusterState =>
  new ClusterState({ mergeKindOf: () => "lww" }, records);

describe("a controller whose own clock jumps", () => {
  const put = ({ replica }: TestReplica, key: string): Promise<string> => refusalOf(replica.write([{ key, value: 1 }]));

  it("refuses writes with an alarm while it is cut off, until the clock is right again", async () => {
    const { scheduler, a, b, wire } = await pair();
    expect(await put(b, "before")).to.equal("written");
    wire.cut();
    await scheduler.runUntil(scheduler.now + 1_000);
    b.offset = hour;
    for (let turn = 0; turn < 3; turn++) {
      await scheduler.runUntil(scheduler.now + 1_000);
      expect(await put(b, `wrong/${turn}`)).to.equal("CLOCK_JUMP 503");
    }
    expect(b.replica.status().readOnly).to.equal("CLOCK_JUMP");
    expect(b.alarms()).to.include("CLOCK_JUMP b");
    expect(a.alarms()).not.to.include("CLOCK_JUMP a");
    b.offset = 0;
    expect(await put(b, "after")).to.equal("written");
    expect(b.replica.status().readOnly).to.equal(undefined);
    expect(b.alarms()).not.to.include("CLOCK_JUMP b");
    connect(a, b);
    await scheduler.runUntil(scheduler.now + 1_000);
    expect(a.replica.get("after")?.text).to.equal("1");
  });

  it("accepts a jump that a peer's clock confirms; without peers a write waits 3 s", async () => {
    const { scheduler, a, b, wire } = await pair();
    wire.cut();
    a.offset = b.offset = -hour;
    expect(await put(b, "k")).to.equal("CLOCK_JUMP 503");
    connect(a, b);
    await scheduler.runUntil(scheduler.now + 1_000);
    // The clock is right now, but earlier stamps are ahead of it.
    expect(b.replica.status().readOnly).to.equal("CLOCK_SKEW");
    const alone = new TestReplica(new Scheduler(), "a");
    await alone.register("a", "b");
    alone.offset = hour;
    let written = "not yet";
    void put(alone, "k").then((outcome) => (written = outcome));
    await alone.scheduler.runUntil(alone.scheduler.now + 2_900);
    expect(written).to.equal("not yet");
    expect(alone.alarms()).to.include("CLOCK_JUMP a");
    await alone.scheduler.runUntil(alone.scheduler.now + 200);
    expect(written).to.equal("written");
    expect(alone.alarms()).not.to.include("CLOCK_JUMP a");
  });

  it("accepts a slewed clock, and a step below the permitted skew", async () => {
    const alone = new TestReplica(new Scheduler(), "a");
    await alone.register("a");
    for (let second = 0; second < 60; second++) {
      alone.offset += 500 * 1e-6 * 60_000;
      await alone.scheduler.runUntil(alone.scheduler.now + 60_000);
      expect(await put(alone, `slewed/${second}`)).to.equal("written");
    }
    alone.offset += 4_000;
    expect(await put(alone, "stepped")).to.equal("written");
  });

  it("follows the median offset of its peers, of samples at most a minute old with a short round trip", () => {
    let mono = 0;
    const guard = new ClockGuard({ wall: () => mono, mono: () => mono }, defaultTuning);
    for (const [peer, offset] of [
      ["b", 0],
      ["c", 0],
      ["d", hour],
    ] as const)
      guard.sample(peer, mono, [offset, offset]);
    expect([guard.isFenced(), guard.offsetOf("d")]).to.deep.equal([false, hour]);
    mono += 60_001;
    expect(guard.offsetOf("d")).to.equal(undefined);
    guard.sample("b", mono - 2_001, [mono, mono]);
    expect(guard.offsetOf("b")).to.equal(undefined);
  });

  it("detects a jump also after half a day without peers", () => {
    let [mono, wall] = [0, 0];
    const guard = new ClockGuard({ wall: () => wall, mono: () => mono }, defaultTuning);
    for (; mono < 12 * hour; mono += 1_000) {
      wall += 1_000.5;
      expect(guard.jump({ isAlone: false })).to.equal(0);
    }
    wall += 20_000;
    expect(guard.jump({ isAlone: false })).to.be.within(19_000, 21_000);
  });

  it("subtracts the round trip from a peer's clock offset", () => {
    let mono = 0;
    const guard = new ClockGuard({ wall: () => 1e12 + mono, mono: () => mono }, defaultTuning);
    const driftAfter = (outMs: number, backMs: number, offset: number): number => {
      const sent = mono;
      const peerWall = 1e12 + sent + outMs + offset;
      mono += outMs + backMs;
      guard.sample("b", sent, [peerWall, peerWall]);
      return guard.driftOf("b");
    };
    expect([driftAfter(1_800, 0, 0), driftAfter(0, 1_800, 0), driftAfter(10, 10, -700)]).to.deep.equal([0, 0, 690]);
    expect(driftAfter(900, 900, 1_500)).to.equal(600);
    expect(guard.driftOf("unknown")).to.equal(0);
  });

  it("shows that and for how long it is read-only, and which writes wait, after stamps ahead of its clock", async () => {
    const { b, scheduler } = await ahead();
    const { readOnly, readOnlyFor } = b.replica.status();
    expect(readOnly).to.equal("CLOCK_SKEW");
    expect(readOnlyFor).to.be.within(hour - 20_000, hour);
    const alarm = b.replica.status().alarms.find(({ code }) => code === "CLOCK_AHEAD");
    expect(alarm?.message)
      .to.match(/read-only for 59m \d+s/)
      .and.to.contain("3 values that it wrote itself wait")
      .and.to.contain("kcore controller repair");
    await scheduler.runUntil(scheduler.now + hour);
    expect(b.replica.status().readOnly).to.equal(undefined);
    expect(b.alarms()).not.to.include("CLOCK_AHEAD b");
  });

  it("writes again after a restamp, and its peers accept the restamped writes", async () => {
    const { a, b, scheduler } = await ahead();
    const now = 1_700_000_000_000 + scheduler.now;
    const options = { id: "b", now, word: () => "0badcafe" };
    const { writes, ...restamped } = restamp(stateOf(b.records), options);
    const records = [...restamped.records];
    expect(writes.map(({ key, deleted }) => [key, deleted])).to.deep.equal([
      ["ahead/1", false],
      ["ahead/2", false],
      ["kept", true],
    ]);
    for (const { was, is, from, to } of writes) {
      expect(was).to.match(/^b#\w+:\d+$/);
      expect(is).to.match(/^b#0badcafe:\d$/);
      expect(from - to).to.be.within(hour - 20_000, hour);
    }
    // A second restamp changes nothing.
    expect(restamp(stateOf(records), options).writes).to.deep.equal([]);
    const again = b.restart(records);
    expect(again.replica.status().readOnly).to.equal(undefined);
    expect(await afterConfirmation(scheduler, put(again, "next"))).to.equal("written");
    connect(a, again);
    await scheduler.runUntil(scheduler.now + 5_000);
    expect([a.replica.get("ahead/1")?.text, a.replica.get("kept")]).to.deep.equal(["1", undefined]);
    const [here, there] = [a.replica.status(), again.replica.status()];
    expect(here.digest).to.equal(there.digest);
    expect([...here.alarms, ...there.alarms].map(({ message }) => message)).to.deep.equal([]);
    expect(a.replica.conflicts()).to.deep.equal([]);
  });

  it("keeps transactions together in a restamp", () => {
    const ahead = ["k", "l", "m"].map((key, place) => ({
      key,
      text: "1",
      ms: 2 * hour,
      c: 0,
      o: "a#1",
      s: place === 2 ? 2 : 1,
      x: { origins: [], seqs: [] },
    }));
    const records = [{ t: "apply", page: encodePage(ahead), upto: [["a#1", 2]] }] as const;
    const { writes } = restamp(stateOf(records), { id: "a", now: hour, word: () => "00000002" });
    expect(writes.map(({ is }) => is.split(":")[1])).to.deep.equal(["1", "1", "2"]);
  });

  it("restamps no write that is ahead by less than the permitted skew", async () => {
    const { b, scheduler } = await ahead();
    const now = 1_700_000_000_000 + scheduler.now + hour - 14_000;
    expect(restamp(stateOf(b.records), { id: "b", now, word: () => "0badcafe" }).writes).to.deep.equal([]);
  });

  it("writes again and agrees with its peer when both were ahead and both are restamped", async () => {
    const { scheduler, a, b, wire } = await pair();
    wire.cut();
    const wrong = [a, b].map((each) => each.restart(each.records, {}, hour)) as [TestReplica, TestReplica];
    const together = connect(...wrong);
    await scheduler.runUntil(scheduler.now + 2_000);
    for (const each of wrong)
      expect(await afterConfirmation(scheduler, put(each, `ahead/${each.id}`))).to.equal("written");
    await scheduler.runUntil(scheduler.now + 2_000);
    together.cut();
    const now = 1_700_000_000_000 + scheduler.now;
    const [first, second] = wrong.map((each) => {
      const { records } = restamp(stateOf(each.records), { id: each.id, now, word: () => `0badcaf${each.id}` });
      return each.restart(records);
    }) as [TestReplica, TestReplica];
    connect(first, second);
    await scheduler.runUntil(scheduler.now + 5_000);
    for (const each of [first, second]) {
      expect([each.replica.status().readOnly, each.alarms()]).to.deep.equal([undefined, []]);
      expect(await afterConfirmation(scheduler, put(each, `next/${each.id}`))).to.equal("written");
    }
    await scheduler.runUntil(scheduler.now + 2_000);
    expect(first.replica.status().digest).to.equal(second.replica.status().digest);
    for (const key of ["ahead/a", "ahead/b", "next/a", "next/b"])
      expect([first, second].map(({ replica }) => replica.get(key)?.text)).to.deep.equal(["1", "1"]);
    expect(first.replica.conflicts()).to.deep.equal([]);
  });

  /** `b` started with a clock that was an hour ahead, and wrote. Its clock is right again, and `b` is connected to `a`. */
  async function ahead(): Promise<{ readonly scheduler: Scheduler; readonly a: TestReplica; readonly b: TestReplica }> {
    const { scheduler, a, b: before, wire } = await pair();
    await before.replica.write([{ key: "kept", value: 0 }]);
    await scheduler.runUntil(scheduler.now + 1_000);
    wire.cut();
    const b = before.restart(before.records, {}, hour);
    for (const key of ["ahead/1", "ahead/2"])
      expect(await afterConfirmation(scheduler, put(b, key))).to.equal("written");
    expect(await afterConfirmation(scheduler, refusalOf(b.replica.write([{ key: "kept", value: null }])))).to.equal(
      "written",
    );
    b.offset = 0;
    connect(a, b);
    await scheduler.runUntil(scheduler.now + 3_000);
    expect(a.replica.get("ahead/1")).to.equal(undefined);
    return { scheduler, a, b };
  }
});

/** Awaits a first write, which waits a second until the members have confirmed its origin. */
async function afterConfirmation<Value>(scheduler: Scheduler, work: Promise<Value>): Promise<Value> {
  await scheduler.runUntil(scheduler.now + 1_500);
  return work;
}
