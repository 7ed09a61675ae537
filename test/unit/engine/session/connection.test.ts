import { expect } from "chai";
import { connectionTransition, noConnection, type Connection } from "#engine/session/connection.ts";
import type { ConnectionEvent } from "#engine/session/session-events.ts";
import { transitionContext as context } from "#support/sessions.ts";

function after(events: readonly ConnectionEvent[]): { state: Connection; toRunner: string[] } {
  let state = noConnection;
  let toRunner: string[] = [];
  for (const event of events) {
    const next = connectionTransition(state, event, context);
    state = next.state;
    toRunner = next.effects.flatMap((effect) => ("to" in effect && effect.to === "runner" ? [effect.event.type] : []));
  }
  return { state, toRunner };
}

describe("connectionTransition", () => {
  const connected: readonly ConnectionEvent[] = [
    { type: "connect", withFlight: false, attempt: 2 },
    { type: "reached" },
    { type: "hello", boot: "b1", epoch: 0 },
  ];

  it("is open once the follower has caught up with the journal", () => {
    expect(after([...connected, { type: "opened" }]).toRunner).to.deep.equal(["opened"]);
    const { state, toRunner } = after([...connected, { type: "opened" }, { type: "caught-up" }]);
    expect([state.phase.at, toRunner]).to.deep.equal(["open", ["up"]]);
  });

  it("retries after a lost look, but not for a node that was never reached", () => {
    const refused: readonly ConnectionEvent[] = [
      { type: "connect", withFlight: true, attempt: 1 },
      { type: "refused", problem: { code: "HOST_UNREACHABLE", message: "nothing there" } },
    ];
    expect(after(refused).state.phase.at).to.equal("none");
    const { state, toRunner } = after([{ type: "look-lost" }, ...refused]);
    expect([state.phase.at, toRunner]).to.deep.equal(["pausing", ["down"]]);
  });

  it("is open also when the follower caught up before the link was opened, as with sudo", () => {
    const { state, toRunner } = after([...connected, { type: "caught-up" }, { type: "opened" }]);
    expect([state.phase.at, toRunner]).to.deep.equal(["open", ["opened", "up"]]);
  });

  it("keeps retrying while a rebooting machine is unreachable, but not after a failed unlock", () => {
    const gone: readonly ConnectionEvent[] = [
      { type: "expect-reboot", within: 1000 },
      ...connected,
      { type: "opened" },
      { type: "caught-up" },
      { type: "lost", output: "" },
      { type: "retry-due" },
    ];
    const refusedWith = (code: "HOST_UNREACHABLE" | "UNLOCK_FAILED"): string =>
      after([...gone, { type: "refused", problem: { code, message: "" } }]).state.phase.at;
    expect([refusedWith("HOST_UNREACHABLE"), refusedWith("UNLOCK_FAILED")]).to.deep.equal(["pausing", "none"]);
  });

  it("warns of a node's clock that differs by more than the answer took", () => {
    const warned = (reachedAt: number, heardAt: number, epoch: number): readonly string[] => {
      const connecting = connectionTransition(
        noConnection,
        { type: "connect", withFlight: false, attempt: 1 },
        context,
      ).state;
      const starting = connectionTransition(connecting, { type: "reached" }, { ...context, now: reachedAt }).state;
      const { effects } = connectionTransition(
        starting,
        { type: "hello", boot: "b1", epoch },
        { ...context, now: heardAt },
      );
      return effects.flatMap((e) => ("do" in e && e.do === "emit" && e.event.type === "warning" ? [e.event.text] : []));
    };
    // The answer took twelve seconds, and the node may have read its clock at any time in between.
    expect([1_000, 1_006, 1_012].flatMap((epoch) => warned(1_000_400, 1_012_400, epoch))).to.deep.equal([]);
    const text = "the clock of n1 differs from this machine's by";
    expect(warned(1_000_400, 1_001_000, 1_009)).to.deep.equal([`${text} 8 s`]);
    expect(warned(1_000_400, 1_001_000, 990)).to.deep.equal([`${text} 9 s`]);
  });
});
