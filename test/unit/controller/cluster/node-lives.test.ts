import { expect } from "chai";
import { watchNodeLives, type Liveness } from "#controller/cluster/node-lives.ts";
import type { Json, SoftValue } from "#controller/replica/replica.ts";

describe("the liveness of nodes", () => {
  let now: number;
  let shared: (SoftValue & { readonly key: string })[];
  let liveness: Liveness;
  /** The keys that were shared, with the milliseconds for which each may wait. */
  const sent: [string, number][] = [];
  const peerReports = (value: object, key = "live/a", sender = "c2"): void =>
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

  it("is unknown before the first heartbeat", () =>
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

  it("follows the latest sign of life that any controller received", () => {
    liveness.hear("a");
    now += 1000;
    peerReports({ at: now, alive: false });
    expect(liveness.of("a")).to.include({ isReady: false, reason: "its agent was stopped" });
    now += 1000;
    liveness.hear("a");
    expect(liveness.of("a").isReady).to.equal(true);
  });

  it("counts a sign of life from its own time, not from its arrival", () => {
    peerReports({ at: now - 100_000, alive: true });
    expect(liveness.of("a").isReady).to.equal(false);
  });

  it("counts a heartbeat that waited at a controller whose clock is ahead from before its wait", () => {
    peerReports({ at: now - 1_000, alive: false });
    // Received 4 s before, when it was sent.
    peerReports({ at: now + 2_000, alive: true, held: 5_000 }, "live/a", "c3");
    expect(liveness.of("a").isReady).to.equal(false);
  });

  it("gives live nodes 90 s after the controller's restart, and keeps silent and stopped nodes as they were", () => {
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
    const reasons = () => ["gone", "a", "sick", "stopped"].map((id) => restarted.of(id).reason ?? "ready");
    expect(reasons()).to.deep.equal([
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

  it("prefers a heartbeat since the restart to the state before it", () => {
    liveness.stopped("a");
    const kept = liveness.heard();
    now += 1_000;
    const restarted = open();
    restarted.hear("a");
    restarted.recall(kept);
    expect(restarted.of("a").isReady).to.equal(true);
  });

  it("ignores malformed soft values", () => {
    peerReports({ at: "now" });
    peerReports({ at: now, alive: true }, "other/a");
    expect(liveness.of("a").lastSeenAt).to.equal(0);
  });

  it("ignores signs of life in the future or at an invalid time", () => {
    peerReports({ at: now + 1e9, alive: false }, "live/a", "c3");
    now += 1_000;
    peerReports({ at: now, alive: true });
    for (const at of [1e300, -1e300, 8.64e15 + 1]) peerReports({ at, alive: true }, "live/b", "c3");
    expect(liveness.of("a")).to.deep.equal({ lastSeenAt: now, isReady: true });
    expect(liveness.of("b").lastSeenAt).to.equal(0);
    // A peer's sign of life counts as long as the peer repeats it.
    now += 100_000;
    expect(liveness.of("a").isReady).to.equal(false);
  });
});
