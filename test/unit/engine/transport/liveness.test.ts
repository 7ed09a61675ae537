import { expect } from "chai";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { watchLiveness } from "#engine/transport/liveness.ts";
import { FakeTimers } from "#support/fake-timers.ts";

describe("watchLiveness", () => {
  let time: FakeTimers;
  let silences: number;
  let socket: PassThrough;
  let stop: () => void;
  beforeEach(() => {
    time = new FakeTimers();
    silences = 0;
    socket = new PassThrough();
    stop = watchLiveness(socket, 25, () => silences++, time);
  });

  it("counts any byte as a sign of life, and reports silence once (F-2)", async () => {
    for (let ticks = 0; ticks < 4; ticks++) {
      const heard = once(socket, "data");
      socket.write("x");
      await heard;
      time.pass(24);
    }
    expect(silences).to.equal(0);
    time.pass(1);
    expect(silences).to.equal(1);
    time.pass(100);
    expect(silences).to.equal(1);
  });

  it("allows time to read the socket after this process itself was blocked", () => {
    time.spend(5000);
    time.pass(0);
    expect(silences).to.equal(0);
    time.pass(9);
    expect(silences).to.equal(1);
  });

  it("reports nothing after it was stopped", () => {
    stop();
    time.pass(100);
    expect(silences).to.equal(0);
  });
});
