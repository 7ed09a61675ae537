import { expect } from "chai";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { areAllInStep, startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";

describe("controllers that are killed", () => {
  let cluster: TestCluster;
  let controllers: readonly TestController[];
  let stop: () => Promise<void>;

  before(async () => {
    cluster = await createTestCluster();
    ({ controllers, stop } = await startControllers(cluster, 3, { processes: true, dcs: ["DC1", "DC1", "DC2"] }));
  });
  after(async () => {
    await stop();
    await cluster.remove();
  });

  it("lose nothing that was acknowledged when two of three are killed in the middle of writes", async () => {
    const acknowledged = new Map<string, number>();
    let isOn = true;
    const write = async (controller: TestController, who: number): Promise<void> => {
      for (let index = 0; isOn; index++) {
        const id = `Kill/w${who}-${index % 50}`;
        await controller.operator
          .call("putObject", { value: { index } }, { id })
          .then(() => acknowledged.set(id, index))
          .catch(() => sleep(50));
      }
    };
    const writers = controllers.flatMap((controller, place) =>
      [0, 1].map((half) => write(controller, place * 2 + half)),
    );
    const [, second, third] = controllers as [TestController, TestController, TestController];
    for (let round = 0; round < 3; round++) {
      await sleep(300 + 200 * round);
      await Promise.all([second.stop("SIGKILL"), third.stop("SIGKILL")]);
      await sleep(200);
      await Promise.all([second.start(), third.start()]);
    }
    await sleep(500);
    isOn = false;
    await Promise.all(writers);
    await eventually(() => areAllInStep(controllers));
    await eventually(async () => {
      const states = await Promise.all(controllers.map(({ operator }) => operator.call("replicationStatus", {})));
      return new Set(states.map(({ digest }) => digest)).size === 1;
    });
    for (const { operator } of controllers) {
      const { objects } = await operator.call("listObjects", {});
      const found = new Map(
        objects.map(({ kind, name, value }) => [`${kind}/${name}`, (value as { index: number }).index]),
      );
      const lost = [...acknowledged].filter(([id, index]) => (found.get(id) ?? -1) < index);
      expect(lost).to.deep.equal([]);
    }
    expect(acknowledged.size).to.be.greaterThan(100);
  });
});
