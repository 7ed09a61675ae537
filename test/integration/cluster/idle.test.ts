import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { createTestCluster } from "#support/cluster.ts";
import { startControllers } from "#support/controllers.ts";
import { rateOf, useOf } from "#support/process-use.ts";

describe("three idle controllers", () => {
  it("wake a few times a second, for pings only", async () => {
    const cluster = await createTestCluster();
    const { controllers, stop } = await startControllers(cluster, 3, { processes: true });
    try {
      for (const { operator } of controllers) operator.close();
      // The count begins after the start; as a measurement, it has no event to wait for.
      await sleep(15_000);
      const before = controllers.map((each) => useOf(each.pid()));
      await sleep(15_000);
      const rates = before.map(rateOf);
      // `npm run bench:cluster` has the goal of 5; V8 still compiles for some minutes.
      for (const { byThread, wakes } of rates) expect(wakes, JSON.stringify(byThread)).to.be.lessThan(15);
    } finally {
      await stop();
      await cluster.remove();
    }
  });
});
