import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { areAllInStep, nodeCredentials, registrationOf, startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";

describe("three controllers", function () {
  this.timeout(60_000);
  let cluster: TestCluster;
  let controllers: readonly TestController[];
  let stop: () => Promise<void>;
  const at = (index: number): TestController => controllers[index] as TestController;

  before(async () => {
    cluster = await createTestCluster();
    ({ controllers, stop } = await startControllers(cluster, 3, { dcs: ["DC1", "DC1", "DC2"] }));
  });
  after(async () => {
    await stop();
    await cluster.remove();
  });

  it("list each other, wherever one asks", async () => {
    for (const { operator } of controllers) {
      const list = (await operator.call("listControllers", {})).controllers;
      expect(list.map(({ controllerId }) => controllerId).toSorted()).to.deep.equal(
        controllers.map(({ id }) => id).toSorted(),
      );
      expect(list.map(({ dc }) => dc).toSorted()).to.deep.equal(["DC1", "DC1", "DC2"]);
    }
  });

  it("show a node that registered at one of them everywhere, ready", async () => {
    const id = randomUUID();
    await at(0).clientOf(nodeCredentials(cluster, id)).call("registerNode", registrationOf(id));
    for (const { operator } of controllers) {
      await eventually(async () => {
        const { nodes } = await operator.call("listNodes", {});
        return nodes.find((node) => node.id === id)?.status === "ready";
      });
    }
    expect(await areAllInStep(controllers)).to.equal(true);
  });
});
