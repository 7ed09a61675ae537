import { expect } from "chai";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { watchLiveness } from "#engine/transport/liveness.ts";

describe("liveness", () => {
  it("counts any byte as a sign of life, and calls silence once (F-2)", async () => {
    const socket = new PassThrough();
    let silences = 0;
    const stop = watchLiveness(socket, 25, () => silences++);
    for (let ticks = 0; ticks < 4; ticks++) {
      socket.write("x");
      await sleep(10);
    }
    expect(silences).to.equal(0);
    await sleep(45);
    expect(silences).to.equal(1);
    stop();
  });

  it("says nothing after it was stopped", async () => {
    let silences = 0;
    watchLiveness(new PassThrough(), 10, () => silences++)();
    await sleep(25);
    expect(silences).to.equal(0);
  });
});
