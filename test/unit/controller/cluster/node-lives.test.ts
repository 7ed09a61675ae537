import { expect } from "chai";
import { watchLiveness } from "#controller/cluster/node-lives.ts";
import type { Liveness } from "#controller/cluster/node-lives.ts";
import type { Json } from "#controller/replica/replica.ts";

describe("the liveness of nodes", () => {
  let now: number;
  let shared: { key: string; value: Json; receivedMono: number }[];
  let liveness: Liveness;
  const told = (value: object, key = "live/a/c2"): void =>
    void shared.push({ key, value: value as Json, receivedMono: now });
  /** What the others said is read once a turn of the event loop. */
  const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  beforeEach(() => {
    now = 1_000_000;
    shared = [];
    const spread: string[] = [];
    liveness = watchLiveness({
      replica: { shareSoft: (key) => void spread.push(key), softEntries: () => shared },
      controllerId: "c1",
      staleAfterMs: 90_000,
      clock: () => now,
      monotonic: () => now,
    });
  });

  it("is unknown until something is heard", () => {
    expect(liveness.of("a")).to.deep.equal({
      lastSeenAt: 0,
      isReady: false,
      reason: "not heard since this controller started",
    });
  });

  it("counts the latest sign, whoever heard it", async () => {
    liveness.hear("a");
    now += 1000;
    told({ at: now, alive: false });
    await nextTurn();
    expect(liveness.of("a")).to.include({ isReady: false, reason: "its agent was stopped" });
    now += 1000;
    liveness.hear("a");
    expect(liveness.of("a").isReady).to.equal(true);
  });

  it("takes a sign that came late for as old as it is", async () => {
    told({ at: now - 100_000, alive: true });
    await nextTurn();
    expect(liveness.of("a").isReady).to.equal(false);
  });

  it("ignores what is no sign", async () => {
    told({ at: "now" });
    told({ at: now, alive: true }, "other/a/c2");
    await nextTurn();
    expect(liveness.of("a").lastSeenAt).to.equal(0);
  });
});
