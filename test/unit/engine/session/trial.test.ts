import { expect } from "chai";
import { initialState, transition, type SessionState } from "#engine/session/session-state.ts";
import type { SessionEffect, SessionEvent } from "#engine/session/session-events.ts";
import { transitionContext as context } from "#support/sessions.ts";

/** The session's state after these events; the effects of the last event, and their commands as words. */
function after(messages: readonly SessionEvent[]): {
  state: SessionState;
  commands: string[];
  effects: readonly SessionEffect[];
} {
  let state = initialState;
  let effects: readonly SessionEffect[] = [];
  for (const message of messages) ({ state, effects } = transition(state, message, context));
  const words = effects.map((one) =>
    "text" in one ? one.text.trim() : "milliseconds" in one ? `wait ${one.milliseconds}` : one.do,
  );
  return { state, commands: words, effects };
}

const connection = (event: Extract<SessionEvent, { to: "connection" }>["event"]): SessionEvent => ({
  to: "connection",
  event,
});
const frame = (type: string, rest: string, offset = 100): SessionEvent => ({
  to: "runner",
  event: { type: "frame", frame: { type, rest }, offset },
});

describe("a change on trial, which a new connection confirms", () => {
  const connected: readonly SessionEvent[] = [
    { to: "runner", event: { type: "connect-only" } },
    connection({ type: "reached" }),
    connection({ type: "hello", boot: "b1", epoch: 0 }),
    connection({ type: "opened" }),
    connection({ type: "caught-up" }),
    frame("runner", "alive 0"),
    frame("segment", "1"),
  ];
  const reconnected: readonly SessionEvent[] = [
    connection({ type: "retry-due" }),
    connection({ type: "reached" }),
    connection({ type: "hello", boot: "b1", epoch: 0 }),
    connection({ type: "opened" }),
    frame("runner", "alive 0"),
    connection({ type: "caught-up" }),
  ];

  it("is confirmed over a connection that is made at once", () => {
    const asked = after([...connected, frame("trial", "abc 30")]);
    expect(asked.commands).to.deep.equal(["stop-beat", "disconnect", "emit", "wait 0"]);
    expect(after([...connected, frame("trial", "abc 30"), ...reconnected]).commands).to.deep.equal(["confirm abc"]);
  });

  it("is confirmed again over the next connection until the node reports the trial's end", () => {
    const twice = [
      ...connected,
      frame("trial", "abc 30"),
      ...reconnected,
      connection({ type: "lost", output: "" }),
      ...reconnected,
    ];
    expect(after(twice).commands).to.deep.equal(["confirm abc"]);
    const ended = [...connected, frame("trial", "abc 30"), ...reconnected, frame("trial-end", "abc confirmed")];
    expect(after([...ended, connection({ type: "lost", output: "" }), ...reconnected]).commands).to.deep.equal([]);
  });

  it("is confirmed by a bastion that learns of it on connecting", () => {
    const joining = [
      ...connected.slice(0, 4),
      frame("runner", "alive 0"),
      frame("segment", "1"),
      frame("trial", "abc 30"),
    ];
    expect(after(joining).commands).to.deep.equal([]);
    expect(after([...joining, connection({ type: "caught-up" })]).commands).to.deep.equal(["confirm abc"]);
  });

  it("is ignored if its runner is dead", () => {
    const old = [...connected.slice(0, -2), frame("runner", "new 500"), frame("trial", "abc 30", 400)];
    expect(after(old).commands).to.deep.equal([]);
  });

  it("is retried until the node has had time to revert it", () => {
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
