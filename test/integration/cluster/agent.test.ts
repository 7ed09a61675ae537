import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, stat } from "node:fs/promises";
import { get } from "node:http";
import { request } from "node:https";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect } from "chai";
import type { Credentials } from "#api/client.ts";
import type { NodeDetail } from "#api/schemas.ts";
import { createTestCluster, eventually, issueTo, startDaemon, writeCredentials } from "#support/cluster.ts";
import type { Daemon, TestCluster } from "#support/cluster.ts";
import { prepareController, recordAt, spkiOf, startController } from "#support/controllers.ts";
import type { ControllerOptions, TestController } from "#support/controllers.ts";
import { freePort } from "#support/ports.ts";

const dayMs = 86_400_000;

describe("controllers and agents as processes", () => {
  let cluster: TestCluster;
  let nodeId: string;
  let port: number;
  let credentials: Credentials | undefined;
  const controllers: TestController[] = [];
  const agents: Daemon[] = [];

  const control = async (options: ControllerOptions = {}): Promise<TestController> => {
    const controller = await startController(cluster, { process: true, ...options });
    controllers.push(controller);
    return controller;
  };
  const certFolder = (): string => join(cluster.dir, nodeId);
  const startAgent = async (
    endpoints: readonly string[],
    { config = {}, now = Date.now() }: { readonly config?: object; readonly now?: number } = {},
  ): Promise<Daemon> => {
    credentials ??= issueTo(cluster.authority, "node", nodeId, { now });
    const [known] = controllers;
    if (known && agents.length === 0) await recordAt(known, credentials);
    const agent = await startDaemon(["agent", "run"], join(cluster.dir, "agent.yaml"), {
      nodeId,
      listenAddr: `0.0.0.0:${port}`,
      controllers: endpoints,
      dcId: "DC2",
      labels: { tier: "ssd" },
      roles: ["worker"],
      tls: await writeCredentials(certFolder(), "node", credentials),
      heartbeatIntervalSecs: 0.2,
      stateDir: join(certFolder(), "state"),
      ...config,
    });
    agents.push(agent);
    return agent;
  };
  const detail = (controller: TestController): Promise<NodeDetail> =>
    controller.operator.call("getNode", {}, { id: nodeId });
  /** A controller's view of the node, once the condition holds. */
  const isAt = (controller: TestController, isSo: (node: NodeDetail) => boolean): Promise<NodeDetail> =>
    eventually(async () => {
      const node = await detail(controller).catch(() => undefined);
      return node && isSo(node) ? node : undefined;
    });
  const isReadyAt = (controller: TestController, since = ""): Promise<NodeDetail> =>
    isAt(controller, ({ status, lastSeen }) => status === "ready" && lastSeen > since);

  before(async () => (cluster = await createTestCluster()));
  after(() => cluster.remove());
  beforeEach(async () => {
    nodeId = randomUUID();
    credentials = undefined;
    port = await freePort();
  });
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.end("SIGKILL");
    for (const controller of controllers.splice(0)) await controller.end();
  });

  it("registers with the facts of its machine", async () => {
    const controller = await control();
    await startAgent([controller.endpoint], { config: { disableVxlan: true } });
    const node = await isReadyAt(controller);
    expect(node).to.deep.include({ dc: "DC2", roles: ["worker"] });
    expect(node.labels["tier"]).to.equal("ssd");
    expect(node.cpu).to.be.greaterThan(0);
    expect(node.memory).to.be.greaterThan(1e8);
    expect(node.net?.disableVxlan).to.equal(true);
    expect(node.storage?.backend).to.equal("filesystem");
    expect(node.storage?.capacity).to.be.greaterThan(1e6);
  });

  it("goes over to the next controller and back with the same identity (F-24)", async () => {
    const [a, dead] = [await control(), await freePort()];
    const b = await control({ sponsor: a });
    await startAgent([`127.0.0.1:${dead}`, a.endpoint, b.endpoint]);
    const before = await isReadyAt(a);
    // Otherwise `b`, which does not know the node, would register it anew at another time.
    await isAt(b, ({ registered }) => registered === before.registered);
    await a.stop("SIGKILL");
    const meanwhile = await isReadyAt(b, before.lastSeen);
    expect(meanwhile.key).to.equal(before.key);
    await a.start();
    await b.stop("SIGKILL");
    const after = await isReadyAt(a, meanwhile.lastSeen);
    expect(after.registered).to.equal(before.registered);
  });

  it("F-27: comes back by itself, and needs no new approval, when all controllers were killed at once", async () => {
    const config = { requireManualApproval: true };
    const a = await control({ config });
    const all = [a, await control({ config, sponsor: a })];
    await startAgent(all.map(({ endpoint }) => endpoint));
    await isAt(a, ({ status }) => status === "pending");
    await a.operator.call("approveNode", {}, { id: nodeId });
    const { registered, lastSeen } = await isReadyAt(a);
    await Promise.all(all.map((each) => isReadyAt(each)));
    await Promise.all(all.map((each) => each.stop("SIGKILL")));
    await Promise.all(all.map((each) => each.start()));
    for (const each of all) expect(await isReadyAt(each, lastSeen)).to.include({ registered, approval: "approved" });
  });

  it("learns of further controllers only when told to", async () => {
    const a = await control();
    const b = await control({ sponsor: a });
    const agent = await startAgent([a.endpoint], { config: { learnControllers: true } });
    await isReadyAt(a);
    const line = await agent.logged("other controllers were learned of");
    expect(line["controllers"]).to.deep.equal([b.endpoint]);
    await a.stop("SIGKILL");
    const { lastSeen } = await isReadyAt(b);
    await isReadyAt(b, lastSeen);
  });

  it("keeps its certificate when the renewal fails, and says so when it becomes urgent", async () => {
    const controller = await control({
      config: { subCa: { certFile: "/nonexistent/crt", keyFile: "/nonexistent/key" }, keyFolder: "/nonexistent" },
    });
    const agent = await startAgent([controller.endpoint], { now: Date.now() - 85 * dayMs });
    const before = await readFile(join(certFolder(), "node.crt"), "utf8");
    await agent.logged("the certificate was not renewed");
    await isReadyAt(controller).catch(() => undefined);
    expect(await readFile(join(certFolder(), "node.crt"), "utf8")).to.equal(before);
    expect((await readdir(certFolder())).toSorted()).to.deep.equal(["ca.crt", "node.crt", "node.key", "state"]);
    const node = await isAt(controller, ({ reason }) => reason?.includes("is not renewed") === true);
    expect(node.status).to.equal("not-ready");
  });

  it("tells its status on loopback in plain, and outside only to operators and controllers", async () => {
    const controller = await control();
    await startAgent([controller.endpoint]);
    await isReadyAt(controller);
    const status = await eventually(async () => {
      const page = JSON.parse(await plain("127.0.0.1", port, "/status")) as {
        agent?: { state?: string; registered?: boolean };
      };
      return page.agent?.registered === true ? page : undefined;
    });
    expect(status.agent?.state).to.equal("running");
    expect(JSON.parse(await plain("127.0.0.1", port, "/disks"))).to.have.property("disks");
    expect(JSON.parse(await plain("127.0.0.1", port, "/nics"))).to.have.property("nics");
    expect(JSON.parse(await plain("127.0.0.1", port, "/healthz"))).to.deep.equal({ ok: true });
    expect(JSON.parse(await plain("127.0.0.1", port, "/__proto__"))).to.have.property("code", "API_UNKNOWN");
    const own = ownAddress();
    if (own === undefined) return;
    expect(await plain(own, port, "/status").catch(() => "refused")).to.equal("refused");
    expect(await secure(own, port, cluster.operator)).to.equal(200);
    expect(await secure(own, port, issueTo(cluster.authority, "controller", controller.id))).to.equal(200);
    expect(await secure(own, port, issueTo(cluster.authority, "node", randomUUID()))).to.equal(403);
    expect(await secure(own, port, { ca: cluster.operator.ca }).catch(() => "refused")).to.equal("refused");
    const other = await createTestCluster();
    try {
      expect(await secure(own, port, { ...other.operator, ca: cluster.operator.ca }).catch(() => "refused")).to.equal(
        "refused",
      );
    } finally {
      await other.remove();
    }
  });

  it("S-11: answers no revoked key outside once a heartbeat told it, on open connections and after a restart", async function () {
    const own = ownAddress() ?? this.skip();
    const controller = await control();
    const agent = await startAgent([controller.endpoint]);
    await isReadyAt(controller);
    const stranger = issueTo(cluster.authority, "controller", randomUUID());
    const ways = [stranger, cluster.operator];
    for (const credentials of ways) expect(await secure(own, port, credentials)).to.equal(200);

    const listening = connect({ host: own, port, ...stranger, checkServerIdentity: () => undefined });
    await once(listening, "secureConnect");
    const cut = once(listening, "close");
    const { operator } = controller;
    await operator.call("revoke", { spki: spkiOf(stranger), reason: "test" });
    await cut;
    expect(await secure(own, port, stranger)).to.equal(403);
    expect(await secure(own, port, cluster.operator)).to.equal(200);
    await operator.call("revoke", { spki: spkiOf(cluster.operator), reason: "left" });
    await eventually(async () => (await secure(own, port, cluster.operator)) === 403);

    const list = join(certFolder(), "state", "revoked-keys.json");
    // The list is in force before it is on the disk.
    await eventually(async () => (await readFile(list, "utf8")).includes(spkiOf(cluster.operator)));
    expect((await stat(list)).mode & 0o777).to.equal(0o600);
    await controller.stop("SIGKILL");
    await agent.end("SIGKILL");
    await startAgent([controller.endpoint]).then((again) => again.logged("no controller accepted a heartbeat"));
    for (const credentials of ways) expect(await secure(own, port, credentials)).to.equal(403);
    expect(await plain("127.0.0.1", port, "/healthz")).to.contain("ok");
  });

  it("shows a node not ready at once when its agent is stopped by TERM, and after the stale time when it is killed", async () => {
    const controller = await control({ config: { staleAfterSecs: 1, staleCheckIntervalSecs: 0.2 } });
    const agent = await startAgent([controller.endpoint]);
    await isReadyAt(controller);
    expect(await agent.end("SIGTERM")).to.equal(0);
    expect(await detail(controller)).to.include({ status: "not-ready", reason: "its agent was stopped" });
    const status = JSON.parse(await readFile(join(certFolder(), "state/status.json"), "utf8")) as object;
    expect(status).to.have.nested.property("agent.state", "stopped");
    const again = await startAgent([controller.endpoint]);
    await isReadyAt(controller);
    await again.end("SIGKILL");
    const { reason } = await isAt(controller, ({ status: now }) => now === "not-ready");
    expect(reason).to.match(/^no heartbeat since/);
  });

  it("registers again with a certificate that replaced the old one", async () => {
    const controller = await control();
    const agent = await startAgent([controller.endpoint]);
    const before = await isReadyAt(controller);
    const next = issueTo(cluster.authority, "node", nodeId);
    // As on the bastion: a known node is accepted by another key only if the key is recorded.
    await recordAt(controller, next);
    await writeCredentials(certFolder(), "node", next);
    await agent.logged("the certificate was reloaded");
    await isAt(controller, ({ key }) => key !== before.key);
  });

  it("S-10: a controller does not start with a node's certificate", async () => {
    const wrong = await prepareController(cluster, { process: true });
    controllers.push(wrong);
    await writeCredentials(wrong.folder, "controller", issueTo(cluster.authority, "node", nodeId));
    expect(await wrong.start().then(() => "it started", String)).to.contain(
      "is the certificate of a node, not of a controller",
    );
  });
});

/** An address of this machine that is not loopback; connections to itself have it on both ends. */
function ownAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === "IPv4" && !one.internal)?.address;
}

function plain(host: string, port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host, port, path, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve(text));
    }).on("error", reject);
  });
}

function secure(host: string, port: number, credentials: Partial<Credentials>): Promise<number> {
  return new Promise((resolve, reject) => {
    // The certificate's name differs from the address; this test does not depend on the server's identity.
    const options = { host, port, path: "/status", agent: false, ...credentials, checkServerIdentity: () => undefined };
    request(options, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });
}
