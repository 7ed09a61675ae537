import { expect } from "chai";
import type { PeerMessage } from "#controller/replica/messages.ts";
import { authKeyOf } from "#controller/replica/registered-controllers.ts";
import { encodeStamp, zero as zeroStamp } from "#crdt/hlc.ts";
import { connect, greet, joining, pair, TestReplica } from "#support/replica.ts";
import { Scheduler } from "../../../sim/scheduler.ts";
import { Random } from "../../../sim/random.ts";

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

/** The value with one of its leaves or branches replaced. */
function spoil(value: unknown, random: Random): unknown {
  if (random.chance(0.15) || typeof value !== "object" || value === null) return random.pick(junk);
  if (Array.isArray(value)) {
    if (value.length === 0) return random.pick(junk);
    return value.with(random.below(value.length), spoil(random.pick(value), random)) as unknown;
  }
  const [name, inner] = random.pick(Object.entries(value as Record<string, unknown>));
  return { ...value, [name]: spoil(inner, random) };
}

/** Registers `own`, three of `grow/` and both memberships at `a`; then a test with the certificate of `b` speaks by hand. */
async function lied(answer: (pull: Extract<PeerMessage, { t: "pull" }>, a: TestReplica) => unknown) {
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
        if (message.t === "pull" && closed.length === 0)
          scheduler.after(1, () => events.received(answer(message, a), 1));
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

/** The end of a full exchange without a register: all that this vector and `floor` cover would be deleted. */
const emptying =
  (floor: readonly (readonly [string, number])[], { full = true, upto = [] as typeof floor } = {}) =>
  ({ sync }: { readonly sync: number }, { replica }: TestReplica): unknown => ({
    t: "page",
    sync,
    index: 0,
    full,
    page: nothing,
    end: { upto: [...Object.entries(replica.status().vv), ...upto], hlc: zero, full: { floor, hlc: zero } },
  });

describe("a hostile peer", () => {
  it("H1: empties nothing by a full exchange that nothing calls for, and is named", async () => {
    const { a, closed } = await lied(emptying([]));
    expect(["own", "grow/only", authKeyOf("a"), authKeyOf("b")].filter((key) => !a.replica.get(key))).to.deep.equal([]);
    expect(closed).to.deep.equal(["MALFORMED"]);
    expect(a.alarms()).to.include("PEER_MALFORMED b");
  });

  it("H1: takes no full exchange for an end that none was announced for, nor one whose floor it has not reached itself", async () => {
    for (const floor of [[], [["a#1", 10 ** 9] as const]])
      for (const full of [false, true]) {
        const { a, closed } = await lied(emptying(floor, { full }));
        expect(a.replica.get("own")?.text).to.equal("1");
        expect(closed).to.deep.equal(["MALFORMED"]);
      }
  });

  it("H1: drops no revocation, no other grow-only register and no member by a full exchange, whatever floor it invents", async () => {
    const floor = [[`b#${"f".repeat(8)}`, 7] as const];
    const { scheduler, a } = await lied(emptying(floor, { upto: floor }));
    const lasting = ["grow/only", "grow/until", authKeyOf("a"), authKeyOf("b")];
    expect(lasting.filter((key) => !a.replica.get(key))).to.deep.equal([]);
    expect(a.replica.get("grow/ended"), "C6: its time is over").to.equal(undefined);
    // After a restart too: the same records are judged again.
    const again = new TestReplica(scheduler, "a", { recovered: a.records });
    expect(lasting.filter((key) => !again.replica.get(key))).to.deep.equal([]);
  });

  it("H2: takes nothing by a pull that an unregistered origin wrote", async () => {
    const { a, closed } = await lied(({ sync }, { replica }) => {
      const page = { origins: ["ghost#1"], contexts: [[]], registers: [["forged", "1", 1.7e12, 0, 0, 1, 0]] };
      const upto = [...Object.entries(replica.status().vv), ["ghost#1", 1]];
      return { t: "page", sync, index: 0, full: false, page, end: { upto, hlc: zero } };
    });
    expect(a.replica.get("forged")).to.equal(undefined);
    expect(Object.keys(a.replica.status().vv)).not.to.include("ghost#1");
    expect(closed).to.deep.equal(["MALFORMED"]);
    expect(a.alarms()).to.include("PEER_MALFORMED b");
  });

  it("H2: takes by a pull what a former member wrote, and one whose registration comes along", async () => {
    const scheduler = new Scheduler();
    const a = new TestReplica(scheduler, "a");
    await a.register("a", "b", "c");
    const [b, c] = joining(scheduler, "b", "c");
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

  type Vector = readonly (readonly [string, number])[];
  const vectors: Readonly<Record<string, (vv: Vector) => Vector>> = {
    "H3: fills no version vector with incarnations of its own": (vv) => [
      ...vv,
      ...Array.from({ length: 90_000 }, (_, index) => [`b#${index}`, 1] as const),
    ],
    "H3: fills no version vector with origins that nobody registered": (vv) => [
      ...vv,
      ...Array.from({ length: 90_000 }, (_, index) => [`ghost${index}#1`, 1] as const),
    ],
    "H2: raises no vector by claiming more of this controller's transactions than it wrote": (vv) =>
      vv.map(([origin, seq]) => [origin, seq + 10 ** 9]),
  };
  for (const [what, claim] of Object.entries(vectors))
    it(what, async () => {
      const { a, closed } = await lied(({ sync }, { replica }) => {
        const upto = claim(Object.entries(replica.status().vv));
        return { t: "page", sync, index: 0, full: false, page: nothing, end: { upto, hlc: zero } };
      });
      const seqs = Object.values(a.replica.status().vv);
      expect([seqs.length < 300, seqs.every((seq) => seq < 10), closed]).to.deep.equal([true, true, ["MALFORMED"]]);
      expect(a.alarms()).to.include("PEER_MALFORMED b");
    });

  it("H3: a vector that was filled in an earlier version heals when its controller starts", async () => {
    const { scheduler, a } = await pair();
    await a.replica.write([{ key: "own", value: 1 }]);
    const before = a.replica.status().vv;
    const ghosts = Array.from({ length: 120_000 }, (_, index) => [`ghost${index}#1`, 1] as const);
    const mine = Array.from({ length: 9_000 }, (_, index) => [`b#${index}`, 1] as const);
    const poison = { t: "apply", page: nothing, upto: [...ghosts, ...mine] } as const;
    const floor = { t: "meta", floor: ghosts.slice(0, 9) } as const;
    const again = new TestReplica(scheduler, "a", { recovered: [...a.records, poison, floor] });
    expect(again.replica.status().vv).to.deep.equal(before);
    expect(again.replica.get("own")?.text).to.equal("1");
    // And an honest peer gets on with it.
    const c = new TestReplica(scheduler, "c", { start: "join" });
    const registered = again.register("c");
    await scheduler.runUntil(scheduler.now + 3_000);
    await registered;
    connect(again, c);
    await scheduler.runUntil(scheduler.now + 3_000);
    expect([c.replica.get("own")?.text, c.alarms()]).to.deep.equal(["1", []]);
  });

  it("H2: stops no writes by claims that it has more of another's origin than that one wrote, and is named", async () => {
    const { scheduler, a, b, wire } = await pair();
    wire.cut();
    const events = greet(a, { ...wire.sent[1][0], ready: true });
    const claim = (): void => {
      const ours = Object.keys(a.replica.status().vv).filter((origin) => origin.startsWith("a#"));
      const vv = [...ours, a.replica.status().origin].map((origin) => [origin, 1_000_000]);
      events.received({ t: "have", ready: true, vv }, 1);
    };
    // The origin was on no disk when this process started, so the first claim already shows that the peer lies.
    let written = 0;
    for (let round = 0; round < 50; round++) {
      claim();
      const write = a.replica.write([{ key: "k", value: round }]).then(() => written++);
      await scheduler.runUntil(scheduler.now + 100);
      await write;
    }
    expect(written).to.equal(50);
    expect(a.alarms()).to.include("EQUIVOCATION b");
    expect(Object.keys(a.replica.status().vv).filter((origin) => origin.startsWith("a#")).length).to.be.lessThan(6);
    events.closed();
    b.replica.stop();
  });

  it("H2: what a relay claims and does not hand on is found and fetched as soon as another has it", async () => {
    const { scheduler, a, b, wire } = await pair();
    wire.cut();
    await a.replica.write([{ key: "kept back", value: 1 }]);
    await scheduler.runUntil(scheduler.now + 1_000);
    const closed: string[] = [];
    const events = greet(
      b,
      { ...wire.sent[0][0], ready: true },
      {
        peer: "a",
        send: (message) => {
          if (message.t !== "pull") return;
          const end = { upto: Object.entries(a.replica.status().vv), hlc: zero };
          const page = { t: "page", sync: message.sync, index: 0, full: false, page: nothing, end };
          scheduler.after(1, () => events.received(page, 1));
        },
        close: (why) => void closed.push(why),
      },
    );
    await scheduler.runUntil(scheduler.now + 1_000);
    expect(b.replica.status().vv).to.deep.equal(a.replica.status().vv);
    expect(b.replica.get("kept back")).to.equal(undefined);
    events.closed();
    connect(a, b);
    await scheduler.runUntil(scheduler.now + 10_000);
    expect(b.replica.get("kept back")?.text).to.equal("1");
  });

  it("H2: keeps no controller from writing by claiming that its store was put back, and makes it take no origin a claim", async () => {
    const { scheduler, a, wire } = await pair();
    await a.replica.write([{ key: "own", value: 1 }]);
    wire.cut();
    const events = greet(a, { ...wire.sent[1][0], ready: true });
    const before = a.replica.status().origin;
    const origins = new Set<string>();
    for (let index = 0; index < 50; index++) {
      const vv = [[a.replica.status().origin, 10 ** 9]];
      events.received({ t: "have", ready: true, vv }, 1);
      await a.replica.write([{ key: "own", value: index }]);
      origins.add(a.replica.status().origin);
      await scheduler.runUntil(scheduler.now + 10);
    }
    expect([...origins].filter((origin) => origin !== before)).to.have.length(1);
    expect(a.alarms()).to.include("EQUIVOCATION b");
  });

  it("H2: makes it take three origins at most, however long it claims", async () => {
    const { scheduler, a, wire } = await pair();
    await a.replica.write([{ key: "own", value: 1 }]);
    wire.cut();
    const events = greet(a, { ...wire.sent[1][0], ready: true }, { proto: 2 });
    const origins = new Set<string>();
    for (let minute = 0; minute < 10; minute++) {
      events.received({ t: "have", ready: true, vv: [[a.replica.status().origin, 10 ** 9]] }, 1);
      await a.replica.write([{ key: "own", value: minute }]);
      origins.add(a.replica.status().origin);
      for (const end = scheduler.now + 61_000; scheduler.now < end;) {
        events.received({ t: "have", ready: true, vv: [] }, 1);
        await scheduler.runUntil(scheduler.now + 1_000);
      }
    }
    expect(origins).to.have.property("size", 3);
    expect(a.alarms()).to.include("EQUIVOCATION b");
  });

  it("H3: has few of its claims kept, however many origins it invents", async () => {
    const { a, wire } = await pair();
    wire.cut();
    const events = greet(a, { ...wire.sent[1][0], ready: true }, { proto: 2 });
    for (let message = 0; message < 10; message++) {
      const vv = Array.from({ length: 10_000 }, (_, index) => [`x${message}-${index}`, 1]);
      events.received({ t: "have", ready: true, vv }, 1);
    }
    const peer = a.replica.status().peers.find(({ id }) => id === "b");
    // Transactions that it says to have and that are not here.
    expect(peer?.ahead).to.be.within(10_000, 20_000);
  });

  /** `a` and `c` know each other; then the test answers a pull of `a` by hand, with the certificate of `b`. */
  async function liedOfThird(answer: (of: { readonly sync: number; readonly origin: string }) => unknown) {
    const scheduler = new Scheduler();
    const a = new TestReplica(scheduler, "a");
    await a.register("a", "b", "c");
    const [c] = joining(scheduler, "c");
    const wire = connect(a, c);
    await scheduler.runUntil(500);
    await c.replica.write([{ key: "c's", value: 1 }]);
    await scheduler.runUntil(1_000);
    const { origin } = c.replica.status();
    const closed: string[] = [];
    const vv = Object.entries(a.replica.status().vv);
    const hello = { cluster: "test", id: "b", origin: "b#1", boot: "1", proto: [1, 2], ready: true, vv };
    const events = greet(
      a,
      { t: "hello", ...hello },
      {
        proto: 2,
        send: (message) => {
          if (message.t === "pull" && closed.length === 0)
            scheduler.after(1, () => events.received(answer({ sync: message.sync, origin }), 1));
        },
        close: (why) => void closed.push(why),
      },
    );
    for (let second = 0; second < 12; second++) {
      events.received({ t: "have", ready: true, vv }, 1);
      await scheduler.runUntil(scheduler.now + 1_000);
    }
    await c.replica.write([{ key: "c's", value: 2 }]);
    await scheduler.runUntil(scheduler.now + 1_000);
    return { scheduler, a, c, wire, closed, origin };
  }

  it("H2: makes no controller drop the writes of a third by claiming to have more of them", async () => {
    const { a, closed } = await liedOfThird(({ sync, origin }) => ({
      t: "page",
      sync,
      index: 0,
      full: false,
      page: nothing,
      end: { upto: [[origin, 10 ** 9]], hlc: zero },
    }));
    expect(a.replica.get("c's")?.text).to.equal("2");
    expect(closed).to.deep.equal(["MALFORMED"]);
    expect(a.alarms()).to.include("PEER_MALFORMED b");
  });

  it("H2: cuts no controller off from a third by other content under its dot", async () => {
    const { scheduler, a, c, wire, origin } = await liedOfThird(({ sync, origin: of }) => ({
      t: "page",
      sync,
      index: 0,
      full: false,
      page: { origins: [of], contexts: [[]], registers: [["c's", "666", 1.7e12, 0, 0, 1, 0]] },
      end: { upto: [[of, 1]], hlc: zero },
    }));
    expect(a.replica.get("c's")?.text).to.equal("2");
    expect(a.alarms()).to.include(`EQUIVOCATION ${origin}`);
    // It is let in again.
    wire.cut();
    await scheduler.runUntil(scheduler.now + 1_000);
    await c.replica.write([{ key: "c's", value: 3 }]);
    connect(a, c);
    await scheduler.runUntil(scheduler.now + 1_000);
    expect(a.replica.get("c's")?.text).to.equal("3");
  });

  it("cannot make a replica throw, lose what it has or stop working, whatever it spoils (S-24)", async () => {
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
      const message = spoil(random.pick(good), random);
      events.received(typeof message === "object" ? { ...message, ...(sync > 0 ? { sync } : {}) } : message, 1);
      events.closed();
    }
    expect(a.replica.get("own")?.text).to.equal("1");
    await scheduler.runUntil(scheduler.now + 40_000);
    await a.replica.write([{ key: "own", value: 2 }]);
    expect(new TestReplica(scheduler, "a", { recovered: a.records }).replica.get("own")?.text).to.equal("2");
    connect(a, new TestReplica(scheduler, "b", { recovered: b.records }));
    await scheduler.runUntil(scheduler.now + 5_000);
    expect(a.replica.get("k")).not.to.equal(undefined);
  });
});
