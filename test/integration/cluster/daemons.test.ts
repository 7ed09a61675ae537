import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect } from "chai";
import { openApi } from "#api/client.ts";
import type { ApiClient, Credentials } from "#api/client.ts";
import type { NodeView } from "#api/schemas.ts";
import { foundHere } from "#controller/maintain.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { inventoryEntry } from "#pki/inventory.ts";
import type { CertificateEntry } from "#pki/inventory.ts";
import { codec, createTestCluster, eventually, issueTo, startDaemon, writeCredentials } from "#support/cluster.ts";
import type { Daemon, TestCluster } from "#support/cluster.ts";
import { hangLimit } from "#support/limit.ts";
import { freePort } from "#support/ports.ts";

describe("controller and agent as processes", () => {
  let cluster: TestCluster;
  let port: number;
  const controllerId = randomUUID();
  const nodeId = randomUUID();
  const daemons: Daemon[] = [];
  const clients: ApiClient[] = [];

  const controllerConfig = async (): Promise<{ readonly dbPath: string } & Record<string, unknown>> => ({
    listenAddr: `127.0.0.1:${port}`,
    dbPath: join(cluster.dir, "db"),
    tls: await writeCredentials(
      join(cluster.dir, "c"),
      "controller",
      issueTo(cluster.authority, "controller", controllerId),
    ),
    replication: { controllerId, dcId: "DC1" },
    staleAfterSecs: 1,
    staleCheckIntervalSecs: 0.2,
  });
  const startController = async (): Promise<Daemon> => {
    const configFile = join(cluster.dir, "controller.yaml");
    const config = await controllerConfig();
    if (!existsSync(config.dbPath)) {
      await mkdir(config.dbPath, { recursive: true, mode: 0o700 });
      await writeFile(configFile, printYaml(config));
      await foundHere({ configFile, now: Date.now(), yaml: codec });
    }
    const daemon = await startDaemon(["controller", "serve"], configFile, config);
    daemons.push(daemon);
    await daemon.logged("the controller listens");
    return daemon;
  };
  const startAgent = async (controllers: readonly string[] = [`127.0.0.1:${port}`]): Promise<Daemon> => {
    const daemon = await startDaemon(["agent", "run"], join(cluster.dir, "agent.yaml"), {
      nodeId,
      controllers,
      dcId: "DC1",
      labels: { tier: "ssd" },
      roles: ["worker"],
      tls: await writeCredentials(join(cluster.dir, "n"), "node", issueTo(cluster.authority, "node", nodeId)),
      heartbeatIntervalSecs: 0.2,
      stateDir: join(cluster.dir, "state"),
    });
    daemons.push(daemon);
    return daemon;
  };
  const client = (credentials: Credentials = cluster.operator): ApiClient => {
    const opened = openApi({ endpoint: { host: "127.0.0.1", port }, credentials, clock: Date.now });
    clients.push(opened);
    return opened;
  };
  const nodeInStatus = (status: string): Promise<NodeView> =>
    eventually(async () => (await client().call("listNodes", {})).nodes.find((node) => node.status === status));

  beforeEach(async () => {
    cluster = await createTestCluster();
    port = await freePort();
  });
  afterEach(async () => {
    for (const opened of clients.splice(0)) opened.close();
    for (const daemon of daemons.splice(0)) await daemon.end("SIGKILL");
    await cluster.remove();
  });

  it("shows a node not ready at once when its agent is stopped by TERM", async () => {
    await startController();
    const agent = await startAgent();
    await nodeInStatus("ready");
    expect(await agent.end("SIGTERM")).to.equal(0);
    const [node] = (await client().call("listNodes", {})).nodes;
    expect(node?.status).to.equal("not-ready");
    expect(node?.reason).to.equal("its agent was stopped");
    const status = JSON.parse(await readFile(join(cluster.dir, "state/status.json"), "utf8")) as {
      agent: { state: string };
    };
    expect(status.agent.state).to.equal("stopped");
  });

  it("shows a node not ready after the stale time when its agent is killed", async () => {
    await startController();
    const agent = await startAgent();
    await nodeInStatus("ready");
    await agent.end("SIGKILL");
    expect((await nodeInStatus("not-ready")).reason).to.match(/^no heartbeat since/);
  });

  it("registers again with a certificate that replaced the old one", async () => {
    await startController();
    const agent = await startAgent();
    const before = await nodeInStatus("ready");
    const next = issueTo(cluster.authority, "node", nodeId);
    // As the bastion does: what nobody recorded is not accepted for a node that is known by another key.
    await client().call("recordCertificate", inventoryEntry(next.cert) as CertificateEntry);
    await writeCredentials(join(cluster.dir, "n"), "node", next);
    await agent.logged("the certificate was reloaded");
    await eventually(async () => (await client().call("getNode", {}, { id: nodeId })).key !== before.key);
  });

  it("serves a certificate that replaced the old one, without a restart, and keeps the old one when the new is bad", async () => {
    const controller = await startController();
    const before = await servedSerial(port);
    const files = await writeCredentials(
      join(cluster.dir, "c"),
      "controller",
      issueTo(cluster.authority, "controller", controllerId),
    );
    await eventually(async () => (await servedSerial(port)) !== before);
    const renewed = await servedSerial(port);
    await writeFile(files.certFile, "garbage");
    await controller.logged("the new certificate cannot be used, the old one stays");
    expect(await servedSerial(port)).to.equal(renewed);
  });

  it("S-10: openssl s_client gets an answer with the operator's certificate and none without", async () => {
    await startController();
    await writeCredentials(join(cluster.dir, "op"), "kctl", cluster.operator);
    const at = (name: string): string => join(cluster.dir, "op", name);
    const own = ["-cert", at("kctl.crt"), "-key", at("kctl.key"), "-cert_chain", at("kctl.crt")];
    const trusted = ["-verify_return_error", "-CAfile", at("ca.crt"), "-verify_ip", "127.0.0.1"];
    const answered = await sClient(port, [...trusted, ...own]);
    expect(answered).to.contain("HTTP/1.1 200 OK");
    expect(answered).to.contain("TLSv1.3");
    expect(await sClient(port, trusted)).not.to.contain("HTTP/1.1");
    expect(await sClient(port, [...trusted, ...own, "-tls1_2"])).not.to.contain("HTTP/1.1");
  });

  it("S-10: a controller does not start with a node's certificate", async () => {
    const config = {
      ...(await controllerConfig()),
      tls: await writeCredentials(join(cluster.dir, "w"), "w", issueTo(cluster.authority, "node", nodeId)),
    };
    const daemon = await startDaemon(["controller", "serve"], join(cluster.dir, "wrong.yaml"), config);
    daemons.push(daemon);
    await eventually(() => daemon.child.exitCode !== null);
    expect(daemon.child.exitCode).to.equal(2);
    expect(daemon.log()).to.contain("is the certificate of a node, not of a controller");
  });
});

/** The serial of the certificate that a server shows. */
function servedSerial(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.serialNumber ?? "");
      socket.destroy();
    });
    socket.once("error", reject);
  });
}

/** What openssl's own client prints when it asks for /healthz. */
function sClient(port: number, options: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const child = execFile(
      "openssl",
      ["s_client", "-connect", `127.0.0.1:${port}`, "-ign_eof", ...options],
      { timeout: hangLimit },
      (_error, out, err) => resolve(out + err),
    );
    child.stdin?.on("error", () => undefined);
    child.stdin?.end("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  });
}
