import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { askFirst } from "#api/ask.ts";
import { openApi } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import type { KcoreError, Problem } from "#errors/problem.ts";
import { createTestCluster, eventually, issueTo, startDaemon, writeCredentials } from "#support/cluster.ts";
import type { Daemon, TestCluster } from "#support/cluster.ts";
import { recordAt, startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { findLost, timeToAgree } from "#support/partitions.ts";

/** Longer than any client waits; a run by hand can have 30 s. */
const pauseMs = Number(process.env["KCORE_PAUSE_MS"] ?? 7_000);
/** Until a client gives a stopped one up; those that run answer sooner, on a busy machine too. */
const giveUpMs = 5_000;

describe("a controller that is stopped for a while (SIGSTOP)", () => {
  let cluster: TestCluster;
  let controllers: readonly [TestController, TestController, TestController];
  let stop: () => Promise<void>;
  let agent: Daemon;
  const nodeId = randomUUID();

  beforeEach(async () => {
    cluster = await createTestCluster();
    const started = await startControllers(cluster, 3, { processes: true, dcs: ["DC1", "DC1", "DC2"] });
    controllers = started.controllers as typeof controllers;
    ({ stop } = started);
    const credentials = issueTo(cluster.authority, "node", nodeId);
    await recordAt(controllers[0], credentials);
    await timeToAgree(controllers);
    agent = await startDaemon(["agent", "run"], join(cluster.dir, "agent.yaml"), {
      nodeId,
      listenAddr: "127.0.0.1:0",
      controllers: controllers.map(({ endpoint }) => endpoint),
      tls: await writeCredentials(join(cluster.dir, "node"), "node", credentials),
      heartbeatIntervalSecs: 0.5,
      stateDir: join(cluster.dir, "state"),
    });
  });
  afterEach(async () => {
    await agent.end("SIGKILL");
    await stop();
    await cluster.remove();
  });

  const put = (controller: TestController, id: string, number: number): Promise<unknown> =>
    controller.operator.call("putObject", { value: { number } }, { id });
  const nodeAt = async (controller: TestController): Promise<{ status: string; lastSeen: string }> =>
    controller.operator.call("getNode", {}, { id: nodeId });

  it("F-31: is seen, gone round, and back in step when it goes on, with nothing lost or carried out late", async () => {
    const [paused, second, third] = controllers;
    const acknowledged = new Map<string, number>();
    const write = async (controller: TestController, id: string, number: number): Promise<void> => {
      await put(controller, id, number);
      acknowledged.set(id, number);
    };
    await eventually(async () => (await nodeAt(paused).catch(() => undefined))?.status === "ready");
    await write(paused, "Pause/both", 1);
    for (let number = 1; number <= 50; number++) await write(paused, `Pause/before-${number}`, 1);
    await timeToAgree(controllers);

    // An operator who has a connection, asks, and gives up.
    const client = openApi({
      endpoint: parseEndpoint(paused.endpoint),
      credentials: cluster.operator,
      clock: Date.now,
      timeoutMs: giveUpMs,
    });
    await client.call("ready", {});
    process.kill(paused.pid(), "SIGSTOP");
    const stoppedAt = performance.now();
    try {
      const abandoned = client.call("putObject", { value: { number: 100 } }, { id: "Pause/both" }).then(
        () => "told",
        () => "given up",
      );
      const states = new Set<string>();
      await eventually(async () => {
        const { peers } = await second.operator.call("replicationStatus", {});
        const peer = peers.find(({ controllerId }) => controllerId === paused.id);
        states.add(peer?.state ?? "");
        return peer?.inStep === false && peer.state !== "connected";
      });
      expect([...states]).to.include.oneOf(["suspect", "down", "connecting"]);
      expect(await abandoned).to.equal("given up");
      await write(second, "Pause/both", 2);
      for (let number = 1; number <= 50; number++) await write(third, `Pause/during-${number}`, 1);

      // The agent goes over, and so does an operator who names them all.
      const before = Date.now();
      await eventually(async () => Date.parse((await nodeAt(second)).lastSeen) > before);
      expect((await nodeAt(third)).status).to.equal("ready");
      const skipped: Problem[] = [];
      const asked = {
        endpoints: controllers.map(({ endpoint }) => endpoint),
        credentials: cluster.operator,
        clock: Date.now,
        timeoutMs: giveUpMs,
        onFailed: ({ problems }: KcoreError) => void skipped.push(...problems),
      };
      const { nodes } = await askFirst(asked, (each) => each.call("listNodes", {}));
      expect(nodes.map(({ status }) => status)).to.deep.equal(["ready"]);
      expect(skipped.map(({ code }) => code)).to.deep.equal(["API_UNREACHABLE"]);
      await sleep(Math.max(0, pauseMs - (performance.now() - stoppedAt)));
    } finally {
      process.kill(paused.pid(), "SIGCONT");
      client.close();
    }

    await timeToAgree(controllers);
    // Whoever asks now is answered: it does not think its clock wrong.
    await eventually(async () =>
      put(paused, "Pause/after", 1)
        .then(() => true)
        .catch(() => false),
    );
    acknowledged.set("Pause/after", 1);
    await timeToAgree(controllers);
    expect(await findLost(controllers, acknowledged)).to.deep.equal([]);
    for (const { operator } of controllers) {
      const { value } = await operator.call("getObject", {}, { id: "Pause/both" });
      expect(value).to.deep.equal({ number: 2 });
      expect((await operator.call("listConflicts", {})).conflicts).to.deep.equal([]);
      await eventually(async () => (await operator.call("getNode", {}, { id: nodeId })).status === "ready");
    }
  });
});
