import { expect } from "chai";
import { connect, pair, TestReplica } from "#support/replica.ts";
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

describe("a hostile peer", () => {
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
      const events = a.replica.connected({
        peer: "b",
        initiator: false,
        send: (message) => void (message.t === "pull" && (sync = message.sync)),
        close: () => undefined,
      });
      events.received(hello, 1);
      events.received({ t: "welcome", proto: 1, walls: [1.7e12, 1.7e12] }, 1);
      const message = spoil(random.pick(good), random);
      events.received(typeof message === "object" ? { ...message, ...(sync > 0 ? { sync } : {}) } : message, 1);
      events.closed();
    }
    expect(a.replica.get("own")?.text).to.equal("1");
    await scheduler.runUntil(scheduler.now + 40_000);
    await a.replica.write([{ key: "own", value: 2 }]);
    const again = new TestReplica(scheduler, "a", { recovered: a.records });
    expect(again.replica.get("own")?.text).to.equal("2");
    connect(a, new TestReplica(scheduler, "b", { recovered: b.records }));
    await scheduler.runUntil(scheduler.now + 5_000);
    expect(a.replica.get("k")).not.to.equal(undefined);
  });
});
