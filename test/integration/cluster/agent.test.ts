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

  const addController = async (options: ControllerOptions = {}): Promise<TestController> => {
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
  /** A controller's record of the node, once the condition holds. */
  const nodeAt = (controller: TestController, isSo: (node: NodeDetail) => boolean): Promise<NodeDetail> =>
    eventually(async () => {
      const node = await detail(controller).catch(() => undefined);
      return node && isSo(node) ? node : undefined;
    });
  const readyNodeAt = (controller: TestController, since = ""): Promise<NodeDetail> =>
    nodeAt(controller, ({ status, lastSeen }) => status === "ready" && lastSeen > since);

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

  it("the agent registers with the facts of its machine", async () => {
    const controller = await addController();
    await startAgent([controller.endpoint], { config: { disableVxlan: true } });
    const node = await readyNodeAt(controller);
    expect(node).to.deep.include({ dc: "DC2", roles: ["worker"] });
    expect(node.labels["tier"]).to.equal("ssd");
    expect(node.cpu).to.be.greaterThan(0);
    expect(node.memory).to.be.greaterThan(1e8);
    expect(node.net?.disableVxlan).to.equal(true);
    expect(node.storage?.backend).to.equal("filesystem");
    expect(node.storage?.capacity).to.be.greaterThan(1e6);
  });

  it("the agent fails over to the next controller and back with the same identity (F-24)", async () => {
    const [a, dead] = [await addController(), await freePort()];
    const b = await addController({ sponsor: a });
    await startAgent([`127.0.0.1:${dead}`, a.endpoint, b.endpoint]);
    const before = await readyNodeAt(a);
    // Otherwise `b`, which does not know the node, would register it anew at another time.
    await nodeAt(b, ({ registered }) => registered === before.registered);
    await a.stop("SIGKILL");
    const meanwhile = await readyNodeAt(b, before.lastSeen);
    expect(meanwhile.key).to.equal(before.key);
    await a.start();
    await b.stop("SIGKILL");
    const after = await readyNodeAt(a, meanwhile.lastSeen);
    expect(after.registered).to.equal(before.registered);
  });

  it("F-27: the agent recovers without a new approval after all controllers were killed at once", async () => {
    const config = { requireManualApproval: true };
    const a = await addController({ config });
    const all = [a, await addController({ config, sponsor: a })];
    await startAgent(all.map(({ endpoint }) => endpoint));
    await nodeAt(a, ({ status }) => status === "pending");
    await a.operator.call("approveNode", {}, { id: nodeId });
    const { registered, lastSeen } = await readyNodeAt(a);
    await Promise.all(all.map((each) => readyNodeAt(each)));
    await Promise.all(all.map((each) => each.stop("SIGKILL")));
    await Promise.all(all.map((each) => each.start()));
    for (const each of all) expect(await readyNodeAt(each, lastSeen)).to.include({ registered, approval: "approved" });
  });

  it("the agent learns of further controllers only when it is configured to", async () => {
    const a = await addController();
    const b = await addController({ sponsor: a });
    const agent = await startAgent([a.endpoint], { config: { learnControllers: true } });
    await readyNodeAt(a);
    const line = await agent.logged("other controllers were learned of");
    expect(line["controllers"]).to.deep.equal([b.endpoint]);
    await a.stop("SIGKILL");
    const { lastSeen } = await readyNodeAt(b);
    await readyNodeAt(b, lastSeen);
  });

  it("the agent keeps its certificate when the renewal fails, and reports it once the certificate is about to expire", async () => {
    const controller = await addController({
      config: { subCa: { certFile: "/nonexistent/crt", keyFile: "/nonexistent/key" }, keyFolder: "/nonexistent" },
    });
    const agent = await startAgent([controller.endpoint], { now: Date.now() - 85 * dayMs });
    const before = await readFile(join(certFolder(), "node.crt"), "utf8");
    await agent.logged("the certificate was not renewed");
    await readyNodeAt(controller).catch(() => undefined);
    expect(await readFile(join(certFolder(), "node.crt"), "utf8")).to.equal(before);
    expect((await readdir(certFolder())).toSorted()).to.deep.equal(["ca.crt", "node.crt", "node.key", "state"]);
    const node = await nodeAt(controller, ({ reason }) => reason?.includes("is not renewed") === true);
    expect(node.status).to.equal("not-ready");
  });

  it("the agent serves its status without TLS on loopback, and elsewhere only to operators and controllers", async () => {
    const controller = await addController();
    await startAgent([controller.endpoint]);
    await readyNodeAt(controller);
    const status = await eventually(async () => {
      const page = JSON.parse(await getPlain("127.0.0.1", port, "/status")) as {
        agent?: { state?: string; registered?: boolean };
      };
      return page.agent?.registered === true ? page : undefined;
    });
    expect(status.agent?.state).to.equal("running");
    expect(JSON.parse(await getPlain("127.0.0.1", port, "/disks"))).to.have.property("disks");
    expect(JSON.parse(await getPlain("127.0.0.1", port, "/nics"))).to.have.property("nics");
    expect(JSON.parse(await getPlain("127.0.0.1", port, "/healthz"))).to.deep.equal({ ok: true });
    expect(JSON.parse(await getPlain("127.0.0.1", port, "/__proto__"))).to.have.property("code", "API_UNKNOWN");
    const own = ownAddress();
    if (own === undefined) return;
    expect(await getPlain(own, port, "/status").catch(() => "refused")).to.equal("refused");
    expect(await statusOverTls(own, port, cluster.operator)).to.equal(200);
    expect(await statusOverTls(own, port, issueTo(cluster.authority, "controller", controller.id))).to.equal(200);
    expect(await statusOverTls(own, port, issueTo(cluster.authority, "node", randomUUID()))).to.equal(403);
    expect(await statusOverTls(own, port, { ca: cluster.operator.ca }).catch(() => "refused")).to.equal("refused");
    const other = await createTestCluster();
    try {
      expect(
        await statusOverTls(own, port, { ...other.operator, ca: cluster.operator.ca }).catch(() => "refused"),
      ).to.equal("refused");
    } finally {
      await other.remove();
    }
  });

  it("S-11: the agent rejects a revoked key after one heartbeat, on open connections and after a restart", async function () {
    const own = ownAddress() ?? this.skip();
    const controller = await addController();
    const agent = await startAgent([controller.endpoint]);
    await readyNodeAt(controller);
    const stranger = issueTo(cluster.authority, "controller", randomUUID());
    const ways = [stranger, cluster.operator];
    for (const credentials of ways) expect(await statusOverTls(own, port, credentials)).to.equal(200);

    const listening = connect({ host: own, port, ...stranger, checkServerIdentity: () => undefined });
    await once(listening, "secureConnect");
    const cut = once(listening, "close");
    const { operator } = controller;
    await operator.call("revoke", { spki: spkiOf(stranger), reason: "test" });
    await cut;
    expect(await statusOverTls(own, port, stranger)).to.equal(403);
    expect(await statusOverTls(own, port, cluster.operator)).to.equal(200);
    await operator.call("revoke", { spki: spkiOf(cluster.operator), reason: "left" });
    await eventually(async () => (await statusOverTls(own, port, cluster.operator)) === 403);

    const list = join(certFolder(), "state", "revoked-keys.json");
    // The list is in force before it is on the disk.
    await eventually(async () => (await readFile(list, "utf8")).includes(spkiOf(cluster.operator)));
    expect((await stat(list)).mode & 0o777).to.equal(0o600);
    await controller.stop("SIGKILL");
    await agent.end("SIGKILL");
    await startAgent([controller.endpoint]).then((again) => again.logged("no controller accepted a heartbeat"));
    for (const credentials of ways) expect(await statusOverTls(own, port, credentials)).to.equal(403);
    expect(await getPlain("127.0.0.1", port, "/healthz")).to.contain("ok");
  });

  it("a node is not ready at once after SIGTERM to its agent, and after the stale time when the agent is killed", async () => {
    const controller = await addController({ config: { staleAfterSecs: 1, staleCheckIntervalSecs: 0.2 } });
    const agent = await startAgent([controller.endpoint]);
    await readyNodeAt(controller);
    expect(await agent.end("SIGTERM")).to.equal(0);
    expect(await detail(controller)).to.include({ status: "not-ready", reason: "its agent was stopped" });
    const status = JSON.parse(await readFile(join(certFolder(), "state/status.json"), "utf8")) as object;
    expect(status).to.have.nested.property("agent.state", "stopped");
    const again = await startAgent([controller.endpoint]);
    await readyNodeAt(controller);
    await again.end("SIGKILL");
    const { reason } = await nodeAt(controller, ({ status: now }) => now === "not-ready");
    expect(reason).to.match(/^no heartbeat since/);
  });

  it("the agent registers again when its certificate is replaced", async () => {
    const controller = await addController();
    const agent = await startAgent([controller.endpoint]);
    const before = await readyNodeAt(controller);
    const next = issueTo(cluster.authority, "node", nodeId);
    // As on the bastion: the controller accepts a known node's new key only once that key is recorded.
    await recordAt(controller, next);
    await writeCredentials(certFolder(), "node", next);
    await agent.logged("the certificate was reloaded");
    await nodeAt(controller, ({ key }) => key !== before.key);
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

function getPlain(host: string, port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host, port, path, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve(text));
    }).on("error", reject);
  });
}

function statusOverTls(host: string, port: number, credentials: Partial<Credentials>): Promise<number> {
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
