import { expect } from "chai";
import { atFirst, machinesAfter, type Machines } from "#engine/session/machines.ts";
import type { Effect, Heard, Message, Setting } from "#engine/session/messages.ts";

const setting: Setting = {
  node: "n1",
  runId: "r1",
  resumed: false,
  waitForLock: false,
  retryDelays: [0],
  heard: {} as Heard,
  now: 0,
  chance: 0.5,
};

/** A session after these messages, and its effects since the last of them. */
function after(messages: readonly Message[]): { state: Machines; done: string[]; effects: readonly Effect[] } {
  let state = atFirst;
  let effects: readonly Effect[] = [];
  for (const message of messages) ({ state, effects } = machinesAfter(state, message, setting));
  const words = effects.map((one) =>
    "text" in one ? one.text.trim() : "milliseconds" in one ? `wait ${one.milliseconds}` : one.do,
  );
  return { state, done: words, effects };
}

const connection = (event: Extract<Message, { to: "connection" }>["event"]): Message => ({ to: "connection", event });
const frame = (type: string, rest: string, offset = 100): Message => ({
  to: "runner",
  event: { type: "frame", frame: { type, rest }, offset },
});

describe("a change that a new connection has to confirm", () => {
  const connected: readonly Message[] = [
    { to: "runner", event: { type: "look" } },
    connection({ type: "reached" }),
    connection({ type: "hello", boot: "b1", epoch: 0 }),
    connection({ type: "opened" }),
    connection({ type: "told" }),
    frame("runner", "alive 0"),
    frame("segment", "1"),
  ];
  const again: readonly Message[] = [
    connection({ type: "waited" }),
    connection({ type: "reached" }),
    connection({ type: "hello", boot: "b1", epoch: 0 }),
    connection({ type: "opened" }),
    frame("runner", "alive 0"),
    connection({ type: "told" }),
  ];

  it("is confirmed over one that is made at once, and by no other word", () => {
    const asked = after([...connected, frame("trial", "abc 30")]);
    expect(asked.done).to.deep.equal(["stop-beat", "hang-up", "emit", "wait 0"]);
    expect(after([...connected, frame("trial", "abc 30"), ...again]).done).to.deep.equal(["confirm abc"]);
  });

  it("is confirmed again over a later one, while the node has not said how it ended", () => {
    const twice = [...connected, frame("trial", "abc 30"), ...again, connection({ type: "lost", said: "" }), ...again];
    expect(after(twice).done).to.deep.equal(["confirm abc"]);
    const told = [...connected, frame("trial", "abc 30"), ...again, frame("trial-end", "abc confirmed")];
    expect(after([...told, connection({ type: "lost", said: "" }), ...again]).done).to.deep.equal([]);
  });

  it("is confirmed by a bastion that hears of it when it comes: its connection is new", () => {
    const joining = [
      ...connected.slice(0, 4),
      frame("runner", "alive 0"),
      frame("segment", "1"),
      frame("trial", "abc 30"),
    ];
    expect(after(joining).done).to.deep.equal([]);
    expect(after([...joining, connection({ type: "told" })]).done).to.deep.equal(["confirm abc"]);
  });

  it("of a runner that is dead is history", () => {
    const old = [...connected.slice(0, -2), frame("runner", "new 500"), frame("trial", "abc 30", 400)];
    expect(after(old).done).to.deep.equal([]);
  });

  it("is waited for until the node has had the time to take it back", () => {
    let { state, effects } = after([...connected, frame("trial", "abc 30")]);
    const problem = { code: "HOST_UNREACHABLE", message: "refused" } as const;
    let waited = 0;
    while (effects.some((one) => one.do === "wait")) {
      for (const one of effects) if (one.do === "wait") waited += one.milliseconds;
      ({ state } = machinesAfter(state, connection({ type: "waited" }), setting));
      ({ state, effects } = machinesAfter(state, connection({ type: "refused", problem }), setting));
    }
    expect(waited).to.equal(90_000);
  });
});
