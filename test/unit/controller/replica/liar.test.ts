import { expect } from "chai";
import { newIncarnation } from "#controller/replica/incarnation.ts";
import type { PeerMessage } from "#controller/replica/messages.ts";
import { authKeyOf } from "#controller/replica/registered-controllers.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { encodeStamp, zero } from "#crdt/hlc.ts";
import { connect, TestReplica } from "#support/replica.ts";
import { Scheduler } from "../../../sim/scheduler.ts";

type Pull = Extract<PeerMessage, { t: "pull" }>;
type Row = readonly [key: string, text: string | null, ms: number, c: number, origin: number, seq: number, x: number];

const nothing = { origins: [], contexts: [], registers: [] };
const hlc = encodeStamp(zero);
const liar = "h#1";

/** `a` and `c`, which know each other, and a third member `h`, which the tests play by hand. */
async function world({ offsetOfC = 0 } = {}) {
  const scheduler = new Scheduler();
  const a = new TestReplica(scheduler, "a");
  await a.register("a", "c", "h");
  const c = new TestReplica(scheduler, "c", { start: "join" }, offsetOfC);
  const wire = connect(a, c);
  await scheduler.runUntil(500);
  await a.replica.write([{ key: "a's", value: 1 }]);
  await c.replica.write([{ key: "c's", value: 1 }]);
  await run(scheduler, 1_000);
  return { scheduler, a, c, wire };
}

function run(scheduler: Scheduler, ms: number): Promise<void> {
  return scheduler.runUntil(scheduler.now + ms);
}

/** Speaks to `victim` with the certificate of `h`; answers its pulls. */
function play(victim: TestReplica, answer: (pull: Pull) => readonly unknown[] = () => []) {
  const { scheduler, replica } = victim;
  const closed: string[] = [];
  const events = replica.connected({
    peer: "h",
    initiator: false,
    send: (message) => {
      if (message.t !== "pull" || closed.length > 0) return;
      scheduler.after(1, () => {
        for (const each of answer(message)) events.received({ t: "page", sync: message.sync, ...(each as object) }, 1);
      });
    },
    close: (why) => void closed.push(why),
  });
  const say = (message: object): void => events.received(message, 1);
  const vv = [...Object.entries(replica.status().vv), [liar, 1]];
  say({ t: "hello", cluster: "test", id: "h", origin: liar, boot: "1", proto: [1, 2], ready: true, vv });
  const wall = 1.7e12 + scheduler.now;
  say({ t: "welcome", proto: 2, walls: [wall, wall] });
  return { say, closed, leave: () => events.closed() };
}

/** A full exchange without a register, “due” by the liar's own newest transaction. */
const emptying =
  ({ replica }: TestReplica, floor: readonly (readonly [string, number])[] = [[liar, 9]]) =>
  (): readonly unknown[] => {
    const upto = [...Object.entries(replica.status().vv).filter(([origin]) => origin !== liar), [liar, 9]];
    return [{ index: 0, full: true, page: nothing, end: { upto, hlc, full: { floor, hlc } } }];
  };

const pageOf = (origin: string, rows: readonly Row[]) => ({ origins: [origin], contexts: [[]], registers: rows });

function texts(key: string, ...replicas: readonly TestReplica[]): readonly unknown[] {
  return replicas.map(({ replica }) => replica.get(key)?.text);
}

/** Each holds the same, and says so. */
function expectAgreed(a: TestReplica, c: TestReplica): void {
  const sorted = ({ replica }: TestReplica) =>
    Object.entries(replica.status().vv).toSorted(([one], [other]) => (one < other ? -1 : 1));
  expect(sorted(a)).to.deep.equal(sorted(c));
  expect(a.replica.status().digest).to.equal(c.replica.status().digest);
}

describe("a member that lies", () => {
  it("HF3: empties nobody by a full exchange that its own newest transaction calls for, and is named", async () => {
    const { scheduler, a } = await world();
    play(a, emptying(a));
    await run(scheduler, 40_000);
    expect([texts("a's", a), texts("c's", a)]).to.deep.equal([["1"], ["1"]]);
    expect(a.alarms()).to.include("PUT_BACK h");
    await a.replica.write([{ key: "a's", value: 2 }]);
    expect(texts("a's", a)).to.deep.equal(["2"]);
  });

  it("HF3: nor while the other members cannot be reached, nor by a transaction that it gave to them alone", async () => {
    const { scheduler, a, c, wire } = await world();
    wire.cut();
    const { say, leave } = play(c);
    say({ t: "push", page: pageOf(liar, [["lie", "1", 1.7e12, 0, 0, 1, 0]]), origin: liar, from: 0, upto: 9 });
    await run(scheduler, 100);
    expect(texts("lie", c)).to.deep.equal(["1"]);
    leave();
    await a.replica.write([{ key: "a's", value: "alone" }]);
    play(a, emptying(a));
    await run(scheduler, 60_000);
    expect(texts("a's", a)).to.deep.equal(['"alone"']);
    connect(a, c);
    await run(scheduler, 10_000);
    expect(texts("a's", a, c)).to.deep.equal(['"alone"', '"alone"']);
    expect(texts("lie", a, c)).to.deep.equal(["1", "1"]);
  });

  /** `a`, `c` and `d`; a key is deleted and forgotten by all, and `d` is put back to before that, behind its back. */
  async function putBack() {
    const scheduler = new Scheduler();
    // What was written last is not known by heart, else it would be pushed.
    const tuning = { outboxRegisters: 1 };
    const a = new TestReplica(scheduler, "a", { tuning });
    await a.register("a", "c", "d");
    const [c, d] = ["c", "d"].map((id) => new TestReplica(scheduler, id, { start: "join", tuning })) as [
      TestReplica,
      TestReplica,
    ];
    const wires = [connect(a, c), connect(a, d), connect(c, d)] as const;
    await run(scheduler, 500);
    await a.replica.write([{ key: "deleted", value: 1 }]);
    await run(scheduler, 500);
    const backup: readonly JournalRecord[] = [...d.records];
    await a.replica.write([{ key: "deleted", value: null }]);
    await run(scheduler, 90_000);
    expect(a.replica.status().tombstones).to.equal(0);
    await a.replica.write([{ key: "last", value: 1 }]);
    for (const wire of wires.slice(1)) wire.cut();
    d.replica.stop();
    const again = (...more: readonly JournalRecord[]): TestReplica =>
      new TestReplica(scheduler, "d", { recovered: [...backup, ...more] });
    return { scheduler, a, c, again };
  }

  it("HF3: who was put back unknowingly takes a full exchange when two offer it", async () => {
    const { scheduler, a, c, again } = await putBack();
    const d = again();
    expect(texts("deleted", d)).to.deep.equal(["1"]);
    connect(a, d);
    connect(c, d);
    await run(scheduler, 3_000);
    expect(texts("deleted", a, c, d)).to.deep.equal([undefined, undefined, undefined]);
    expect(d.alarms()).to.deep.equal([]);
  });

  it("HF3: and waits where one alone offers it, until it is told that it was put back", async () => {
    const { scheduler, a, again } = await putBack();
    const unknowing = again();
    const wire = connect(a, unknowing);
    await run(scheduler, 40_000);
    expect(texts("deleted", a, unknowing)).to.deep.equal([undefined, "1"]);
    expect(unknowing.alarms()).to.include("PUT_BACK a");
    wire.cut();
    unknowing.replica.stop();
    const repaired = again(newIncarnation("d", () => "0badcafe"));
    connect(a, repaired);
    await run(scheduler, 3_000);
    expect(texts("deleted", a, repaired)).to.deep.equal([undefined, undefined]);
    expect(repaired.replica.status().ready).to.equal(true);
  });

  it("HF4: keeps nobody from writing by stamps just below what is taken, nor what is written from arriving", async () => {
    // A clock that is a little behind: what `a` stamps above the lie lies further ahead for `c` than it may.
    const { scheduler, a, c } = await world({ offsetOfC: -400 });
    const { say } = play(a);
    let written = 0;
    for (let seq = 1; seq <= 200; seq++) {
      const ms = 1.7e12 + scheduler.now + 9_990;
      say({
        t: "push",
        page: pageOf(liar, [["lie", String(seq), ms, 65_535, 0, seq, 0]]),
        origin: liar,
        from: seq - 1,
        upto: seq,
      });
      await a.replica.write([{ key: "a's", value: seq }]).then(
        () => written++,
        () => undefined,
      );
      await run(scheduler, 50);
    }
    expect(written).to.equal(200);
    expect(a.replica.status().readOnly).to.equal(undefined);
    // Not all of them by now, for the clocks differ; but what is a few seconds old.
    expect(Number(c.replica.get("a's")?.text)).to.be.greaterThan(120);
    await run(scheduler, 2_000);
    expect(texts("a's", a, c)).to.deep.equal(["200", "200"]);
  });

  it("HF6: keeps nobody from writing by a full exchange that has no end", async () => {
    const { scheduler, a } = await world();
    let sync = 0;
    const { say } = play(a, (pull) => {
      ({ sync } = pull);
      return [];
    });
    await run(scheduler, 10);
    let refused = 0;
    for (let index = 0; index < 100; index++) {
      say({ t: "page", sync, index, full: true, page: nothing });
      await run(scheduler, 200);
      await a.replica.write([{ key: "a's", value: index }]).catch(() => refused++);
    }
    expect(refused).to.equal(0);
  });

  it("HF5: what it wrote under one number with two contents is one everywhere, seconds after its removal", async () => {
    const { scheduler, a, c } = await world();
    const ms = 1.7e12 + scheduler.now;
    const rows: readonly Row[] = [
      ["both", '"x"', ms, 0, 0, 1, 0],
      ["one", "1", ms, 0, 0, 1, 0],
    ];
    const others: readonly Row[] = [
      ["both", '"y"', ms, 0, 0, 1, 0],
      ["other", "1", ms, 0, 0, 1, 0],
    ];
    // Both have it before they tell each other.
    play(a).say({ t: "push", page: pageOf(liar, rows), origin: liar, from: 0, upto: 1 });
    play(c).say({ t: "push", page: pageOf(liar, others), origin: liar, from: 0, upto: 1 });
    await run(scheduler, 3_000);
    expect(texts("both", a, c)).to.deep.equal(['"x"', '"y"']);
    await a.replica.write([{ key: authKeyOf("h"), value: null }]);
    await run(scheduler, 10_000);
    expectAgreed(a, c);
    expect(texts("both", a, c)).to.deep.equal(['"y"', '"y"']);
    expect([...a.alarms(), ...c.alarms()]).to.include(`EQUIVOCATION ${liar}`);
    // After a restart too: the same records are judged again.
    const again = new TestReplica(scheduler, "a", { recovered: a.records });
    expect(again.replica.status().digest).to.equal(c.replica.status().digest);
  });

  for (const when of ["while it writes on", "when it is back"])
    it(`HF2: what it forged under the number of one that was away gives way to that one's own word, ${when}`, async () => {
      const { scheduler, a, c, wire } = await world();
      wire.cut();
      const { origin, vv } = c.replica.status();
      const seq = (vv[origin] ?? 0) + 1;
      await c.replica.write([{ key: "c's", value: "true" }]);
      const ms = 1.7e12 + scheduler.now + 9_000;
      // The same key, another one, and one that stands: stamped above all that is written honestly.
      const rows: readonly Row[] = [
        ["c's", '"forged"', ms, 0, 0, seq, 0],
        ["new", '"forged"', ms, 0, 0, seq, 0],
        ["a's", '"forged"', ms, 0, 0, seq, 0],
      ];
      const upto = [...Object.entries(a.replica.status().vv), [origin, seq], [liar, 1]];
      const end = { upto, hlc };
      const { leave } = play(a, () => [{ index: 0, full: false, page: pageOf(origin, rows), end }]);
      await run(scheduler, 20_000);
      expect(texts("c's", a)).to.deep.equal(['"forged"']);
      if (when === "while it writes on") await c.replica.write([{ key: "c's", value: "later" }]);
      await run(scheduler, 10);
      leave();
      await c.replica.write([{ key: authKeyOf("h"), value: null }]);
      connect(a, c);
      await run(scheduler, 10_000);
      expectAgreed(a, c);
      const expected = when === "while it writes on" ? '"later"' : '"true"';
      expect(texts("c's", a, c)).to.deep.equal([expected, expected]);
      expect(texts("new", a, c)).to.deep.equal([undefined, undefined]);
      expect(texts("a's", a, c)).to.deep.equal(["1", "1"]);
      expect(a.replica.status().peers.find(({ id }) => id === "c")?.state).to.equal("connected");
      const again = new TestReplica(scheduler, "a", { recovered: a.records });
      expect(again.replica.status().digest).to.equal(c.replica.status().digest);
    });

  it("HF2: cuts nobody off by handing on other content first under the number that a push is to have", async () => {
    const { scheduler, a, c, wire } = await world();
    const { origin, vv } = c.replica.status();
    const seq = (vv[origin] ?? 0) + 1;
    wire.isHeld = true;
    await c.replica.write([{ key: "c's", value: "true" }]);
    await run(scheduler, 10);
    const held = wire.sent[1].findLast((message) => message.t === "push");
    wire.isHeld = false;
    wire.cut();
    const upto = [...Object.entries(a.replica.status().vv), [origin, seq], [liar, 1]];
    const page = pageOf(origin, [["c's", '"forged"', 1.7e12 + scheduler.now, 0, 0, seq, 0]]);
    play(a, () => [{ index: 0, full: false, page, end: { upto, hlc } }]);
    await run(scheduler, 1_000);
    expect(texts("c's", a)).to.deep.equal(['"forged"']);
    const closed: string[] = [];
    const events = a.replica.connected({
      peer: "c",
      initiator: false,
      send: () => undefined,
      close: (why) => void closed.push(why),
    });
    events.received(wire.sent[1][0], 1);
    events.received({ t: "welcome", proto: 2, walls: [1.7e12 + scheduler.now, 1.7e12 + scheduler.now] }, 1);
    events.received(held, 1);
    await run(scheduler, 10);
    expect(closed).to.deep.equal([]);
    expect(texts("c's", a)).to.deep.equal(['"true"']);
  });
});
