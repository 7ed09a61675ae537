import { X509Certificate, randomUUID } from "node:crypto";
import { globSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { NodeDetail } from "#api/schemas.ts";
import { createTestCluster, eventually, issueTo, startDaemon, writeCredentials } from "#support/cluster.ts";
import type { Daemon, TestCluster } from "#support/cluster.ts";
import { recordAt, startController } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";

const dayMs = 86_400_000;
const preload = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1")[0] ?? "libfaketime is missing: apt install faketime";

describe("the agent's certificate as the days go by (libfaketime)", () => {
  let cluster: TestCluster;
  let controller: TestController;
  let agent: Daemon;
  let clockFile: string;
  const nodeId = randomUUID();
  const certificate = async (): Promise<X509Certificate> =>
    new X509Certificate(await readFile(join(cluster.dir, "node", "node.crt")));
  const detail = (): Promise<NodeDetail> => controller.operator.call("getNode", {}, { id: nodeId });

  /** Processes that `start` starts read their wall clock from a file; timers run as usual. */
  const inFakeTime = async <Result>(start: () => Promise<Result>): Promise<Result> => {
    const fake = {
      LD_PRELOAD: preload,
      FAKETIME_TIMESTAMP_FILE: clockFile,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
    Object.assign(process.env, fake);
    try {
      return await start();
    } finally {
      for (const name of Object.keys(fake)) delete process.env[name];
    }
  };

  const startAgent = async (tls: object): Promise<void> => {
    agent = await inFakeTime(() =>
      startDaemon(["agent", "run"], join(cluster.dir, "agent.yaml"), {
        nodeId,
        listenAddr: "127.0.0.1:0",
        controllers: [controller.endpoint],
        tls,
        heartbeatIntervalSecs: 0.2,
        stateDir: join(cluster.dir, "state"),
      }),
    );
  };
  const isReady = (): Promise<unknown> =>
    eventually(async () => (await detail().catch(() => undefined))?.status === "ready");

  beforeEach(async () => {
    cluster = await createTestCluster();
    clockFile = join(cluster.dir, "clock");
    await writeFile(clockFile, "+0d\n");
    controller = await inFakeTime(() => startController(cluster, { process: true }));
  });
  afterEach(async () => {
    await agent.end("SIGKILL");
    await controller.end();
    await cluster.remove();
  });

  it("S-14: is kept while more than 30 days are left, then renewed without a restart or a missed heartbeat", async () => {
    const issued = issueTo(cluster.authority, "node", nodeId);
    await recordAt(controller, issued);
    await startAgent(await writeCredentials(join(cluster.dir, "node"), "node", issued));
    await isReady();
    const jumped = Date.now();
    await writeFile(clockFile, "+59d\n");
    await eventually(async () => Date.parse((await detail()).lastSeen) > jumped + 59 * dayMs + 1000);
    expect(agent.log()).not.to.contain("is being renewed");

    const before = await certificate();
    const { registered } = await detail();
    await writeFile(clockFile, "+60d\n");
    await agent.logged("the certificate was renewed");
    const after = await certificate();
    expect(after.validToDate.getTime()).to.be.greaterThan(before.validToDate.getTime() + 59 * dayMs);
    const node = await eventually(async () => {
      const found = await detail();
      return found.certificateExpires === after.validToDate.toISOString() ? found : undefined;
    });
    expect(node.status).to.equal("ready");
    expect(node.registered).to.equal(registered);
    await eventually(async () => (await detail()).lastSeen > node.lastSeen);
    expect(agent.log()).not.to.match(/no controller accepted a heartbeat|a controller could not be used/);
    expect(agent.log().split("the agent starts")).to.have.length(2);
    expect(agent.child.exitCode).to.equal(null);
  });
});
