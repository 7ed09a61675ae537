import { setImmediate as turn } from "node:timers/promises";
import { startOwnerLoop, type OwnerLoopParts } from "#controller/updates/owner-loop.ts";

describe("the loop of an update's owner", () => {
  it("looks while something changes all the time", async () => {
    let looked = 0;
    const index = { all: () => (looked++, []), names: () => [], read: () => undefined, stop: () => undefined };
    const loop = startOwnerLoop({ index, controllerId: "c1" } as unknown as OwnerLoopParts);
    while (looked === 0) {
      loop.nudge(["u"]);
      await turn();
    }
    await loop.stop();
  });
});
