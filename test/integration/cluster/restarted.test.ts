import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { nodeCredentials, registrationOf, startController } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";

describe("a controller that was started again", () => {
  let cluster: TestCluster;
  let controller: TestController;
  const [alive, stopped] = [randomUUID(), randomUUID()];
  const statuses = async (): Promise<unknown> => {
    const { nodes } = await controller.operator.call("listNodes", {});
    return Object.fromEntries(nodes.map(({ id, status, reason }) => [id, reason ?? status]));
  };

  before(async () => {
    cluster = await createTestCluster();
    controller = await startController(cluster, { process: true, config: { staleCheckIntervalSecs: 0.2 } });
    const [first, second] = [alive, stopped].map((id) => controller.clientOf(nodeCredentials(cluster, id)));
    await first?.call("registerNode", registrationOf(alive));
    await second?.call("registerNode", registrationOf(stopped));
    await eventually(() => existsSync(join(controller.dbPath, "heard-nodes.json")));
    await second?.call("goodbye", { nodeId: stopped });
  });
  after(async () => {
    await controller?.end();
    await cluster?.remove();
  });

  it("C14: shows a live node Ready at once, and a stopped one with its reason", async () => {
    await controller.stop("SIGTERM");
    await controller.start();
    expect(await statuses()).to.deep.equal({ [alive]: "ready", [stopped]: "its agent was stopped" });
    const { nodes } = await controller.operator.call("ready", {});
    expect(nodes).to.deep.equal({ total: 2, ready: 1 });
  });

  it("C14: does so after a crash, too", async () => {
    await controller.stop("SIGKILL");
    await controller.start();
    expect(await statuses()).to.deep.equal({ [alive]: "ready", [stopped]: "its agent was stopped" });
  });
});
