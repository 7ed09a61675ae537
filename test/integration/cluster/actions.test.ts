import { randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { clusterHealth } from "#actions/cluster-health.ts";
import { clusterWaitReady } from "#actions/cluster-wait-ready.ts";
import { pkiCheckPassphrase } from "#actions/pki-check-passphrase.ts";
import { pkiIssueNode } from "#actions/pki-issue-node.ts";
import { runAgent } from "#agent/run.ts";
import { openApi } from "#api/client.ts";
import { createLog } from "#api/log.ts";
import { serveController } from "#controller/serve.ts";
import type { ActionContext } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/model.ts";
import { printYaml } from "#engine/source/plain.ts";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate } from "#pki/certificate.ts";
import { addController, loadContext } from "#pki/contexts.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import { codec, createTestCluster, freePort, issueTo, passphrase, writeCredentials } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { nodeEntry as rosterEntry } from "#support/runs.ts";

const silent = createLog({ write: () => undefined, clock: Date.now });

const nodeEntry = (name: string, id: string, changes: Partial<NodeEntry> = {}): NodeEntry =>
  rosterEntry(name, { id, address: "127.0.0.1", roles: ["worker"], ...changes });

describe("bastion actions against a real controller", function () {
  this.timeout(20_000);
  let cluster: TestCluster;
  let port: number;
  let stop: AbortController;
  let notes: string[];
  let asked: number;
  const running: Promise<void>[] = [];
  const nodeId: string = randomUUID();

  const contextFor = (node: NodeEntry, changes: Partial<ActionContext> = {}): ActionContext => ({
    runId: "20261121-r1",
    dryRun: false,
    project: cluster.dir,
    home: cluster.home,
    node,
    nodes: new Map([[node.name, node]]),
    targets: [],
    signal: stop.signal,
    note: (text) => notes.push(text),
    ask: () => Promise.reject(new Error("nothing is to be asked")),
    passphrase: async () => {
      asked++;
      return passphrase;
    },
    host: () => undefined,
    warn: (text) => notes.push(text),
    ...changes,
  });
  const startController = async (): Promise<void> => {
    const configFile = join(cluster.dir, "controller.yaml");
    const credentials = issueTo(cluster.authority, "controller", randomUUID());
    const tls = await writeCredentials(join(cluster.dir, "c"), "controller", credentials);
    await writeFile(configFile, printYaml({ listenAddr: `127.0.0.1:${port}`, dbPath: join(cluster.dir, "db"), tls }));
    await new Promise<void>((resolve, reject) => {
      const options = {
        configFile,
        parse: codec.parse,
        signal: stop.signal,
        log: silent,
        clock: Date.now,
        version: "1",
      };
      const served = serveController({ ...options, onListening: () => resolve() });
      running.push(served);
      served.catch(reject);
    });
  };
  const startAgent = async (cert: string, key: string): Promise<void> => {
    const configFile = join(cluster.dir, "agent.yaml");
    const tls = await writeCredentials(join(cluster.dir, "n"), "node", { ca: cluster.authority.rootPem, cert, key });
    const controllers = [`127.0.0.1:${port}`];
    await writeFile(
      configFile,
      printYaml({ nodeId, controllers, tls, stateDir: cluster.dir, heartbeatIntervalSecs: 0.2 }),
    );
    const options = { configFile, parse: codec.parse, signal: stop.signal, log: silent, clock: Date.now, version: "1" };
    running.push(runAgent({ ...options, random: Math.random }));
  };
  const problemOf = async (work: Promise<unknown>): Promise<string> => {
    const error = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return error instanceof KcoreError ? `${error.problems[0]?.code}: ${error.message}` : String(error);
  };
  const keyFor = (runId = "20261121-r1", id = nodeId) => {
    const key = generateKey();
    const proof = proveKey(key, `kcore proof of possession ${runId} ${id}`);
    const pem = key.export({ type: "pkcs8", format: "pem" }) as string;
    const facts = { spki: publicDer(key).toString("base64"), proof };
    return {
      key,
      pem,
      facts,
      args: { identity: { nodeKey: { facts }, controllerKey: { facts }, subCaKey: { facts } }, hosts: [] },
    };
  };

  beforeEach(async () => {
    cluster = await createTestCluster();
    port = await freePort();
    stop = new AbortController();
    notes = [];
    asked = 0;
  });
  afterEach(async () => {
    stop.abort();
    await Promise.allSettled(running.splice(0));
    await cluster.remove();
  });

  it("pki.issueNode issues once, asks for the passphrase only then, and keeps the certificate while it is valid", async () => {
    const { args } = keyFor();
    const context = contextFor(nodeEntry("n1", nodeId));
    expect(await pkiIssueNode.plan(args, context)).to.equal("unknown");
    const first = await pkiIssueNode.run(args, context);
    expect(first.changed).to.equal(true);
    expect(firstCertificate(String(first.outputs["nodeCert"])).subject).to.equal("CN=kcore-node-n1");
    expect(first.outputs).not.to.have.property("controllerCert");
    const second = await pkiIssueNode.run(args, context);
    expect(second).to.deep.equal({ changed: false, outputs: { ...first.outputs, changed: false } });
    expect(await pkiIssueNode.plan(args, context)).to.deep.equal(second);
    expect(asked).to.equal(1);
  });

  it("pki.issueNode gives a controller its own certificates, and issues anew when the key or the address changed", async () => {
    const [node, other, sub] = [keyFor(), keyFor(), keyFor()];
    const identity = { nodeKey: node, controllerKey: other, subCaKey: sub };
    const args = { ...node.args, identity };
    const entry = nodeEntry("n1", nodeId, { roles: ["controller"] });
    const { outputs } = await pkiIssueNode.run(args, contextFor(entry));
    const certificate = firstCertificate(String(outputs["controllerCert"]));
    expect(certificate.subject).to.equal("CN=kcore-controller-n1");
    expect(publicDer(certificate.publicKey).toString("base64")).to.equal(other.facts.spki);
    const subCa = firstCertificate(String(outputs["subCaCert"]));
    expect(publicDer(subCa.publicKey).toString("base64")).to.equal(sub.facts.spki);
    expect(subCa.subjectAltName).to.equal(`URI:kcore://lab/sub-ca/${nodeId}`);
    const moved = contextFor({ ...entry, address: "127.0.0.2" });
    expect((await pkiIssueNode.run(args, moved)).changed).to.equal(true);
    expect((await pkiIssueNode.run(keyFor().args, moved)).changed).to.equal(true);
    expect(asked, "one for the root, one for the bastion's sub-CA; the run asks the operator once").to.equal(2);
    expect(notes.join("\n")).to.contain("its names changed").and.to.contain("the key changed");
  });

  it("pki.issueNode keeps what a controller renewed, as it lies on the node, and issues where that is worth nothing", async () => {
    const key = keyFor();
    const context = contextFor(nodeEntry("n1", nodeId));
    await pkiIssueNode.run(keyFor().args, context);
    const renewed = issueTo(cluster.authority, "node", nodeId, { host: "n1", addresses: ["127.0.0.1"], key: key.key });
    const onNode = (certificate: string) => ({
      identity: { nodeKey: { facts: { ...key.facts, certificate: Buffer.from(certificate).toString("base64") } } },
      hosts: [],
    });
    const kept = await pkiIssueNode.run(onNode(renewed.cert), context);
    expect(kept).to.deep.include({ changed: false });
    expect(kept.outputs["nodeCert"]).to.equal(renewed.cert);
    expect(await readFile(join(cluster.home, "lab", "issued", `${nodeId}-node.crt`), "utf8")).to.equal(renewed.cert);
    expect((await pkiIssueNode.run(key.args, context)).changed, "the record is enough").to.equal(false);
    const stranger = await createTestCluster();
    try {
      const foreign = issueTo(stranger.authority, "node", nodeId, {
        host: "n1",
        addresses: ["127.0.0.1"],
        key: key.key,
      });
      const fresh = keyFor();
      const lies = { ...fresh.facts, certificate: Buffer.from(foreign.cert).toString("base64") };
      const args = { identity: { nodeKey: { facts: lies } }, hosts: [] };
      expect((await pkiIssueNode.run(args, context)).changed).to.equal(true);
    } finally {
      await stranger.remove();
    }
  });

  it("S-14: pki.issueNode refuses a proof from another run or for another node", async () => {
    const context = contextFor(nodeEntry("n1", nodeId));
    expect(await problemOf(pkiIssueNode.run(keyFor("other-run").args, context))).to.match(/^PKI_PROOF_INVALID/);
    expect(await problemOf(pkiIssueNode.run(keyFor("20261121-r1", "b").args, context))).to.match(/^PKI_PROOF_INVALID/);
  });

  it("pki.checkPassphrase finds a wrong passphrase, and asks for none", async () => {
    const context = contextFor(nodeEntry("n1", nodeId));
    await pkiCheckPassphrase.run({}, context);
    await pkiCheckPassphrase.run({}, { ...context, givenPassphrase: passphrase });
    const wrong = { ...context, givenPassphrase: `${passphrase}x` };
    expect(await problemOf(pkiCheckPassphrase.run({}, wrong))).to.match(/^PKI_PASSPHRASE_WRONG/);
    expect(asked).to.equal(0);
  });

  it("cluster.health is content without controllers, and names each that does not answer", async () => {
    const context = contextFor(nodeEntry("n1", nodeId));
    expect((await clusterHealth.run({ timeout: 1, settle: 0 }, context)).outputs["healthy"]).to.equal(true);
    await addController({ home: cluster.home, codec }, "lab", `127.0.0.1:${port}`);
    expect(await problemOf(clusterHealth.run({ timeout: 1, settle: 0 }, context))).to.match(
      /^API_UNREACHABLE: controller 127/,
    );
    const deploying = contextFor(nodeEntry("n1", nodeId), { targets: ["n1"] });
    expect((await clusterHealth.plan({ timeout: 1, settle: 0 }, deploying)) === "unknown").to.equal(false);
    await startController();
    expect((await clusterHealth.run({ timeout: 1, settle: 0 }, context)).outputs["controllers"]).to.deep.equal([
      { endpoint: `127.0.0.1:${port}`, host: "127.0.0.1", port, healthy: true },
    ]);
  });

  it("cluster.waitReady waits for the node's own registration with its present key", async () => {
    await startController();
    await addController({ home: cluster.home, codec }, "lab", `127.0.0.1:${port}`);
    const context = contextFor(nodeEntry("n1", nodeId));
    expect(await problemOf(clusterWaitReady.run({ timeout: 1, approvalTimeout: 1, port }, context))).to.contain(
      "it has not registered yet",
    );
    const { pem, args } = keyFor();
    const { outputs } = await pkiIssueNode.run(args, context);
    expect(await clusterWaitReady.plan({ timeout: 1, approvalTimeout: 1, port }, context)).to.equal("unknown");
    await startAgent(String(outputs["nodeCert"]), pem);
    const ready = await clusterWaitReady.run({ timeout: 10, approvalTimeout: 10, port }, context);
    expect(ready.outputs).to.include({ id: nodeId, status: "ready" });
    await pkiIssueNode.run(keyFor().args, context);
    expect(await problemOf(clusterWaitReady.run({ timeout: 1, approvalTimeout: 1, port }, context))).to.contain(
      "not registered with its new key",
    );
  });

  it("cluster.waitReady waits for a controller's own endpoint and notes it in the context, once", async () => {
    const context = contextFor(nodeEntry("n1", nodeId, { roles: ["controller", "worker"] }));
    expect(await problemOf(clusterWaitReady.run({ timeout: 1, approvalTimeout: 1, port }, context))).to.contain(
      "ECONNREFUSED",
    );
    await startController();
    const { pem, args } = keyFor();
    const { outputs } = await pkiIssueNode.run(args, context);
    await startAgent(String(outputs["nodeCert"]), pem);
    await clusterWaitReady.run({ timeout: 10, approvalTimeout: 10, port }, context);
    await clusterWaitReady.run({ timeout: 10, approvalTimeout: 10, port }, context);
    expect((await loadContext({ home: cluster.home, codec })).controllers).to.deep.equal([`127.0.0.1:${port}`]);
  });

  it("cluster.waitReady says at once that a node was rejected, and names what it waits for otherwise", async () => {
    await startController();
    await addController({ home: cluster.home, codec }, "lab", `127.0.0.1:${port}`);
    const context = contextFor(nodeEntry("n1", nodeId));
    const { pem, args } = keyFor();
    const { outputs } = await pkiIssueNode.run(args, context);
    await startAgent(String(outputs["nodeCert"]), pem);
    await clusterWaitReady.run({ timeout: 10, approvalTimeout: 10, port }, context);
    const { ca, cert, key } = await loadContext({ home: cluster.home, codec });
    const client = openApi({ endpoint: { host: "127.0.0.1", port }, credentials: { ca, cert, key }, clock: Date.now });
    await client.call("rejectNode", {}, { id: nodeId });
    client.close();
    expect(await problemOf(clusterWaitReady.run({ timeout: 10, approvalTimeout: 10, port }, context))).to.match(
      /^NODE_REJECTED/,
    );
  });

  it("cluster.waitReady says where to begin when no controller is known, and stops with its run", async () => {
    const context = contextFor(nodeEntry("n1", nodeId));
    expect(await problemOf(clusterWaitReady.run({ timeout: 5, approvalTimeout: 5, port }, context))).to.match(
      /^CLUSTER_UNKNOWN/,
    );
    await addController({ home: cluster.home, codec }, "lab", `127.0.0.1:${port}`);
    setTimeout(() => stop.abort(), 100);
    expect(await problemOf(clusterWaitReady.run({ timeout: 60, approvalTimeout: 60, port }, context))).to.contain(
      "abort",
    );
  });

  it("leaves the issued certificates in the context, and never a key", async () => {
    await pkiIssueNode.run(keyFor().args, contextFor(nodeEntry("n1", nodeId)));
    const text = await readFile(join(cluster.home, "lab/issued", `${nodeId}-node.crt`), "utf8");
    expect(text.match(/BEGIN CERTIFICATE/g)?.length).to.equal(2);
    expect(text).not.to.contain("PRIVATE");
  });
});
