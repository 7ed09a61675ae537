import { expect } from "chai";
import { SoftState } from "#controller/replica/soft-state.ts";

describe("soft state", () => {
  it("is sent to the peers together, with the next value that must not wait", () => {
    const sent: string[][] = [];
    const timers: (() => void)[] = [];
    const soft = new SoftState("c1", {
      mono: () => 0,
      after: (ms, run) => {
        expect(ms).to.equal(5_000);
        timers.push(run);
        return () => void timers.splice(timers.indexOf(run), 1);
      },
      spread: (entries) => void sent.push(entries.map(({ key, text }) => `${key} ${text}`)),
    });
    const share = (key: string, seq: number, withinMs: number): void =>
      soft.share(key, { boot: 1, seq }, seq, withinMs);
    share("a", 1, 5_000);
    share("b", 2, 5_000);
    share("a", 3, 5_000);
    expect([sent, timers.length]).to.deep.equal([[], 1]);
    timers.pop()?.();
    expect(sent.splice(0)).to.deep.equal([["a/c1 3", "b/c1 2"]]);
    share("b", 4, 5_000);
    share("a", 5, 0);
    expect([sent, timers.length]).to.deep.equal([[["b/c1 4", "a/c1 5"]], 0]);
  });

  it("is bounded per sender, and expires", () => {
    let now = 0;
    const limits = { entries: 10, size: 1_000, value: 100, lifetime: 60_000 };
    const soft = new SoftState(
      "c1",
      { mono: () => now, after: () => () => undefined, spread: () => undefined },
      limits,
    );
    const held = (): string[] =>
      [...new Set(soft.keys())].flatMap((key) => Array.from(soft.of(key), ({ sender }) => `${key} ${sender}`));
    const receive = (sender: string, key: string, length: number): void =>
      soft.received(sender, [{ key: `${key}/${sender}`, boot: 1, seq: now + 1, text: "1".repeat(length) }]);
    for (let index = 0; index < 100; index++) receive("c2", `live/${index}`, 10);
    expect(held()).to.have.length(10);
    for (let index = 0; index < 100; index++) receive("c3", `live/${index}`, 95);
    expect(held()).to.have.length(19);
    receive("c4", "live/large", 101);
    expect(held()).to.have.length(19);
    // Known values are renewed, as far as there is room.
    now = 58_000;
    receive("c2", "live/0", 10);
    receive("c3", "live/0", 100);
    receive("c3", "live/1", 100);
    now = 61_000;
    receive("c2", "live/new", 10);
    expect(held()).to.deep.equal(["live/0 c2", "live/0 c3", "live/new c2", "live/1 c3"]);
    // A sender cannot write another sender's keys.
    soft.received("c2", [{ key: "live/0/c3", boot: 1, seq: now + 2, text: "1" }]);
    expect([...soft.keys()]).to.have.length(4);
    soft.keepOnly(["c1", "c2"]);
    expect(held()).to.deep.equal(["live/0 c2", "live/new c2"]);
  });
});
