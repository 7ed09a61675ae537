import { expect } from "chai";
import { FramePace } from "#tui/ink/frame-pace.ts";
import { FakeTimers } from "#support/fake-timers.ts";

function pace(): { readonly timers: FakeTimers; readonly pace: FramePace; readonly frames: number[] } {
  const timers = new FakeTimers();
  const frames: number[] = [];
  return { timers, frames, pace: new FramePace(() => frames.push(timers.now()), timers) };
}

describe("the pace of frames", () => {
  it("is at most ten a second with any number of events", () => {
    const { timers, pace: one, frames } = pace();
    for (let millisecond = 0; millisecond < 10_000; millisecond++) {
      one.news();
      one.news();
      one.news();
      timers.pass(1);
    }
    expect(frames.length).to.be.within(99, 101);
    expect(frames.slice(1).every((at, index) => at - (frames[index] as number) >= 100)).to.equal(true);
  });

  it("draws the first event at once, and the last one in the end", () => {
    const { timers, pace: one, frames } = pace();
    timers.pass(5000);
    one.news();
    timers.pass(0);
    one.news();
    timers.pass(1000);
    expect(frames).to.deep.equal([5000, 5100]);
  });

  it("draws after a key within 33 ms, also during many events", () => {
    const { timers, pace: one, frames } = pace();
    one.news();
    timers.pass(10);
    one.news();
    one.key();
    timers.pass(40);
    expect(frames).to.deep.equal([0, 33]);
    timers.pass(1000);
    expect(frames).to.deep.equal([0, 33]);
  });

  it("spends at most a tenth of the time on slow frames, and waits at most a second between two", () => {
    const timers = new FakeTimers();
    let frames = 0;
    let cost = 50;
    const one = new FramePace(() => {
      frames += 1;
      timers.spend(cost);
    }, timers);
    const run = () => {
      frames = 0;
      for (let millisecond = 0; millisecond < 10_000; millisecond += 5) {
        one.news();
        timers.pass(5);
      }
      return frames;
    };
    expect(run()).to.be.within(18, 22);
    cost = 2000;
    expect(run()).to.be.within(5, 14);
  });

  it("draws nothing without events, and nothing after its end", () => {
    const { timers, pace: one, frames } = pace();
    timers.pass(10_000);
    one.news();
    one.close();
    one.key();
    timers.pass(10_000);
    expect(frames).to.deep.equal([]);
  });
});
