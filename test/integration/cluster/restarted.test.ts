import { randomUUID } from "node:crypto";
import { createWriteStream, existsSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { expect } from "chai";
import { tasksAsLines } from "#base/tasks.ts";
import { repairHere, restoreHere } from "#controller/restore-state.ts";
import { codec, createTestCluster, eventually } from "#support/cluster.ts";
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

  for (const signal of ["SIGTERM", "SIGKILL"] as const)
    it(`shows a live node as ready at once, and a stopped one with its reason, after ${signal}`, async () => {
      await controller.stop(signal);
      await controller.start();
      expect(await statuses()).to.deep.equal({ [alive]: "ready", [stopped]: "its agent was stopped" });
      const { nodes } = await controller.operator.call("ready", {});
      expect(nodes).to.deep.equal({ total: 2, ready: 1 });
    });

  it("reports that it has to catch up after a restore, and no empty state", async () => {
    // A second, unreachable member is registered, because a sole member has no controller to catch up with.
    const other = { spki: "0".repeat(64), address: "127.0.0.1:1", dc: "DC2" };
    await controller.operator.call("registerController", other, { id: randomUUID() });
    const backup = join(cluster.dir, "lab-backup");
    const stream = await controller.operator.open("backup", {});
    await pipeline(stream, createWriteStream(backup));
    await controller.stop();
    const configFile = join(controller.folder, "controller.yaml");
    const told: string[] = [];
    const tasks = tasksAsLines((line) => void told.push(line));
    const options = { configFile, now: Date.now(), yaml: codec, alone: false, output: "table", tasks } as const;
    const [restored] = await restoreHere(backup, options);
    expect(restored).to.match(/^restored \d\d registers from .*lab-backup: 0 objects, 2 nodes, 2 controllers$/);
    expect(told.join("; ")).to.match(/^copying \S+lab-backup to \S+; [\d.]+ kB; replacing the state in \S+$/);
    told.length = 0;
    await repairHere({ ...options, now: options.now + 1 });
    expect(told.join("; ")).to.match(
      /^recovering what is intact in \S+; looking for writes that a clock stamped ahead/,
    );
    await controller.start();
    const { ready, reason, warnings } = await controller.operator.call("ready", {});
    expect([ready, warnings.filter((text) => text.includes("EMPTY_STATE"))]).to.deep.equal([false, []]);
    expect(reason).to.contain("it was put back or mended");
  });
});
