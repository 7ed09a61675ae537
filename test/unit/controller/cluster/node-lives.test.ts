import { expect } from "chai";
import { watchNodeLives, type Liveness } from "#controller/cluster/node-lives.ts";
import type { Json, SoftValue } from "#controller/replica/replica.ts";

describe("the liveness of nodes", () => {
  let now: number;
  let shared: (SoftValue & { readonly key: string })[];
  let liveness: Liveness;
  /** The keys that were shared, with the milliseconds for which each may wait. */
  const sent: [string, number][] = [];
  const told = (value: object, key = "live/a", sender = "c2"): void =>
    void shared.push({ key, sender, value: value as Json, receivedMono: now });
  const open = (): Liveness =>
    watchNodeLives({
      replica: {
        shareSoft: (key, _version, _value, withinMs) => void sent.push([key, withinMs]),
        softKeys: () => shared.map(({ key }) => key),
        softValues: (about) => shared.filter(({ key }) => key === about),
      },
      controllerId: "c1",
      staleAfterMs: 90_000,
      clock: () => now,
      monotonic: () => now,
    });
  beforeEach(() => {
    now = 1_000_000;
    shared = [];
    sent.length = 0;
    liveness = open();
  });

  it("is unknown until something is heard", () =>
    expect(liveness.of("a")).to.deep.equal({
      lastSeenAt: 0,
      isReady: false,
      reason: "not heard since this controller started",
    }));

  it("is shared at once when it changes, and within five seconds when it does not", () => {
    liveness.hear("a");
    liveness.hear("a", { usage: { load: 1 } });
    liveness.hear("a", { health: { ok: false } });
    liveness.hear("a", { health: { ok: false } });
    liveness.stopped("a");
    expect(sent.map(([, withinMs]) => withinMs)).to.deep.equal([0, 5_000, 0, 5_000, 0]);
  });

  it("counts the latest sign, whoever heard it", () => {
    liveness.hear("a");
    now += 1000;
    told({ at: now, alive: false });
    expect(liveness.of("a")).to.include({ isReady: false, reason: "its agent was stopped" });
    now += 1000;
    liveness.hear("a");
    expect(liveness.of("a").isReady).to.equal(true);
  });

  it("takes a sign that came late for as old as it is", () => {
    told({ at: now - 100_000, alive: true });
    expect(liveness.of("a").isReady).to.equal(false);
  });

  it("C14: has 90 s after a restart for what was alive, and keeps what was silent or stopped as it was", () => {
    liveness.hear("gone");
    now += 91_000;
    liveness.hear("a");
    liveness.hear("sick", { health: { ok: false, reason: "no disk" } });
    liveness.stopped("stopped");
    now += 10_000;
    const kept = liveness.heard();
    // The controller was off for an hour.
    now += 3_600_000;
    const restarted = open();
    restarted.recall(kept);
    const look = () => ["gone", "a", "sick", "stopped"].map((id) => restarted.of(id).reason ?? "ready");
    expect(look()).to.deep.equal([
      "no heartbeat since 1970-01-01T00:16:40.000Z",
      "ready",
      "no disk",
      "its agent was stopped",
    ]);
    now += 89_000;
    expect(restarted.of("a").isReady).to.equal(true);
    now += 2_000;
    expect(restarted.of("a").isReady).to.equal(false);
    restarted.hear("a");
    expect(restarted.of("a")).to.deep.equal({ lastSeenAt: now, isReady: true });
  });

  it("C14: what was heard since the restart is not taken back by what was heard before", () => {
    liveness.stopped("a");
    const kept = liveness.heard();
    now += 1_000;
    const restarted = open();
    restarted.hear("a");
    restarted.recall(kept);
    expect(restarted.of("a").isReady).to.equal(true);
  });

  it("ignores what is no sign", () => {
    told({ at: "now" });
    told({ at: now, alive: true }, "other/a");
    expect(liveness.of("a").lastSeenAt).to.equal(0);
  });

  it("M3: takes no sign from the future, and none that is no time", () => {
    told({ at: now + 1e9, alive: false }, "live/a", "c3");
    now += 1_000;
    told({ at: now, alive: true });
    for (const at of [1e300, -1e300, 8.64e15 + 1]) told({ at, alive: true }, "live/b", "c3");
    expect(liveness.of("a")).to.deep.equal({ lastSeenAt: now, isReady: true });
    expect(liveness.of("b").lastSeenAt).to.equal(0);
    // A peer that repeats it is believed as long as it does, like any controller that hears a node.
    now += 100_000;
    expect(liveness.of("a").isReady).to.equal(false);
  });
});
