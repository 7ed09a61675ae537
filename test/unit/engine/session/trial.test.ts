import { expect } from "chai";
import { initialState, transition, type SessionState } from "#engine/session/session-state.ts";
import type { SessionEffect, StepResults, SessionEvent, TransitionContext } from "#engine/session/session-events.ts";

const context: TransitionContext = {
  node: "n1",
  runId: "r1",
  resumed: false,
  waitForLock: false,
  retryDelays: [0],
  results: {} as StepResults,
  now: 0,
  chance: 0.5,
};

/** The session's state after these events, and the effects of the last event. */
function after(messages: readonly SessionEvent[]): {
  state: SessionState;
  done: string[];
  effects: readonly SessionEffect[];
} {
  let state = initialState;
  let effects: readonly SessionEffect[] = [];
  for (const message of messages) ({ state, effects } = transition(state, message, context));
  const words = effects.map((one) =>
    "text" in one ? one.text.trim() : "milliseconds" in one ? `wait ${one.milliseconds}` : one.do,
  );
  return { state, done: words, effects };
}

const connection = (event: Extract<SessionEvent, { to: "connection" }>["event"]): SessionEvent => ({
  to: "connection",
  event,
});
const frame = (type: string, rest: string, offset = 100): SessionEvent => ({
  to: "runner",
  event: { type: "frame", frame: { type, rest }, offset },
});

describe("a change that a new connection has to confirm", () => {
  const connected: readonly SessionEvent[] = [
    { to: "runner", event: { type: "connect-only" } },
    connection({ type: "reached" }),
    connection({ type: "hello", boot: "b1", epoch: 0 }),
    connection({ type: "opened" }),
    connection({ type: "caught-up" }),
    frame("runner", "alive 0"),
    frame("segment", "1"),
  ];
  const again: readonly SessionEvent[] = [
    connection({ type: "retry-due" }),
    connection({ type: "reached" }),
    connection({ type: "hello", boot: "b1", epoch: 0 }),
    connection({ type: "opened" }),
    frame("runner", "alive 0"),
    connection({ type: "caught-up" }),
  ];

  it("is confirmed over one that is made at once, and by no other word", () => {
    const asked = after([...connected, frame("trial", "abc 30")]);
    expect(asked.done).to.deep.equal(["stop-beat", "disconnect", "emit", "wait 0"]);
    expect(after([...connected, frame("trial", "abc 30"), ...again]).done).to.deep.equal(["confirm abc"]);
  });

  it("is confirmed again over a later one, while the node has not said how it ended", () => {
    const twice = [
      ...connected,
      frame("trial", "abc 30"),
      ...again,
      connection({ type: "lost", output: "" }),
      ...again,
    ];
    expect(after(twice).done).to.deep.equal(["confirm abc"]);
    const told = [...connected, frame("trial", "abc 30"), ...again, frame("trial-end", "abc confirmed")];
    expect(after([...told, connection({ type: "lost", output: "" }), ...again]).done).to.deep.equal([]);
  });

  it("is confirmed by a bastion that hears of it when it comes: its connection is new", () => {
    const joining = [
      ...connected.slice(0, 4),
      frame("runner", "alive 0"),
      frame("segment", "1"),
      frame("trial", "abc 30"),
    ];
    expect(after(joining).done).to.deep.equal([]);
    expect(after([...joining, connection({ type: "caught-up" })]).done).to.deep.equal(["confirm abc"]);
  });

  it("of a runner that is dead is history", () => {
    const old = [...connected.slice(0, -2), frame("runner", "new 500"), frame("trial", "abc 30", 400)];
    expect(after(old).done).to.deep.equal([]);
  });

  it("is waited for until the node has had the time to take it back", () => {
    let { state, effects } = after([...connected, frame("trial", "abc 30")]);
    const problem = { code: "HOST_UNREACHABLE", message: "refused" } as const;
    let waited = 0;
    while (effects.some((one) => one.do === "start-timer")) {
      for (const one of effects) if (one.do === "start-timer") waited += one.milliseconds;
      ({ state } = transition(state, connection({ type: "retry-due" }), context));
      ({ state, effects } = transition(state, connection({ type: "refused", problem }), context));
    }
    expect(waited).to.equal(90_000);
  });
});
