import { createPrivateKey, createPublicKey, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { clusterCheckRemoved } from "#actions/cluster-check-removed.ts";
import { clusterHealth } from "#actions/cluster-health.ts";
import { clusterRecord } from "#actions/cluster-record.ts";
import { clusterRegisterController } from "#actions/cluster-register-controller.ts";
import { clusterWaitReady } from "#actions/cluster-wait-ready.ts";
import { pkiIssueNode } from "#actions/pki-issue-node.ts";
import { runAgent } from "#agent/run.ts";
import type { Credentials } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { createLog } from "#api/log.ts";
import type { Bootstrap } from "#controller/controller-config.ts";
import type { ActionContext } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { KcoreError } from "#errors/problem.ts";
import { issueCertificate } from "#pki/certificate.ts";
import { openRoot } from "#pki/cluster.ts";
import { inventoryEntry } from "#pki/issued.ts";
import { issueSubCa } from "#pki/sub-ca.ts";
import { firstCertificate } from "#pki/chain.ts";
import { addController, changeControllers, contextFolder, loadContext, removeController } from "#pki/contexts.ts";
import { generateKey, keyFingerprint, proveKey, publicDer } from "#pki/keys.ts";
import {
  codec,
  createTestCluster,
  eventually,
  issueTo,
  passphrase,
  writeCredentials,
  type TestCluster,
} from "#support/cluster.ts";
import { registrationOf, spkiOf, startControllers, type TestController } from "#support/controllers.ts";
import { rejectionOf } from "#support/rejection.ts";
import { nodeEntry as rosterEntry } from "#support/runs.ts";

const unsupervised = { ready: () => undefined, stopping: () => undefined };
const silent = createLog({ write: () => undefined, clock: Date.now });

const nodeEntry = (name: string, id: string, changes: Partial<NodeEntry> = {}): NodeEntry =>
  rosterEntry(name, { id, address: "127.0.0.1", roles: ["worker"], ...changes });

describe("bastion actions against a real controller", () => {
  let cluster: TestCluster;
  let port: number;
  let stop: AbortController;
  let notes: string[];
  let asked: number;
  const running: Promise<void>[] = [];
  const stops: (() => Promise<void>)[] = [];
  const nodeId: string = randomUUID();

  const contextFor = (node: NodeEntry, changes: Partial<ActionContext> = {}): ActionContext => ({
    runId: "20261121-r1",
    challenge: "r1",
    dryRun: false,
    project: cluster.dir,
    home: cluster.home,
    node,
    nodes: new Map([[node.name, node]]),
    targets: [],
    ended: new Map(),
    signal: stop.signal,
    note: (text) => notes.push(text),
    output: () => undefined,
    ask: () => Promise.reject(new Error("nothing is to be asked")),
    passphrase: async () => {
      asked++;
      return passphrase;
    },
    warn: (text) => notes.push(text),
    ...changes,
  });
  /** Starts a cluster's first controller in the state that deploy_node leaves; `contextFor` has another node. */
  const startController = async (config: object = {}): Promise<TestController> => {
    const { controllers, stop: stopAll } = await startControllers(cluster, 1, { config: () => config });
    stops.push(stopAll);
    const [first] = controllers;
    if (!first) throw new Error("no controller was started");
    port = parseEndpoint(first.endpoint).port;
    await addController(place(), "lab", first.endpoint);
    return first;
  };
  const startAgent = async (cert: string, key: string, id = nodeId): Promise<void> => {
    const configFile = join(cluster.dir, "agent.yaml");
    const tls = await writeCredentials(join(cluster.dir, "n"), "node", { ca: cluster.authority.rootPem, cert, key });
    const { controllers } = await loadContext(place());
    await writeFile(
      configFile,
      printYaml({
        nodeId: id,
        controllers,
        listenAddr: "127.0.0.1:0",
        tls,
        stateDir: cluster.dir,
        heartbeatIntervalSecs: 0.2,
      }),
    );
    const options = { configFile, parse: codec.parse, signal: stop.signal, log: silent, clock: Date.now, version: "1" };
    running.push(runAgent({ ...options, random: Math.random, supervisor: unsupervised }));
  };
  const problemOf = (work: Promise<unknown>): Promise<string> =>
    work.then(String, (error: unknown) =>
      error instanceof KcoreError ? `${error.problems[0]?.code}: ${error.message}` : String(error),
    );
  const place = () => ({ home: cluster.home, codec });
  /** The node n1 in the context of a run. */
  const n1 = (fields: Partial<NodeEntry> = {}, changes: Partial<ActionContext> = {}): ActionContext =>
    contextFor(nodeEntry("n1", nodeId, fields), changes);
  const controllerN1 = (fields: Partial<NodeEntry> = {}, changes: Partial<ActionContext> = {}): ActionContext =>
    n1({ roles: ["controller"], ...fields }, changes);
  /** The inputs of cluster.record for a certificate issued to this context's node. */
  const inputsWithCertificate = async (context: ActionContext, { args } = keyFor()) => {
    const { outputs } = await pkiIssueNode.run(args, context);
    return { issued: { nodeCert: String(outputs["nodeCert"]) }, timeout: 60, port };
  };
  /** Registers n1's controller, by a certificate that is issued now, by default. */
  const registerController = (
    context: ActionContext,
    args: object = {},
    controllerCert = issueTo(cluster.authority, "controller", nodeId).cert,
  ) => clusterRegisterController.run({ issued: { controllerCert }, port: 9090, ...args }, context);
  const healthy = { timeout: 60, settle: 0 };
  const keyFor = (challenge = "r1", id = nodeId) => {
    const key = generateKey();
    const proof = proveKey(key, `kcore proof of possession ${challenge} ${id}`);
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
    port = 9;
    stop = new AbortController();
    notes = [];
    asked = 0;
  });
  afterEach(async () => {
    stop.abort();
    await Promise.allSettled(running.splice(0));
    for (const end of stops.splice(0)) await end();
    await cluster.remove();
  });

  it("pki.issueNode issues once, asks for the passphrase only then, and keeps a valid certificate", async () => {
    const { args } = keyFor();
    const context = n1();
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

  it("pki.issueNode gives a controller certificates of its own, and reissues for a changed key or address", async () => {
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
    // The controller may renew its own certificate under these names (C1).
    expect(subCa.subjectAltName).to.equal(`DNS:n1, IP Address:127.0.0.1, URI:kcore://lab/sub-ca/${nodeId}`);
    const moved = contextFor({ ...entry, address: "127.0.0.2" });
    expect((await pkiIssueNode.run(args, moved)).changed).to.equal(true);
    expect((await pkiIssueNode.run(keyFor().args, moved)).changed).to.equal(true);
    expect(asked, "one for the root, one for the bastion's sub-CA; the run asks the operator once").to.equal(2);
    expect(notes.join("\n")).to.contain("its names changed").and.to.contain("the key changed");
    expect(notes.join("\n")).to.contain("its controller's names changed");
  });

  it("pki.issueNode keeps a certificate that a controller renewed, and reissues when another cluster issued the one on the node", async () => {
    const key = keyFor();
    const context = n1();
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
      const names = { host: "n1", addresses: ["127.0.0.1"], key: key.key };
      const foreign = issueTo(stranger.authority, "node", nodeId, names);
      const fresh = keyFor();
      const lies = { ...fresh.facts, certificate: Buffer.from(foreign.cert).toString("base64") };
      const args = { identity: { nodeKey: { facts: lies } }, hosts: [] };
      expect((await pkiIssueNode.run(args, context)).changed).to.equal(true);
    } finally {
      await stranger.remove();
    }
  });

  it("S-10: pki.issueNode reissues what a revoked sub-CA issued, what lives too long, and what no controller can vouch for", async () => {
    const root = await openRoot(join(cluster.home, "lab"), passphrase);
    const subKey = generateKey();
    const challenge = "sub-CA";
    const spkiOfSub = publicDer(subKey).toString("base64");
    const proof = { challenge, signature: proveKey(subKey, challenge) };
    const asked = { controllerId: randomUUID(), hosts: [], spki: spkiOfSub, proof };
    const subCa = issueSubCa(asked, { root, now: Date.now() });
    const certificate = firstCertificate(subCa);
    const authority = { ...cluster.authority, certificate, certificatePem: subCa, key: subKey };
    const key = keyFor();
    const keep = (cert: string, run: string) => {
      const { facts } = keyFor(run);
      const shown = { ...facts, spki: key.facts.spki, certificate: Buffer.from(cert).toString("base64") };
      const own = proveKey(key.key, `kcore proof of possession ${run} ${nodeId}`);
      const identity = { nodeKey: { facts: { ...shown, proof: own } } };
      return pkiIssueNode.run({ identity, hosts: [] }, { ...n1(), runId: run, challenge: run });
    };
    const renewed = issueTo(authority, "node", nodeId, { host: "n1", addresses: ["127.0.0.1"], key: key.key });
    const { operator } = await startController();
    const spki = keyFingerprint(publicDer(subKey));
    const entry = inventoryEntry(subCa);
    if (entry) await operator.call("recordCertificate", entry);
    expect((await keep(renewed.cert, "r1")).changed, "a sub-CA in order").to.equal(false);
    await operator.call("revoke", { spki, reason: "stolen" });
    expect((await keep(renewed.cert, "r2")).changed, "revoked").to.equal(true);
    expect(notes.join("\n")).to.contain("the CA that issued it was revoked");
    const long = issueCertificate({
      commonName: "kcore-node-n1",
      publicKey: createPublicKey(key.key),
      issuer: cluster.authority.certificate,
      signer: cluster.authority.key,
      notBefore: new Date(Date.now() - 1000),
      notAfter: new Date(Date.now() + 1000 * 86_400_000),
      usages: ["server", "client"],
      hosts: ["n1", "127.0.0.1"],
      uri: `kcore://lab/node/${nodeId}`,
    });
    await rm(join(cluster.home, "lab", "issued"), { recursive: true });
    expect((await keep(long + cluster.authority.certificatePem, "r3")).changed, "too long").to.equal(true);
    expect(notes.join("\n")).to.contain("it was issued for more than 90 days");
    for (const end of stops.splice(0)) await end();
    await rm(join(cluster.home, "lab", "issued"), { recursive: true });
    expect((await keep(renewed.cert, "r4")).changed, "nobody tells").to.equal(true);
    expect(notes.join("\n")).to.contain("no controller tells whether the CA that issued it was revoked");
  });

  it("S-14: pki.issueNode refuses a proof from another run or for another node", async () => {
    const context = n1();
    expect(await problemOf(pkiIssueNode.run(keyFor("20261121-r1").args, context))).to.match(/^PKI_PROOF_INVALID/);
    expect(await problemOf(pkiIssueNode.run(keyFor("r1", "b").args, context))).to.match(/^PKI_PROOF_INVALID/);
  });

  it("cluster.record refuses a removed id before recording anything, in a dry run too, and names the command that keeps its data", async () => {
    const { operator } = await startController();
    const context = n1();
    await clusterRecord.run(await inputsWithCertificate(context), context);
    await operator.call("removeNode", {}, { id: nodeId });
    const fresh = await inputsWithCertificate(context);
    for (const work of [clusterRecord.plan(fresh, context), clusterRecord.run(fresh, context)]) {
      const error = await rejectionOf(work);
      expect(error.problems[0]?.hint).to.contain("kcore roster adopt NODE");
      expect(error.message).to.contain("was removed");
    }
    const { certificates } = await operator.call("listCertificates", {});
    expect(certificates.filter(({ role, id, revoked }) => role === "node" && id === nodeId && !revoked)).to.deep.equal(
      [],
    );
  });

  it("cluster.checkRemoved refuses to take over a former id that is in the cluster, or that no controller can check", async () => {
    const entry = nodeEntry("n1", randomUUID(), { roles: ["controller"], formerIds: [randomUUID(), nodeId] });
    const context = contextFor(entry);
    const ask = (): Promise<unknown> => clusterCheckRemoved.run({ port: 1 }, context);
    const away = await rejectionOf(ask());
    expect(away.problems[0]?.code).to.equal("CLUSTER_UNHEALTHY");
    expect(away.problems[0]?.message).to.contain(`and ${nodeId} was removed`);
    const { operator } = await startController();
    const { controllers } = await operator.call("listControllers", {});
    const founder = controllers[0]?.controllerId ?? "";
    const ofFounder = contextFor(nodeEntry("n1", randomUUID(), { formerIds: [founder] }));
    expect((await rejectionOf(clusterCheckRemoved.plan({ port: 1 }, ofFounder))).message).to.contain(
      `n1 takes over ${founder}, which is a controller of the cluster`,
    );
    const expected = { name: "n0", roles: [], dc: "DC1", address: "h", source: "roster" as const };
    await operator.call("setExpected", expected, { id: nodeId });
    const refused = await rejectionOf(ask());
    expect(refused.problems.map(({ code }) => code)).to.deep.equal(["NODE_NOT_REMOVED"]);
    expect(refused.problems[0]?.hint).to.contain(`kcore node remove ${nodeId}`);
    await operator.call("removeNode", {}, { id: nodeId });
    await ask();
  });

  it("cluster.health fails a run whose only founder failed, but not a dry run", async () => {
    const founder = nodeEntry("n1", nodeId, { roles: ["controller"] });
    const args = { timeout: 5, settle: 0 };
    for (const outcome of ["failed", "unreachable"] as const) {
      const context = { ...contextFor(founder), targets: ["n1", "n2"], ended: new Map([["n1", { outcome }]]) };
      expect(await problemOf(clusterHealth.run(args, context))).to.match(
        /^CLUSTER_UNHEALTHY.*n1 was to be a controller/,
      );
      expect(await clusterHealth.plan(args, { ...context, dryRun: true })).to.include({ changed: false });
    }
    const worker = { ...n1(), ended: new Map([["n1", { outcome: "failed" as const }]]) };
    expect((await clusterHealth.run(args, worker)).outputs["healthy"]).to.equal(true);
  });

  it("cluster.health succeeds without controllers, and names each one that does not answer", async () => {
    const context = n1();
    expect((await clusterHealth.run(healthy, context)).outputs["healthy"]).to.equal(true);
    await addController(place(), "lab", "127.0.0.1:1");
    expect(await problemOf(clusterHealth.run(healthy, context))).to.match(/^API_UNREACHABLE: controller 127/);
    const { problems } = await rejectionOf(clusterHealth.run(healthy, context));
    expect(problems[0]?.hint).to.contain("--skip-health");
    const deploying = contextFor(nodeEntry("n1", nodeId), { targets: ["n1"] });
    expect((await clusterHealth.plan(healthy, deploying)) === "unknown").to.equal(false);
    const { endpoint } = await startController();
    const { controllers } = (await clusterHealth.run(healthy, deploying)).outputs;
    expect(controllers).to.deep.equal([
      { endpoint: "127.0.0.1:1", host: "127.0.0.1", port: 1, healthy: false },
      { endpoint, host: "127.0.0.11", port, healthy: true },
    ]);
  });

  const waitLimits = (seconds: number) => ({ timeout: seconds, approvalTimeout: seconds, port });
  /** Issues, records and starts the agent of node n1. */
  const admit = async (context: ActionContext): Promise<void> => {
    const key = keyFor();
    const args = await inputsWithCertificate(context, key);
    await clusterRecord.run(args, context);
    await startAgent(args.issued.nodeCert, key.pem);
  };

  it("cluster.waitReady waits until the node has registered with its present key", async () => {
    await startController();
    const context = n1();
    expect(await problemOf(clusterWaitReady.run(waitLimits(1), context))).to.contain("it has not registered yet");
    expect(await clusterWaitReady.plan(waitLimits(1), context)).to.equal("unknown");
    await admit(context);
    const ready = await clusterWaitReady.run(waitLimits(120), context);
    expect(ready.outputs).to.include({ id: nodeId, status: "ready" });
    await pkiIssueNode.run(keyFor().args, context);
    expect(await problemOf(clusterWaitReady.run(waitLimits(1), context))).to.contain("not registered with its new key");
  });

  it("cluster.waitReady accepts a node that renewed its certificate after its last deployment", async () => {
    const { operator, clientOf } = await startController();
    const context = n1();
    await clusterRecord.run(await inputsWithCertificate(context), context);
    const renewed = issueTo(cluster.authority, "node", nodeId);
    const entry = inventoryEntry(renewed.cert);
    if (entry) await operator.call("recordCertificate", entry);
    await clientOf(renewed).call("registerNode", registrationOf(nodeId));
    expect((await clusterWaitReady.run(waitLimits(1), context)).outputs).to.include({ id: nodeId, status: "ready" });
  });

  it("cluster.waitReady waits for a controller's own endpoint, and adds it to the context once", async () => {
    const { id, endpoint } = await startController();
    const entry = nodeEntry("n1", id, { address: "127.0.0.11", roles: ["controller", "worker"] });
    const context = contextFor(entry);
    expect(await problemOf(clusterWaitReady.run({ ...waitLimits(1), port: 1 }, context))).to.contain("ECONNREFUSED");
    const key = keyFor("r1", id);
    const args = await inputsWithCertificate(context, key);
    await clusterRecord.run(args, context);
    await startAgent(args.issued.nodeCert, key.pem, id);
    await clusterWaitReady.run(waitLimits(120), context);
    await clusterWaitReady.run(waitLimits(120), context);
    expect((await loadContext(place())).controllers).to.deep.equal([endpoint]);
  });

  it("cluster.waitReady fails at once for a rejected node", async () => {
    const { operator } = await startController();
    const context = n1();
    await admit(context);
    await clusterWaitReady.run(waitLimits(120), context);
    await operator.call("rejectNode", {}, { id: nodeId });
    expect(await problemOf(clusterWaitReady.run(waitLimits(120), context))).to.match(/^NODE_REJECTED/);
  });

  it("cluster.waitReady says how to approve a pending node, and waits until it is ready", async () => {
    const { operator } = await startController({ requireManualApproval: true });
    const context = n1();
    await admit(context);
    const ready = clusterWaitReady.run({ ...waitLimits(2), approvalTimeout: 120 }, context);
    await eventually(() => notes.some((text) => text.includes(`kcore node approve ${nodeId}`)));
    // The wait for the operator is longer than the time limit of a node's request.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await operator.call("approveNode", {}, { id: nodeId });
    expect((await ready).outputs).to.include({ status: "ready" });
  });

  it("cluster.record records certificate and node once, and a dry run reports whether anything is new (S-10)", async () => {
    const { operator } = await startController();
    const context = n1({ dc: "DC2" });
    const args = await inputsWithCertificate(context);
    expect(await clusterRecord.plan(args, context)).to.deep.include({ changed: true });
    expect(await clusterRecord.run(args, context)).to.deep.include({ changed: true });
    expect(await clusterRecord.run(args, context)).to.deep.include({ changed: false });
    expect(await clusterRecord.plan(args, context)).to.deep.include({ changed: false });
    const node = await operator.call("getNode", {}, { id: nodeId });
    expect(node).to.deep.include({ dc: "DC2", status: "unknown", roles: ["worker"] });
    expect(node.certificates.map(({ role, id }) => [role, id])).to.deep.equal([["node", nodeId]]);
  });

  it("cluster.registerController redeploys a founder whose certificate and sub-CA expired, with its present state", async () => {
    const { id, folder, stop, start, credentials, operator } = await startController();
    const context = contextFor(nodeEntry("n1", id, { address: "127.0.0.11", roles: ["controller"] }), {
      targets: ["n1"],
    });
    // A founder that has answered once is not founded again.
    await clusterHealth.run(healthy, context);
    await stop();
    const ended = Date.now() - 2000 * 86_400_000;
    const own = createPrivateKey(credentials.key);
    const root = await openRoot(contextFolder(cluster.home, "lab"), passphrase);
    const proof = { challenge: "test", signature: proveKey(own, "test") };
    const request = { controllerId: id, spki: publicDer(own).toString("base64"), proof, hosts: ["127.0.0.11"] };
    await writeFile(join(folder, "sub-ca.key"), credentials.key);
    await writeFile(join(folder, "sub-ca.crt"), issueSubCa(request, { root, now: ended }));
    const leaf = { host: "127.0.0.11", key: own, now: ended };
    await writeFile(join(folder, "controller.crt"), issueTo(cluster.authority, "controller", id, leaf).cert);
    await start().catch(() => undefined);
    const health = await clusterHealth.run(healthy, context);
    expect(health.outputs["controllers"]).to.deep.include({
      endpoint: `127.0.0.11:${port}`,
      host: "127.0.0.11",
      port,
      healthy: false,
    });
    const controllerCert = issueTo(cluster.authority, "controller", id, { ...leaf, now: Date.now() }).cert;
    const begun = await clusterRegisterController.run({ issued: { controllerCert }, port }, context);
    expect(begun.outputs).to.deep.include({ founds: true, join: [] }).and.not.to.have.property("found");
    await stop();
    await writeFile(join(folder, "controller.crt"), controllerCert);
    await start();
    expect((await operator.call("ready", {})).nodes).to.deep.equal({ total: 0, ready: 0 });
  });

  it("cluster.registerController lets the first controller found the cluster; the next ones join, registered before they start", async () => {
    const key = keyFor();
    const controllerCert = issueTo(cluster.authority, "controller", nodeId, { key: key.key }).cert;
    const entry = nodeEntry("n1", nodeId, { roles: ["controller"], dc: "DC2" });
    const args = { issued: { controllerCert }, port: 9090 };
    const context = contextFor(entry);
    const founding = await clusterRegisterController.run(args, context);
    expect(founding.outputs).to.deep.include({ founds: true, found: true, join: [], advertise: "127.0.0.1:9090" });
    const { bootstrap } = founding.outputs as { bootstrap: Bootstrap };
    expect(bootstrap.cluster).to.equal("lab");
    expect(bootstrap.operators).to.deep.equal([{ name: "ann", spki: spkiOf(cluster.operator) }]);
    expect(bootstrap.controller).to.deep.equal({
      spki: spkiOf({ cert: controllerCert }),
      address: "127.0.0.1:9090",
      dc: "DC2",
    });

    const { operator, endpoint } = await startController();
    expect(await clusterRegisterController.plan(args, context)).to.deep.include({ changed: true });
    expect((await operator.call("listControllers", {})).controllers).to.have.length(1);
    const joining = await clusterRegisterController.run(args, context);
    expect(joining.changed).to.equal(true);
    expect(joining.outputs).to.deep.equal({
      founds: false,
      join: [endpoint],
      joinKeys: {},
      advertise: "127.0.0.1:9090",
    });
    expect(notes.join()).to.contain(`${endpoint} is joined on the CA's word`);
    expect((await operator.call("listControllers", {})).controllers).to.have.length(2);
    expect(await clusterRegisterController.run(args, context)).to.deep.equal({ ...joining, changed: false });

    // Later controllers change nothing for it: the context lists it after those that it joined.
    await addController(place(), "lab", "127.0.0.1:9090");
    await addController(place(), "lab", "127.0.0.1:9999");
    expect(await clusterRegisterController.run(args, context)).to.deep.equal({ ...joining, changed: false });
    const worker = contextFor(nodeEntry("n2", randomUUID()));
    expect((await clusterRegisterController.run(args, worker)).outputs).to.include({ founds: false, advertise: "" });
  });

  it("S-10: cluster.registerController pins the keys of sponsors whose certificates this bastion issued", async () => {
    const { endpoint, id, credentials } = await startController();
    const folder = join(cluster.home, "lab", "issued");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `${id}-controller.crt`), credentials.cert);
    // A controller that had this address before, and a controller of another address.
    const formerController = { host: "127.0.0.11", now: Date.now() + 60_000 };
    await writeFile(
      join(folder, "gone-controller.crt"),
      issueTo(cluster.authority, "controller", "gone", formerController).cert,
    );
    await writeFile(join(folder, "other-controller.crt"), issueTo(cluster.authority, "controller", "other").cert);
    const context = controllerN1();
    const { cert } = issueTo(cluster.authority, "controller", nodeId);
    for (const { outputs } of [
      await registerController(context, {}, cert),
      await registerController(context, {}, cert),
    ])
      expect(outputs).to.deep.include({ join: [endpoint], joinKeys: { [endpoint]: spkiOf(credentials) } });
  });

  it("cluster.registerController keeps the role of founder while that controller rejoins, so that a second run changes nothing", async () => {
    const living = await startController();
    const { host, port: shared } = parseEndpoint(living.endpoint);
    const own = `127.0.0.99:${shared}`;
    const founder = nodeEntry("n1", nodeId, { roles: ["controller"], address: "127.0.0.99" });
    const another = nodeEntry("n2", living.id, { roles: ["controller"], address: host });
    await changeControllers(place(), "lab", () => [own, living.endpoint]);
    const nodes = new Map([founder, another].map((entry) => [entry.name, entry]));
    const { changed, outputs } = await registerController(contextFor(founder, { nodes }), { port: shared });
    expect(changed).to.equal(true);
    expect(outputs).to.deep.include({ founds: true, join: [], rejoin: [living.endpoint], advertise: own });
    expect(outputs).not.to.have.property("found");
    const { controllers } = await living.operator.call("listControllers", {});
    expect(controllers.map(({ controllerId }) => controllerId)).to.include(nodeId);
  });

  it("cluster.registerController founds a known cluster a second time only on request, and not while a controller answers", async () => {
    const { endpoint, stop: end } = await startController();
    const founder = nodeEntry("n1", nodeId, { roles: ["controller"], address: parseEndpoint(endpoint).host });
    const another = nodeEntry("n2", randomUUID(), { roles: ["controller"], address: "192.0.2.2" });
    const nodes = new Map([founder, another].map((entry) => [entry.name, entry]));
    const context = contextFor(founder, { nodes });
    await clusterHealth.run(healthy, context);
    await end();
    const lost = await registerController(context, { port });
    expect(lost.outputs).to.deep.include({ founds: true, join: [], rejoin: [`192.0.2.2:${port}`] });
    expect(lost.outputs).not.to.have.property("found");
    expect(notes.join("\n")).to.contain("n1 goes on with the state that it has");
    const again = await registerController(context, { port, foundAgain: true });
    expect(again.outputs).to.deep.include({ founds: true, found: true, join: [] });
    // Refused while a controller answers.
    const living = await startController();
    await changeControllers(place(), "lab", () => [endpoint, living.endpoint]);
    const beside = await registerController(context, { port: parseEndpoint(endpoint).port, foundAgain: true });
    expect(beside.outputs).to.deep.include({ founds: false, join: [living.endpoint] });
    expect(notes.join("\n")).to.contain("not founded again");
  });

  it("cluster.registerController founds no second cluster from the context of an older kcore, but the first one of a new context", async () => {
    const { endpoint, stop: end } = await startController();
    const begin = () => registerController(controllerN1({ address: parseEndpoint(endpoint).host }), { port });
    const mark = join(contextFolder(cluster.home, "lab"), "unfounded.json");
    await end();
    expect((await begin()).outputs).to.deep.include({ founds: true, found: true });
    await rm(mark);
    expect((await begin()).outputs).not.to.have.property("found");
    // No controller was ever deployed from this context.
    await removeController(place(), "lab", endpoint);
    expect((await begin()).outputs).to.deep.include({ founds: true, found: true });
  });

  it("a dry run that finds a controller ready does not mark the context as founded", async () => {
    const { endpoint } = await startController();
    const address = parseEndpoint(endpoint).host;
    const before = await readdir(contextFolder(cluster.home, "lab"));
    expect(before).to.include("unfounded.json");
    const context = controllerN1({ address }, { dryRun: true });
    const { cert: controllerCert } = issueTo(cluster.authority, "controller", nodeId);
    await clusterHealth.plan(healthy, context);
    await clusterRegisterController.plan({ issued: { controllerCert }, port }, context);
    expect(await readdir(contextFolder(cluster.home, "lab"))).to.deep.equal(before);
    await clusterHealth.run(healthy, controllerN1({ address }));
    const after = await readdir(contextFolder(cluster.home, "lab"));
    expect(after).to.include("founded.json").and.not.include("unfounded.json");
  });

  it("cluster.registerController says how to replace a revoked key", async () => {
    const { operator } = await startController();
    const [former, next] = [0, 1].map(() => issueTo(cluster.authority, "controller", nodeId)) as [
      Credentials,
      Credentials,
    ];
    const register = ({ cert }: Credentials) => registerController(controllerN1(), {}, cert);
    await register(former);
    await operator.call("revoke", { spki: spkiOf(former), reason: "rotated" });
    await register(next);
    const { problems } = await rejectionOf(register(former));
    expect(problems[0]?.hint).to.equal(
      "remove /etc/kcore/controller/controller.key on its machine and deploy it again: a new key is made there",
    );
  });

  it("cluster.registerController fails when no named controller answers", async () => {
    const context = controllerN1({ vars: { joinControllers: ["127.0.0.1:1"] } });
    expect(await problemOf(registerController(context, { port: 2 })))
      .to.match(/^CLUSTER_UNHEALTHY/)
      .and.to.contain("no controller could register n1");
  });

  it("cluster.waitReady says how to begin when no controller is known, and stops with its run", async () => {
    const context = n1();
    expect(await problemOf(clusterWaitReady.run({ timeout: 5, approvalTimeout: 5, port }, context))).to.match(
      /^CLUSTER_UNKNOWN/,
    );
    await addController(place(), "lab", "127.0.0.1:1");
    setTimeout(() => stop.abort(), 100);
    expect(await problemOf(clusterWaitReady.run({ timeout: 60, approvalTimeout: 60, port }, context))).to.contain(
      "abort",
    );
  });

  it("pki.issueNode leaves issued certificates in the context, and never a key", async () => {
    await pkiIssueNode.run(keyFor().args, n1());
    const text = await readFile(join(cluster.home, "lab/issued", `${nodeId}-node.crt`), "utf8");
    expect(text.match(/BEGIN CERTIFICATE/g)?.length).to.equal(2);
    expect(text).not.to.contain("PRIVATE");
  });
});
