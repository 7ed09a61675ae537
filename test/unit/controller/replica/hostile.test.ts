import { expect } from "chai";
import type { PeerMessage } from "#controller/replica/messages.ts";
import { authKeyOf } from "#controller/replica/registered-controllers.ts";
import { encodeStamp, zero as zeroStamp } from "#crdt/hlc.ts";
import { connect, greet, pair, TestReplica, three } from "#support/replica.ts";
import { Random } from "#support/random.ts";

const junk: readonly unknown[] = [
  null,
  -1,
  0.5,
  2 ** 53,
  "",
  "x",
  "__proto__",
  [],
  {},
  [[]],
  true,
  "\u0000".repeat(300),
  [1, 2],
];

/** The value with one random leaf or branch replaced. */
function corrupt(value: unknown, random: Random): unknown {
  if (random.chance(0.15) || typeof value !== "object" || value === null) return random.pick(junk);
  if (Array.isArray(value)) {
    if (value.length === 0) return random.pick(junk);
    return value.with(random.below(value.length), corrupt(random.pick(value), random)) as unknown;
  }
  const [name, inner] = random.pick(Object.entries(value as Record<string, unknown>));
  return { ...value, [name]: corrupt(inner, random) };
}

/** `a` holds `own`, three registers of `grow/` and both memberships; a hostile `b` answers its first pull. */
async function answerPull(answer: (pull: Extract<PeerMessage, { t: "pull" }>, a: TestReplica) => unknown) {
  const { scheduler, a, wire } = await pair();
  await a.replica.write([
    { key: "own", value: 1 },
    { key: "grow/only", value: 1 },
    { key: "grow/until", value: { notAfter: "2099-01-01T00:00:00Z" } },
    { key: "grow/ended", value: { notAfter: "2020-01-01T00:00:00Z" } },
  ]);
  await scheduler.runUntil(scheduler.now + 3_000);
  wire.cut();
  const closed: string[] = [];
  const events = greet(
    a,
    { ...wire.sent[1][0], ready: true },
    {
      send: (message) => {
        if (message.t === "pull" && closed.length === 0) scheduler.after(1, () => events.received(answer(message, a)));
      },
      close: (why) => void closed.push(why),
    },
  );
  await scheduler.runUntil(scheduler.now + 1_000);
  events.closed();
  return { scheduler, a, closed };
}

const nothing = { origins: [], contexts: [], registers: [] };
const zero = encodeStamp(zeroStamp);

/** A full exchange without a register, which deletes all registers that the vector and `more` cover, if they may be deleted. */
const emptying =
  (floor: readonly (readonly [string, number])[], more = floor) =>
  ({ sync }: { readonly sync: number }, { replica }: TestReplica): unknown => ({
    t: "page",
    sync,
    index: 0,
    full: true,
    page: nothing,
    end: { upto: [...Object.entries(replica.status().vv), ...more], hlc: zero, full: { floor, hlc: zero } },
  });

describe("an honest peer", () => {
  it("may send writes of a former member, and of a member whose registration comes with them", async () => {
    const { scheduler, a, b, c } = await three();
    connect(a, c);
    await scheduler.runUntil(500);
    await c.replica.write([{ key: "c's", value: 1 }]);
    await scheduler.runUntil(1_000);
    await a.replica.write([{ key: authKeyOf("c"), value: null }]);
    connect(a, b);
    await scheduler.runUntil(200_000);
    expect(b.replica.get("c's")?.text).to.equal("1");
    await a.replica.write([{ key: authKeyOf("d"), value: { spki: "d" } }]);
    const d = new TestReplica(scheduler, "d", { start: "join" });
    connect(a, d);
    await scheduler.runUntil(201_000);
    await d.replica.write([{ key: "d's", value: 1 }]);
    await scheduler.runUntil(202_000);
    expect([a, b, d].map(({ replica }) => replica.get("d's")?.text)).to.deep.equal(["1", "1", "1"]);
    expect([a, b, d].flatMap((each) => each.alarms()).filter((alarm) => alarm.startsWith("PEER"))).to.deep.equal([]);
  });
});

describe("a hostile peer", () => {
  it("cannot delete grow-only registers or members by a full exchange with an invented floor", async () => {
    const floor = [[`b#${"f".repeat(8)}`, 7] as const];
    const { a } = await answerPull(emptying(floor));
    const lasting = ["grow/only", "grow/until", authKeyOf("a"), authKeyOf("b")];
    expect(lasting.filter((key) => !a.replica.get(key))).to.deep.equal([]);
    expect(a.replica.get("grow/ended"), "its notAfter is over").to.equal(undefined);
    // A restart judges the same records again.
    const again = a.restart();
    expect(lasting.filter((key) => !again.replica.get(key))).to.deep.equal([]);
  });

  it("cannot send writes of an unregistered origin by a pull", async () => {
    const { a, closed } = await answerPull(({ sync }, { replica }) => {
      const page = { origins: ["ghost#1"], contexts: [[]], registers: [["forged", "1", 1.7e12, 0, 0, 1, 0]] };
      const upto = [...Object.entries(replica.status().vv), ["ghost#1", 1]];
      return { t: "page", sync, index: 0, full: false, page, end: { upto, hlc: zero } };
    });
    expect(a.replica.get("forged")).to.equal(undefined);
    expect(Object.keys(a.replica.status().vv)).not.to.include("ghost#1");
    expect(closed).to.deep.equal(["MALFORMED"]);
    expect(a.alarms()).to.include("PEER_MALFORMED b");
  });

  type Vector = readonly (readonly [string, number])[];
  const refusesVector = (claim: (vv: Vector) => Vector) => async (): Promise<void> => {
    const { a, closed } = await answerPull(({ sync }, { replica }) => {
      const upto = claim(Object.entries(replica.status().vv));
      return { t: "page", sync, index: 0, full: false, page: nothing, end: { upto, hlc: zero } };
    });
    const seqs = Object.values(a.replica.status().vv);
    expect([seqs.length < 300, seqs.every((seq) => seq < 10), closed]).to.deep.equal([true, true, ["MALFORMED"]]);
    expect(a.alarms()).to.include("PEER_MALFORMED b");
  };
  const invented = (name: (index: number) => string) => (vv: Vector) => [
    ...vv,
    ...Array.from({ length: 90_000 }, (_, index) => [name(index), 1] as const),
  ];
  it("cannot fill a version vector with origins of its own", refusesVector(invented((index) => `b#${index}`)));
  it(
    "cannot fill a version vector with origins of unregistered controllers",
    refusesVector(invented((index) => `ghost${index}#1`)),
  );
  it("cannot fill the floor of collected tombstones with origins that its vector lacks", async () => {
    const { a, closed } = await answerPull(emptying(invented((index) => `ghost${index}#1`)([]), []));
    expect(a.state.floor.vector.size).to.equal(0);
    expect(closed).to.deep.equal(["MALFORMED"]);
  });
  it(
    "cannot raise a version vector by claiming more of the controller's own transactions than exist",
    refusesVector((vv) => vv.map(([origin, seq]) => [origin, seq + 10 ** 9])),
  );

  it("cannot stop writes by claiming more of the controller's own transactions; the controller takes at most three origins", async () => {
    const { scheduler, a, wire } = await pair();
    await a.replica.write([{ key: "own", value: 1 }]);
    wire.cut();
    const events = greet(a, { ...wire.sent[1][0], ready: true });
    const origins = new Set<string>();
    for (let index = 0; index < 50; index++) {
      events.received({ t: "have", ready: true, vv: [[a.replica.status().origin, 10 ** 9]] });
      await a.replica.write([{ key: "own", value: index }]);
      origins.add(a.replica.status().origin);
      await scheduler.runUntil(scheduler.now + 100);
    }
    expect(a.replica.get("own")?.text).to.equal("49");
    expect(origins).to.have.property("size", 3);
    expect(a.alarms()).to.include("EQUIVOCATION b");
    events.closed();
  });

  it("cannot stop writes by a full exchange without end", async () => {
    const { scheduler, a, wire } = await pair();
    wire.cut();
    let sync = 0;
    const send = (message: PeerMessage): void => void (message.t === "pull" && ({ sync } = message));
    const events = greet(a, { ...wire.sent[1][0], ready: true, vv: [["b#9", 9]] }, { send });
    for (let index = 0; index < 100; index++) {
      events.received({ t: "page", sync, index, full: true, page: nothing });
      await a.replica.write([{ key: "own", value: index }]);
      await scheduler.runUntil(scheduler.now + 100);
    }
    expect(a.replica.get("own")?.text).to.equal("99");
    events.closed();
  });

  it("cannot stop writes by stamps just below the permitted skew", async () => {
    const { scheduler, a, wire } = await pair();
    wire.cut();
    const events = greet(a, { ...wire.sent[1][0], ready: true, origin: "b#2" });
    for (let seq = 1; seq <= 50; seq++) {
      const ms = 1.7e12 + scheduler.now + 9_990;
      const page = { origins: ["b#2"], contexts: [[]], registers: [["late", String(seq), ms, 65_535, 0, seq, 0]] };
      events.received({ t: "push", page, origin: "b#2", from: seq - 1, upto: seq });
      await scheduler.runUntil(scheduler.now + 1);
      await a.replica.write([{ key: "own", value: seq }]);
      await scheduler.runUntil(scheduler.now + 50);
    }
    expect([a.replica.get("late")?.text, a.replica.get("own")?.text]).to.deep.equal(["50", "50"]);
    events.closed();
  });

  it("S-24: cannot make a replica throw, lose registers or stop by corrupted messages", async () => {
    const { scheduler, a, b, wire } = await pair();
    await b.replica.write([{ key: "k", value: 1 }]);
    await a.replica.write([{ key: "own", value: 1 }]);
    await scheduler.runUntil(scheduler.now + 3_000);
    wire.cut();
    const good = wire.sent[1];
    const random = new Random(7);
    const [hello] = good;
    for (let round = 0; round < 400; round++) {
      let sync = 0;
      const events = greet(a, hello, { send: (message) => void (message.t === "pull" && (sync = message.sync)) });
      const message = corrupt(random.pick(good), random);
      events.received(typeof message === "object" ? { ...message, ...(sync > 0 ? { sync } : {}) } : message);
      events.closed();
    }
    expect(a.replica.get("own")?.text).to.equal("1");
    await scheduler.runUntil(scheduler.now + 40_000);
    await a.replica.write([{ key: "own", value: 2 }]);
    expect(new TestReplica(scheduler, "a", { recovered: a.records }).replica.get("own")?.text).to.equal("2");
    connect(a, b.restart());
    await scheduler.runUntil(scheduler.now + 5_000);
    expect(a.replica.get("k")).not.to.equal(undefined);
  });
});
