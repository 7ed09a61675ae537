import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect } from "chai";
import { noteFounded, openContext } from "#actions/cluster-context.ts";
import { clusterHealth } from "#actions/cluster-health.ts";
import { clusterRegisterController } from "#actions/cluster-register-controller.ts";
import { challengeFor } from "#actions/generated-key.ts";
import { pkiIssueNode } from "#actions/pki-issue-node.ts";
import { changeControllers, contextFolder, loadContext } from "#pki/contexts.ts";
import { issuedFile } from "#pki/issued.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import { actionContext } from "#support/action-context.ts";
import { codec, createTestCluster, issueTo, passphrase, type TestCluster } from "#support/cluster.ts";
import { codeOf } from "#support/rejection.ts";
import { nodeEntry } from "#support/runs.ts";

describe("a controller whose address in the roster changed", () => {
  let cluster: TestCluster;
  const n1 = nodeEntry("n1", { address: "127.0.0.22", roles: ["controller"] });
  const n2 = nodeEntry("n2", { address: "127.0.0.12", roles: ["controller"] });
  const nodes = new Map([n1, n2].map((node) => [node.name, node]));
  const contextOf = (target: string) =>
    actionContext({
      home: cluster.home,
      nodes,
      targets: [target],
      node: nodes.get(target) ?? n1,
      passphrase: () => Promise.resolve(passphrase),
    });
  const known = async (): Promise<readonly string[]> => (await loadContext({ home: cluster.home, codec })).controllers;

  before(async () => {
    cluster = await createTestCluster();
    await changeControllers({ home: cluster.home, codec }, "lab", () => ["127.0.0.21:1", "127.0.0.12:1"]);
    await noteFounded({ folder: contextFolder(cluster.home, "lab") }, { dryRun: false });
    const file = issuedFile(contextFolder(cluster.home, "lab"), n1.id, "controller");
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, issueTo(cluster.authority, "controller", n1.id, { host: "127.0.0.21" }).cert);
  });
  after(() => cluster.remove());

  it("has its new address in the run that deploys it, and its former address in other runs", async () => {
    expect((await openContext(contextOf("n1"))).controllers).to.deep.equal(["127.0.0.22:1", "127.0.0.12:1"]);
    expect((await openContext(contextOf("n2"))).controllers).to.deep.equal(["127.0.0.21:1", "127.0.0.12:1"]);
    // cluster.health waits for no controller that the same run deploys.
    const both = { ...contextOf("n1"), targets: ["n1", "n2"] };
    expect(await codeOf(clusterHealth.run({ timeout: 5, settle: 0 }, contextOf("n2")))).to.equal("API_UNREACHABLE");
    expect((await clusterHealth.run({ timeout: 5, settle: 0 }, both)).changed).to.equal(false);
  });

  it("keeps the context's endpoint of a controller that did not move, also a further name of the controller", async () => {
    const place = { home: cluster.home, codec };
    const file = issuedFile(contextFolder(cluster.home, "lab"), n2.id, "controller");
    const hosts = { host: "127.0.0.12", addresses: ["n2.example.com"] };
    await writeFile(file, issueTo(cluster.authority, "controller", n2.id, hosts).cert);
    const endpoints = ["127.0.0.21:1", "n2.example.com:1"];
    await changeControllers(place, "lab", () => endpoints);
    expect((await openContext(contextOf("n2"))).controllers).to.deep.equal(endpoints);
    await changeControllers(place, "lab", () => ["127.0.0.21:1", "127.0.0.12:1"]);
  });

  it("replaces its former endpoint in the context once its certificate names the new address", async () => {
    expect(await known(), "before the new certificate").to.deep.equal(["127.0.0.21:1", "127.0.0.12:1"]);
    const context = contextOf("n1");
    const key = generateKey();
    const facts = { spki: publicDer(key).toString("base64"), proof: proveKey(key, challengeFor(n1, context)) };
    const identity = { nodeKey: { facts }, controllerKey: { facts }, subCaKey: { facts } };
    const issued = (await pkiIssueNode.run({ identity, hosts: [] }, context)).outputs as { controllerCert: string };
    expect(await known()).to.deep.equal(["127.0.0.22:1", "127.0.0.12:1"]);
    expect(context.notes.join("\n")).to.contain(
      "context lab follows n1: its controllers are 127.0.0.22:1, 127.0.0.12:1",
    );
    // The controller starts as before: it joins no controller, not even itself at the former address, and founds no second cluster.
    const { outputs } = await clusterRegisterController.run({ issued, port: 1 }, context);
    expect(outputs)
      .to.deep.include({ founds: true, join: [], advertise: "127.0.0.22:1" })
      .and.not.to.have.property("found");
  });
});
