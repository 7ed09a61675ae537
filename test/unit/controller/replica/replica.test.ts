import { expect } from "chai";
import { encodePage } from "#crdt/page.ts";
import { newOriginGeneration } from "#controller/replica/origin-generation.ts";
import { authKeyOf } from "#controller/replica/registered-controllers.ts";
import type { PeerMessage } from "#controller/replica/messages.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import type { Register } from "#crdt/register.ts";
import { connect, greet, pair, refusalOf, TestReplica, three } from "#support/replica.ts";
import { Scheduler } from "../../../sim/scheduler.ts";

/** The last part of a pull's answer from a peer that holds everything up to this vector. */
function endOf(upto: unknown): unknown {
  return { upto, hlc: "0".repeat(16) };
}

/** The records; those that wrote the key have no registers any more. */
function without(lost: string, records: readonly JournalRecord[]): readonly JournalRecord[] {
  return records.map((record) =>
    record.t === "apply" && record.page.registers.some(([key]) => key === lost)
      ? { ...record, page: { ...record.page, registers: [] } }
      : record,
  );
}

function softOf({ replica }: TestReplica): readonly string[] {
  return [...new Set(replica.softKeys())].flatMap((key) =>
    Array.from(replica.softValues(key), ({ sender, value }) => `${key} ${sender} ${JSON.stringify(value)}`),
  );
}

describe("a replica", () => {
  it("acknowledges a write when it is durable, and has it after a restart from journal or snapshot", async () => {
    const first = new TestReplica(new Scheduler(), "a");
    const { o, s } = await first.replica.write([{ key: "k", value: { a: 1 } }]);
    expect(first.replica.get("k")).to.include({ o, s, text: '{"a":1}' });
    expect(first.restart().replica.get("k")?.text).to.equal('{"a":1}');
    const fromSnapshot = first.restart(first.state.snapshot());
    expect(fromSnapshot.replica.get("k")?.text).to.equal('{"a":1}');
    expect(fromSnapshot.replica.status().vv).to.deep.equal(first.replica.status().vv);
  });

  it("refuses a write whose ifMatch is not the present version (409)", async () => {
    const { replica } = new TestReplica(new Scheduler(), "a");
    const dot = await replica.write([{ key: "k", value: 1, ifMatch: null }]);
    expect(await refusalOf(replica.write([{ key: "k", value: 2, ifMatch: null }]))).to.equal("CONFLICT 409");
    const [one, two] = [1, 2].map((value) => refusalOf(replica.write([{ key: "k", value, ifMatch: dot }])));
    expect([await one, await two]).to.deep.equal(["written", "CONFLICT 409"]);
  });

  it("refuses changes of grow-only keys, and values, keys and transactions that are too large", async () => {
    const { replica } = new TestReplica(new Scheduler(), "a");
    await replica.write([{ key: "grow/x", value: 1 }]);
    expect(await refusalOf(replica.write([{ key: "grow/x", value: 2 }]))).to.equal("CONFLICT 409");
    expect(await refusalOf(replica.write([{ key: "grow/x", value: null }]))).to.equal("CONFLICT 409");
    expect(await refusalOf(replica.write([{ key: "k", value: "x".repeat(70_000) }]))).to.equal("TOO_LARGE 413");
    expect(await refusalOf(replica.write([{ key: "é".repeat(130), value: 1 }]))).to.equal("TOO_LARGE 413");
    const many = Array.from({ length: 501 }, (_, index) => ({ key: `k${index}`, value: 1 }));
    expect(await refusalOf(replica.write(many))).to.equal("TOO_LARGE 413");
    const twice = [1, 2].map((value) => ({ key: "k", value }));
    expect(await refusalOf(replica.write(twice))).to.equal("CONFLICT 409");
  });

  it("F-6: answers 507 while the disk is full, and recovers when it is not", async () => {
    const node = new TestReplica(new Scheduler(), "a");
    node.isFull = true;
    expect(await refusalOf(node.replica.write([{ key: "k", value: 1 }]))).to.equal("FULL 507");
    expect(node.alarms()).to.deep.equal(["STORAGE_FULL journal"]);
    node.isFull = false;
    expect(await refusalOf(node.replica.write([{ key: "k", value: 1 }]))).to.equal("written");
    expect(node.alarms()).to.deep.equal([]);
  });

  it("notifies watchers of changed keys after the change", async () => {
    const { replica } = new TestReplica(new Scheduler(), "a");
    const seen: unknown[] = [];
    const stop = replica.watch((keys) => seen.push([keys, replica.get("k")?.text]));
    await replica.write([{ key: "k", value: 1 }]);
    stop();
    await replica.write([{ key: "k", value: 2 }]);
    expect(seen).to.deep.equal([[["k"], "1"]]);
  });

  it("lists live keys by prefix, in order", async () => {
    const { replica } = new TestReplica(new Scheduler(), "a");
    await replica.write(["b/2", "a/1", "b/1", "b/3", "c"].map((key) => ({ key, value: key })));
    await replica.write([{ key: "b/3", value: null }]);
    expect(Array.from(replica.entries("b/"), ([key]) => key)).to.deep.equal(["b/1", "b/2"]);
    expect(replica.status().tombstones).to.equal(1);
  });
});

describe("a restarted replica", () => {
  /** A pair whose `b` was restarted without a connection while `a` continued. */
  async function restartAlone(): Promise<{ scheduler: Scheduler; a: TestReplica; b: TestReplica }> {
    const { scheduler, a, b: former, wire } = await pair();
    wire.cut();
    return { scheduler, a, b: former.restart() };
  }

  it("refuses writes until a member has accepted it", async () => {
    const { scheduler, a, b } = await restartAlone();
    await scheduler.runUntil(scheduler.now + 3_000);
    expect(b.replica.status()).to.include({ ready: true, catchingUp: false });
    expect(b.replica.isUnheard()).to.equal(true);
    const wire = connect(b, a);
    await scheduler.runUntil(scheduler.now + 100);
    expect(b.replica.isUnheard()).to.equal(false);
    wire.cut();
    expect(b.replica.isUnheard()).to.equal(false);
  });

  it("writes if it is the only member, or an operator declared that no other is left", async () => {
    const sole = new TestReplica(new Scheduler(), "a");
    await sole.register("a");
    const again = sole.restart();
    expect(again.replica.isUnheard()).to.equal(false);
    await again.register("b");
    expect(again.restart().replica.isUnheard(), "b never ran").to.equal(false);
    const { scheduler, b, a } = await restartAlone();
    const declared = [...b.records, newOriginGeneration("b", () => "00000001", true)];
    const restored = b.restart(declared);
    for (const recovered of [declared, [...restored.state.snapshot()]])
      expect(new TestReplica(scheduler, "b", { recovered }).replica.isUnheard()).to.equal(false);
    connect(restored, a);
    await scheduler.runUntil(scheduler.now + 500);
    expect(restored.restart().replica.isUnheard()).to.equal(true);
  });

  it("raises TURNED_OUT with the remedy if members revoked its key, until a member accepts it", async () => {
    const { scheduler, a, b } = await pair();
    const c = new TestReplica(scheduler, "c", { start: "join" });
    await a.register("a", "b", "c");
    const wire = connect(c, a);
    await scheduler.runUntil(scheduler.now + 500);
    const refusal = { by: "peer", code: "KEY_REVOKED", message: "the key of controller c was revoked" } as const;
    c.replica.dialFailed({ id: "b" }, refusal);
    expect(c.replica.turnedOut(), "another member accepts it").to.equal(undefined);
    wire.cut();
    c.replica.dialFailed({ id: "d" }, refusal);
    expect(c.replica.turnedOut(), "d is no member").not.to.contain("d answers");
    c.replica.dialFailed({ id: "b" }, refusal);
    const alarm = c.replica.status().alarms.find(({ code: kind }) => kind === "TURNED_OUT");
    expect(alarm?.message).to.contain("kcore controller join --fresh");
    await scheduler.runUntil(scheduler.now + 120_000);
    expect(c.replica.turnedOut()).to.contain("b answers").and.to.contain("KEY_REVOKED");
    const again = connect(c, b);
    await scheduler.runUntil(scheduler.now + 500);
    again.cut();
    expect(c.replica.turnedOut()).to.equal(undefined);
    expect(c.alarms()).not.to.include("TURNED_OUT c");
  });

  for (const code of ["CONTROLLER_UNKNOWN", "KEY_UNREGISTERED", "NOT_REGISTERED"])
    it(`continues to serve if a member does not know it (${code}), as after the restore of an older backup`, async () => {
      const { a, wire } = await pair();
      wire.cut();
      a.replica.dialFailed({ id: "b" }, { by: "peer", code, message: "controller a is not registered" });
      expect([a.replica.turnedOut(), a.alarms()]).to.deep.equal([undefined, ["REFUSED b"]]);
      const [alarm] = a.replica.status().alarms;
      expect(alarm?.message).to.match(
        /if b was restored from an older backup.* join --fresh.* if this one was removed/i,
      );
    });
});

describe("two replicas", () => {
  it("push a write in half a round trip", async () => {
    const { scheduler, a, b } = await pair();
    await a.replica.write([{ key: "k", value: 1 }]);
    await scheduler.runUntil(scheduler.now + 2);
    expect(b.replica.get("k")?.text).to.equal("1");
  });

  it("refuse writes before they have caught up with their sponsor", async () => {
    const scheduler = new Scheduler();
    const b = new TestReplica(scheduler, "b", { start: "join" });
    expect(await refusalOf(b.replica.write([{ key: "k", value: 1 }]))).to.equal("NOT_READY 503");
    const a = new TestReplica(scheduler, "a");
    await a.register("a", "b");
    connect(b, a);
    await scheduler.runUntil(100);
    expect(b.replica.status().ready).to.equal(true);
    expect(await refusalOf(b.replica.write([{ key: "k", value: 1 }]))).to.equal("written");
  });

  it("refuse a peer that is not registered, of another cluster, or the same controller", async () => {
    for (const [id, cluster, code] of [
      ["x", "test", "NOT_REGISTERED"],
      ["b", "other", "CLUSTER_DIFFERS"],
      ["a", "test", "SAME_CONTROLLER"],
    ] as const) {
      const scheduler = new Scheduler();
      const a = new TestReplica(scheduler, "a");
      await a.register("a", "b");
      const wire = connect(new TestReplica(scheduler, id, { start: "join", cluster }), a);
      await scheduler.runUntil(50);
      const refusals = wire.sent[1].filter((message) => message.t === "refuse");
      expect(refusals.map((message) => (message as { code: string }).code)).to.deep.equal([code]);
    }
  });

  it("F-8: are read-only while their clock is off by more than 5 s", async () => {
    const { scheduler, a, b } = await pair();
    const c = new TestReplica(scheduler, "c", { start: "join" });
    await a.register("a", "b", "c");
    connect(a, c);
    connect(b, c);
    await scheduler.runUntil(scheduler.now + 3_000);
    c.offset = 20_000;
    expect(await refusalOf(c.replica.write([{ key: "k", value: 1 }]))).to.equal("FENCED 503");
    expect(await refusalOf(a.replica.write([{ key: "k", value: 1 }]))).to.equal("written");
    c.offset = 0;
    expect(await refusalOf(c.replica.write([{ key: "k", value: 2 }]))).to.equal("written");
  });

  it("raise an alarm at two contents of one transaction, and refuse its sender", async () => {
    const { scheduler, a, b, c } = await three();
    connect(a, b);
    connect(a, c);
    const wire = connect(b, c);
    await scheduler.runUntil(100);
    await b.replica.write([{ key: "k", value: "true" }]);
    await scheduler.runUntil(110);
    const push = wire.sent[0].findLast((message) => message.t === "push") as Extract<PeerMessage, { t: "push" }>;
    const [row] = push.page.registers;
    const forged = { ...push, page: { ...push.page, registers: [[row?.[0], '"forged"', ...(row ?? []).slice(2)]] } };
    const closings: string[] = [];
    const close = (why: string): void => void closings.push(why);
    const hello = wire.sent[0].find(({ t }) => t === "hello");
    greet(c, hello, { close }).received(forged);
    expect(c.alarms().filter((alarm) => alarm.startsWith("EQUIVOCATION"))).to.have.length(1);
    expect(c.replica.get("k")?.text).to.equal('"true"');
    expect(closings).to.deep.equal(["EQUIVOCATION"]);
    greet(c, hello, { close });
    expect(closings).to.deep.equal(["EQUIVOCATION", "EQUIVOCATION"]);
  });

  it("S-24: refuse transactions of another controller's origin, or beyond the sender's vector", async () => {
    const { scheduler, a, wire } = await pair();
    const forge = (message: unknown): string => {
      let closed = "";
      const close = (why: string): void => void (closed = why);
      let asked: { sync: number } | undefined;
      const send = (sent: PeerMessage): void => void (sent.t === "pull" && (asked = sent));
      const hello = wire.sent[1].find(({ t }) => t === "hello");
      const events = greet(a, hello, { send, close });
      events.received({ ...(message as object), ...(asked ? { sync: asked.sync } : {}) });
      return closed;
    };
    await scheduler.runUntil(scheduler.now + 3_000);
    const page = (o: string, key = "forged", s = 1): unknown =>
      encodePage([{ key, text: "1", ms: 1.7e12, c: 0, o, s, x: { origins: [], seqs: [] } }]);
    const push = (origin: string, key?: string): unknown => ({
      t: "push",
      page: page(origin, key),
      origin,
      from: 0,
      upto: 1,
    });
    const [own = ""] = Object.keys(a.replica.status().vv);
    for (const origin of ["c#1", own]) expect(forge(push(origin))).to.equal("MALFORMED");
    expect(forge({ t: "push", page: page("b#2", "forged", 2), origin: "b#2", from: 0, upto: 1 })).to.equal("MALFORMED");
    expect(forge({ t: "page", index: 0, full: false, page: page("b#1"), end: endOf([]) })).to.equal("MALFORMED");
    // The sender's own origin is accepted.
    expect(forge(push("b#2", "own"))).to.equal("");
    await scheduler.runUntil(scheduler.now + 1_000);
    expect(a.replica.get("forged")).to.equal(undefined);
    expect(a.replica.get("own")).to.include({ text: "1" });
  });

  it("pull from a peer that pushes a write older than a collected tombstone", async () => {
    const { scheduler, a, b, wire } = await pair();
    await a.replica.write([{ key: "k", value: 1 }]);
    await scheduler.runUntil(scheduler.now + 100);
    await a.replica.write([{ key: "k", value: null }]);
    await scheduler.runUntil(scheduler.now + 80_000);
    expect(a.replica.status().tombstones).to.equal(0);
    wire.cut();
    b.replica.stop();
    // A restored b wrote k under a new origin; since then a third controller has sent b the deletion and all other writes.
    const sent: PeerMessage[] = [];
    const send = (message: PeerMessage): void => void sent.push(message);
    const hello = wire.sent[1].find((message) => message.t === "hello");
    const vv = [...Object.entries(a.replica.status().vv), ["b#1", 1]];
    const events = greet(a, { ...hello, ready: true, vv }, { send });
    const page = { origins: ["b#1"], contexts: [[]], registers: [["k", "2", 1_700_000_000_050, 0, 0, 1, 0]] };
    const [first] = sent.filter((message) => message.t === "pull");
    const answer = { t: "page", sync: first?.sync, index: 0, full: false };
    events.received({ ...answer, page: { origins: [], contexts: [], registers: [] }, end: endOf(vv.slice(0, -1)) });
    await scheduler.runUntil(scheduler.now + 1);
    events.received({ t: "push", page, origin: "b#1", from: 0, upto: 1 });
    await scheduler.runUntil(scheduler.now + 1);
    expect(a.replica.get("k")).to.equal(undefined);
    expect(sent.filter(({ t }) => t === "pull").length).to.equal(2);
    events.closed();
  });

  it("compare ifMatch with the version that will win, also if that is still being journaled", async () => {
    const { scheduler, a, b } = await pair();
    // When b writes, a's write is queued for b's journal but not durable; b stamps its own write later.
    a.offset = 400;
    b.hold();
    await a.replica.write([{ key: "k", value: "a" }]);
    await scheduler.runUntil(scheduler.now + 10);
    const writing = b.replica.write([{ key: "k", value: "b" }]);
    await scheduler.runUntil(scheduler.now);
    await b.release(1);
    const present = b.replica.get("k");
    expect(present?.text).to.equal('"a"');
    const next = refusalOf(b.replica.write([{ key: "k", value: "next", ifMatch: present as Register }]));
    await b.release();
    const own = await writing;
    expect(await next).to.equal("written");
    expect(await refusalOf(b.replica.write([{ key: "k", value: "other", ifMatch: own }]))).to.equal("CONFLICT 409");
  });

  it("stamp no write below one that became durable during a merge", async () => {
    const { scheduler, a, b, wire } = await pair();
    const backup = [...b.records];
    for (const key of ["x", "y", "z"]) await b.replica.write([{ key, value: key }]);
    await scheduler.runUntil(scheduler.now + 10);
    wire.cut();
    // A restored replica waits for the writes that it lost, and holds its first write back until then.
    const old = b.restart(backup, { tuning: { slice: 1 } });
    const own = old.replica.write([{ key: "own", value: 1 }]);
    old.hold();
    a.offset = 400;
    connect(a, old);
    await scheduler.runUntil(scheduler.now + 50);
    await a.replica.write([{ key: "late", value: 1 }]);
    await scheduler.runUntil(scheduler.now + 50);
    await old.release();
    await scheduler.runUntil(scheduler.now + 50);
    await own;
    const [mine, late] = ["own", "late"].map((key) => old.replica.get(key)?.ms ?? 0) as [number, number];
    expect(mine).to.be.greaterThanOrEqual(late);
    expect(late).to.be.greaterThan(0);
  });

  it("F-26: take a new origin if a controller that joined later holds more of their writes", async () => {
    const { scheduler, a, b, wire } = await pair();
    const backup = [...a.records];
    await a.register("c");
    const c = new TestReplica(scheduler, "c", { start: "join" });
    connect(a, c);
    wire.cut();
    await scheduler.runUntil(scheduler.now + 500);
    const { origin } = a.replica.status();
    b.replica.stop();
    const old = a.restart(backup);
    expect(old.replica.status().origin).to.equal(origin);
    connect(c, old);
    await scheduler.runUntil(scheduler.now + 50);
    expect(old.replica.status().origin).not.to.equal(origin);
  });

  it("F-26: take a new origin if a pull brings more of their transactions than the greeting named", async () => {
    const { scheduler, a, wire } = await pair();
    wire.cut();
    const old = a.restart();
    const { origin, vv } = old.replica.status();
    const end = endOf(Object.entries({ ...vv, [origin]: (vv[origin] ?? 0) + 2 }));
    const page = { origins: [], contexts: [], registers: [] };
    const send = (message: PeerMessage): void => {
      if (message.t !== "pull") return;
      const answer = { t: "page", sync: message.sync, index: 0, full: false, page, end };
      scheduler.after(1, () => events.received(answer));
    };
    const events = greet(old, { ...wire.sent[1][0], ready: true, vv: Object.entries(vv) }, { send });
    await scheduler.runUntil(scheduler.now + 100);
    const { o } = await old.replica.write([{ key: "k", value: 1 }]);
    expect([o === origin, old.replica.get("k")?.text]).to.deep.equal([false, "1"]);
  });

  it("F-26: take a new origin if a peer is still journaling more of their transactions than they know", async () => {
    const { scheduler, a, wire } = await pair();
    wire.cut();
    const old = a.restart();
    const { origin, vv } = old.replica.status();
    const writing = old.replica.write([{ key: "k", value: 1 }]);
    const soon = [[origin, (vv[origin] ?? 0) + 1]];
    const events = greet(old, { ...wire.sent[1][0], ready: true, vv: Object.entries(vv), soon });
    await scheduler.runUntil(scheduler.now + 40_000);
    expect((await writing).o).not.to.equal(origin);
    events.closed();
  });

  it("F-26: write under the new origin after a restore", async () => {
    const { scheduler, a } = await pair();
    const backup = [...a.records];
    const { origin } = await a.replica.write([{ key: "k", value: 1 }]).then(() => a.replica.status());
    const old = a.restart([...backup, newOriginGeneration("a", () => "0123abcd", true)]);
    const writing = old.replica.write([{ key: "k", value: 2 }]);
    await scheduler.runUntil(scheduler.now + 1_500);
    const { o, s } = await writing;
    expect(o).not.to.equal(origin);
    expect([o.startsWith("a#"), s]).to.deep.equal([true, 1]);
  });

  it("stamp whole milliseconds if the clock gives fractions", async () => {
    const scheduler = new Scheduler();
    const a = new TestReplica(scheduler, "a", {
      clock: { wall: () => 1_700_000_000_000.75, mono: () => scheduler.now },
    });
    expect((await a.replica.write([{ key: "k", value: 1 }])).hlc).to.match(/^[0-9a-f]{16}$/);
    expect(a.replica.get("k")?.ms).to.equal(1_700_000_000_000);
  });

  it("hand over all writes before a leaving controller's registration is removed", async () => {
    const { scheduler, a, b, wire } = await pair();
    wire.isHeld = true;
    await b.replica.write([{ key: "last", value: 1 }]);
    let isGone = false;
    const leaving = b.replica.leave().then(() => (isGone = true));
    await scheduler.runUntil(scheduler.now + 1_000);
    expect(isGone).to.equal(false);
    wire.isHeld = false;
    await scheduler.runUntil(scheduler.now + 20_000);
    await leaving;
    expect([a.replica.get("last")?.text, a.replica.get(authKeyOf("b"))]).to.deep.equal(["1", undefined]);
    expect(await refusalOf(b.replica.write([{ key: "k", value: 1 }]))).to.equal("NOT_READY 503");
  });

  it("share soft state, keep its newest value, and do not journal it", async () => {
    const { scheduler, a, b } = await pair();
    a.replica.shareSoft("node/n/seen", { boot: 1, seq: 5 }, "late", 0);
    a.replica.shareSoft("node/n/seen", { boot: 1, seq: 4 }, "early", 0);
    await scheduler.runUntil(scheduler.now + 5);
    expect(softOf(b)).to.deep.equal(['node/n/seen a "late"']);
    expect(b.records.some((record) => JSON.stringify(record).includes("late"))).to.equal(false);
  });

  it("accept soft state only from its own controller, and drop it with the controller's registration", async () => {
    const { scheduler, a, b, wire } = await pair();
    a.replica.shareSoft("live/n", { boot: 1, seq: 1 }, "from a", 0);
    wire.cut();
    const events = greet(a, { ...wire.sent[1][0], ready: true });
    const say = (key: string, text: string, boot: number): void =>
      events.received({ t: "soft", entries: [{ key, boot, seq: 1, text }] });
    const highest = Number.MAX_SAFE_INTEGER;
    say("live/n/a", '"forged"', highest);
    say("live/n/c", '"forged"', highest);
    say("live/n", '"forged"', highest);
    say("live/n/b", "no JSON", 1);
    expect(softOf(a)).to.deep.equal(['live/n a "from a"']);
    say("live/n/b", '"from b"', highest);
    // After a restart, `boot` may be lower: the clock may have been set back.
    say("live/n/b", '"from b again"', 5);
    expect([softOf(a), softOf(b)]).to.deep.equal([['live/n a "from a"', 'live/n b "from b again"'], []]);
    await a.replica.write([{ key: authKeyOf("b"), value: null }]);
    await scheduler.runUntil(scheduler.now + 100);
    expect(softOf(a)).to.deep.equal(['live/n a "from a"']);
  });

  it("detect different registers for the same transactions, raise an alarm, and lose no writes during the repair", async () => {
    const { scheduler, a, b, wire } = await pair({ collectEvery: 10 });
    for (const key of ["k", "other"]) {
      await a.replica.write([{ key, value: 1 }]);
      await scheduler.runUntil(scheduler.now + 100);
    }
    wire.cut();
    // The vector covers the transaction, but its register is missing, as after damage on the disk.
    const bad = b.restart(without("k", b.records));
    const slow = connect(a, bad, 10);
    const isAsked = (): boolean => slow.sent[1].some((message) => message.t === "pull" && message.buckets);
    for (const end = scheduler.now + 5_000; !isAsked() && scheduler.now < end;)
      await scheduler.runUntil(scheduler.now + 0.5);
    const asked = scheduler.now;
    await scheduler.runUntil(asked + 5);
    // The write is done before the pull arrives, and its push is lost.
    await a.replica.write([{ key: "other", value: null }]);
    await scheduler.runUntil(asked + 14);
    slow.isHeld = true;
    await scheduler.runUntil(asked + 16);
    slow.isHeld = false;
    await scheduler.runUntil(asked + 30);
    expect(bad.replica.get("k")?.text).to.equal("1");
    expect([...a.alarms(), ...bad.alarms()].join()).to.contain("STATE_DIVERGENCE");
    await scheduler.runUntil(asked + 60_000);
    expect([a, bad].map(({ replica }) => replica.stands("other"))).to.deep.equal([false, false]);
    expect([...a.alarms(), ...bad.alarms()].join()).not.to.contain("STATE_DIVERGENCE");
  });

  it("F-26: raise EQUIVOCATION for a clone that wrote under the same number, agree on one content, and continue under a new origin", async () => {
    const { scheduler, a, b, wire } = await pair();
    wire.cut();
    const clone = new TestReplica(scheduler, "b", { recovered: [...b.records] });
    const { origin } = clone.replica.status();
    const first = connect(a, clone);
    await scheduler.runUntil(scheduler.now + 500);
    first.cut();
    const dots = [await b.replica.write([{ key: "k", value: 1 }]), await clone.replica.write([{ key: "k", value: 2 }])];
    expect(dots.map(({ o, s }) => [o, s])).to.deep.equal([1, 2].map(() => [origin, dots[0]?.s]));
    const second = connect(a, b);
    await scheduler.runUntil(scheduler.now + 500);
    second.cut();
    const third = connect(a, clone);
    await scheduler.runUntil(scheduler.now + 10_000);
    expect([a, clone].map(({ replica }) => replica.get("k")?.text)).to.deep.equal(["2", "2"]);
    expect(a.alarms()).to.include(`EQUIVOCATION ${origin}`);
    await clone.replica.write([{ key: "k", value: 3 }]);
    await scheduler.runUntil(scheduler.now + 500);
    expect(a.replica.get("k")?.text).to.equal("3");
    expect(clone.replica.status().origin).not.to.equal(origin);
    // a refuses the original, which takes another origin and is accepted.
    third.cut();
    clone.replica.stop();
    for (let attempt = 0; attempt < 2; attempt++) {
      connect(a, b);
      await scheduler.runUntil(scheduler.now + 3_000);
    }
    await b.replica.write([{ key: "k", value: 4 }]);
    await scheduler.runUntil(scheduler.now + 500);
    expect([a, b].map(({ replica }) => replica.get("k")?.text)).to.deep.equal(["4", "4"]);
  });

  it("accept neither writes nor connections of a removed controller", async () => {
    const { scheduler, a, b, wire } = await pair();
    wire.isHeld = true;
    await a.replica.write([{ key: authKeyOf("b"), value: null }]);
    await b.replica.write([{ key: "late", value: 1 }]);
    wire.isHeld = false;
    await scheduler.runUntil(scheduler.now + 100);
    const { sent } = connect(b, a);
    await scheduler.runUntil(scheduler.now + 10_000);
    expect(sent[1].at(-1)).to.include({ t: "refuse", code: "NOT_REGISTERED" });
    expect(a.replica.get("late")).to.equal(undefined);
  });

  it("list the keys that a controller wrote last, also after its removal", async () => {
    const { scheduler, a, b } = await pair();
    for (const [key, value] of [
      ["k", 1],
      ["k", 2],
      ["gone", null],
      ["lost", 1],
    ] as const)
      await b.replica.write([{ key, value }]);
    await scheduler.runUntil(scheduler.now + 100);
    await a.replica.write([
      { key: "lost", value: 2 },
      { key: authKeyOf("b"), value: null },
    ]);
    const written = Array.from(a.replica.writtenBy("b"), ({ key, text }) => [key, text]);
    expect(written).to.deep.equal([
      ["k", "2"],
      ["gone", null],
    ]);
  });

  it("delete again at a peer that lost a deletion after its tombstone was collected everywhere else", async () => {
    const { scheduler, a, b, wire } = await pair();
    for (const value of [1, null]) {
      await a.replica.write([{ key: "k", value }]);
      await scheduler.runUntil(scheduler.now + 100);
    }
    await scheduler.runUntil(scheduler.now + 80_000);
    expect(a.replica.status().tombstones).to.equal(0);
    wire.cut();
    const isDeletion = (record: JournalRecord): boolean =>
      record.t === "apply" && record.page.registers.some(([key, text]) => key === "k" && text === null);
    const deletion = b.records.filter(isDeletion);
    const bad = b.restart(
      b.records.map((record) => (deletion.includes(record) ? (without("k", [record])[0] ?? record) : record)),
    );
    expect(bad.replica.get("k")?.text).to.equal("1");
    connect(a, bad);
    await scheduler.runUntil(scheduler.now + 10_000);
    expect([a, bad].map(({ replica }) => replica.get("k"))).to.deep.equal([undefined, undefined]);
    expect(a.replica.status().digest).to.equal(bad.replica.status().digest);
  });

  it("F-2: detect a half-open connection within three pings", async () => {
    const { scheduler, a, wire } = await pair();
    wire.isHeld = true;
    await scheduler.runUntil(scheduler.now + 6_000);
    expect(a.replica.status().peers[0]?.state).not.to.equal("connected");
    expect(a.dialled).to.include("b");
  });
});

describe("a restored or repaired controller", () => {
  const word = (): string => "0123abcd";
  /** The records of `b` after a repair: the write of this key is lost, later writes are salvaged. */
  const repaired = (records: readonly JournalRecord[], lost: string): readonly JournalRecord[] => {
    const at = records.findIndex(
      (record) => record.t === "apply" && record.page.registers.some(([key]) => key === lost),
    );
    const behind = records
      .slice(at + 1)
      .flatMap((record): JournalRecord[] => (record.t === "meta" ? [] : [{ t: "salvaged", page: record.page }]));
    return [...records.slice(0, at), ...behind, newOriginGeneration("b", word)];
  };

  it("answers no requests and refuses writes before it has caught up with another controller", async () => {
    const { scheduler, a, b, wire } = await pair();
    await a.replica.write([{ key: "k", value: 1 }]);
    await scheduler.runUntil(scheduler.now + 10);
    const backup = [...b.records, newOriginGeneration("b", word)];
    await a.replica.write([{ key: "k", value: null }]);
    wire.cut();
    const old = b.restart(backup);
    await scheduler.runUntil(scheduler.now + 100_000);
    expect(old.replica.status()).to.deep.include({ ready: false, catchingUp: true, readOnly: "NOT_READY" });
    connect(a, old);
    await scheduler.runUntil(scheduler.now + 50);
    expect(old.replica.status()).to.deep.include({ ready: true, catchingUp: false, readOnly: undefined });
    expect(old.replica.get("k")).to.equal(undefined);
    expect(old.restart().replica.status().ready).to.equal(true);
  });

  it("serves at once if no other controller is registered, or the operator declared that none is left", async () => {
    const alone = new TestReplica(new Scheduler(), "a");
    await alone.register("a");
    const restored = alone.restart([...alone.records, newOriginGeneration("a", word)]);
    await restored.scheduler.runUntil(1);
    expect(restored.replica.status().ready).to.equal(true);
    const { b } = await pair();
    const declared = b.restart([...b.records, newOriginGeneration("b", word, true)]);
    expect(declared.replica.status().ready).to.equal(true);
  });

  it("pulls its lost writes, keeps salvaged ones, and drops those deleted meanwhile", async () => {
    const { scheduler, a, b, wire } = await pair();
    await b.replica.write([{ key: "gone", value: 1 }]);
    await b.replica.write([{ key: "lost", value: 1 }]);
    await b.replica.write([{ key: "behind", value: 1 }]);
    await scheduler.runUntil(scheduler.now + 10);
    wire.cut();
    await b.replica.write([{ key: "only here", value: 1 }]);
    await a.replica.write([{ key: "behind", value: 2 }]);
    await a.replica.write([{ key: "gone", value: null }]);
    const old = b.restart(repaired(b.records, "lost"));
    expect(old.replica.get("behind")).to.equal(undefined);
    connect(a, old);
    await scheduler.runUntil(scheduler.now + 200);
    for (const { replica } of [a, old])
      expect(["gone", "lost", "behind", "only here"].map((key) => replica.get(key)?.text)).to.deep.equal([
        undefined,
        "1",
        "2",
        "1",
      ]);
    expect(old.replica.status().digest).to.equal(a.replica.status().digest);
    expect(old.replica.status().vv).to.deep.equal(a.replica.status().vv);
    expect([...a.alarms(), ...old.alarms()]).to.deep.equal([]);
  });

  it("stays connected when a refusal of the time of its peer's join arrives late", async () => {
    const { scheduler, a, b } = await pair();
    a.replica.dialFailed(
      { id: "b" },
      { by: "peer", code: "CONTROLLER_JOINING", message: "this controller is joining" },
    );
    await scheduler.runUntil(scheduler.now + 1_000);
    for (const { replica } of [a, b])
      expect(replica.status().peers.map(({ state, refusal }) => [state, refusal])).to.deep.equal([
        ["connected", undefined],
      ]);
  });

  it("does not catch up with another restored controller, which may lack deletions", async () => {
    const { scheduler, a, b, c } = await three();
    const wires = [connect(a, b), connect(a, c), connect(b, c)];
    await scheduler.runUntil(2_000);
    await c.replica.write([{ key: "k", value: 1 }]);
    await scheduler.runUntil(scheduler.now + 2_000);
    const backup = [...b.records];
    await c.replica.write([{ key: "k", value: null }]);
    await scheduler.runUntil(scheduler.now + 2_000);
    const lost = a.records.length;
    await c.replica.write([{ key: "later", value: 1 }]);
    // The tombstone is collected everywhere.
    await scheduler.runUntil(scheduler.now + 100_000);
    expect(c.replica.status().tombstones).to.equal(0);
    for (const wire of wires) wire.cut();
    const restore = (stopped: TestReplica, records: readonly JournalRecord[]): TestReplica =>
      stopped.restart([...records, newOriginGeneration(stopped.id, () => `0000000${stopped.id}`)]);
    const kept = a.records
      .slice(0, lost)
      .filter(
        (record) =>
          !(record.t === "apply" && record.page.registers.some(([key, text]) => key === "k" && text === null)),
      );
    const [a2, b2] = [restore(a, kept), restore(b, backup)];
    connect(a2, b2);
    await scheduler.runUntil(scheduler.now + 5_000);
    for (const { replica } of [a2, b2]) expect(replica.status().catchingUp).to.equal(true);
    connect(a2, c);
    connect(b2, c);
    await scheduler.runUntil(scheduler.now + 30_000);
    for (const { replica } of [a2, b2, c]) {
      expect(replica.status().catchingUp).to.equal(false);
      expect([replica.get("k")?.text ?? null, replica.get("later")?.text]).to.deep.equal([null, "1"]);
    }
  });

  it("continues despite TWO_COPIES if it answers at its own address and a member accepts it", async () => {
    const { scheduler, a, b, c } = await three();
    const wire = connect(a, b);
    connect(a, c);
    await scheduler.runUntil(3_000);
    const [, sent] = wire.sent;
    wire.cut();
    const refuse = async (): Promise<string> => {
      const link = { peer: "b", initiator: false, send: () => undefined, close: () => undefined };
      const events = a.replica.connected(link);
      events.received({ ...(sent[0] as object), boot: "another" } as PeerMessage);
      events.received({ t: "refuse", code: "TWO_COPIES", message: "two processes run as controller a" });
      await scheduler.runUntil(scheduler.now + 1_000);
      return refusalOf(a.replica.write([{ key: "k", value: scheduler.now }]));
    };
    // Nothing has answered at its own address yet.
    expect(await refuse()).to.equal("TWO_COPIES 503");
    await scheduler.runUntil(scheduler.now + 30_000);
    connect(a, a);
    await scheduler.runUntil(scheduler.now + 1_000);
    expect(await refuse()).to.equal("written");
    const { alarms } = a.replica.status();
    expect(alarms.map(({ code, message }) => [code, message.slice(0, 11)])).to.deep.include([
      "TWO_COPIES",
      "b says that",
    ]);
  });

  it("sends in a welcome delayed by TWO_COPIES the times of the greeting's arrival and its own departure", async () => {
    const { scheduler, a, wire } = await pair();
    await scheduler.runUntil(3_000);
    const hello = wire.sent[1][0] as object;
    wire.isHeld = true;
    const sent: PeerMessage[] = [];
    const send = (message: PeerMessage): void => void sent.push(message);
    const events = a.replica.connected({ peer: "b", initiator: false, send, close: () => undefined });
    const before = scheduler.now;
    events.received({ ...hello, boot: "another" });
    await scheduler.runUntil(before + 2_500);
    const welcome = sent.find((message) => message.t === "welcome");
    const [arrived = 0, departed = 0] = welcome?.walls ?? [];
    expect(arrived).to.equal(1_700_000_000_000 + Math.floor(before));
    expect(departed - arrived).to.be.within(300, 2_000);
  });

  it("announces salvaged writes as under way, so that no peer collects a tombstone that they have not seen", async () => {
    const { a, b, wire } = await pair();
    wire.cut();
    for (const key of ["lost", "behind"]) await b.replica.write([{ key, value: 1 }]);
    const { origin, vv } = b.replica.status();
    const { sent } = connect(b.restart(repaired(b.records, "lost")), a);
    expect(sent[0][0]).to.deep.include({ t: "hello", soon: [[origin, vv[origin]]] });
  });

  it("keeps salvaged writes that no peer has through restarts and snapshots, and sends them to its peers", async () => {
    const { scheduler, a, b, wire } = await pair();
    wire.cut();
    for (const key of ["first", "lost", "behind"]) await b.replica.write([{ key, value: key }]);
    const old = b.restart(repaired(b.records, "lost"));
    const again = old.restart([...old.state.snapshot()]);
    expect(again.replica.status().ready).to.equal(false);
    connect(a, again);
    await scheduler.runUntil(scheduler.now + 100);
    expect(a.replica.get("behind")?.text).to.equal('"behind"');
    await again.replica.write([{ key: "new", value: 1 }]);
    await scheduler.runUntil(scheduler.now + 100);
    for (const { replica } of [a, again])
      expect(["first", "lost", "behind", "new"].filter((key) => replica.get(key))).to.deep.equal([
        "first",
        "behind",
        "new",
      ]);
    expect([...a.alarms(), ...again.alarms()]).to.deep.equal([]);
    const last = again.restart();
    expect([last.replica.get("behind")?.text, last.replica.status().ready]).to.deep.equal(['"behind"', true]);
  });
});
