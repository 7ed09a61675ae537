import { randomUUID } from "node:crypto";
import { request } from "node:https";
import { expect } from "chai";
import type { Credentials } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import {
  areAllInStep,
  nodeCredentials,
  refusalCodeOf,
  registrationOf,
  spkiOf,
  startControllers,
  waitForWritesOf,
} from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";

describe("several controllers", () => {
  let cluster: TestCluster;
  let controllers: readonly TestController[];
  let stop: () => Promise<void>;
  const at = (index: number): TestController => controllers[index] as TestController;

  before(async () => {
    cluster = await createTestCluster();
    const started = await startControllers(cluster, 3, {
      dcs: ["DC1", "DC1", "DC2"],
      config: () => ({ staleAfterSecs: 60 }),
    });
    ({ controllers, stop } = started);
  });
  after(async () => {
    await stop();
    await cluster.remove();
  });

  const register = async (
    index: number,
    id = randomUUID() as string,
  ): Promise<{ id: string; credentials: Credentials }> => {
    const credentials = nodeCredentials(cluster, id);
    await at(index).clientOf(credentials).call("registerNode", registrationOf(id));
    return { id, credentials };
  };
  const knownEverywhere = (id: string, status = "ready"): Promise<unknown> =>
    eventually(async () => {
      const lists = await Promise.all(controllers.map(({ operator }) => operator.call("listNodes", {})));
      return lists.every(({ nodes }) => nodes.find((node) => node.id === id)?.status === status);
    });

  it("S-11: refuse a rejected node as soon as the record arrives, on an open connection too", async () => {
    const { id, credentials } = await register(0);
    await knownEverywhere(id);
    const nodes = controllers.map((controller) => controller.clientOf(credentials));
    for (const node of nodes) await node.call("heartbeat", { nodeId: id });
    await at(1).operator.call("rejectNode", { reason: "test" }, { id });
    await waitForWritesOf(at(1), controllers);
    for (const node of nodes)
      expect(await refusalCodeOf(node.call("heartbeat", { nodeId: id }))).to.equal("NODE_REJECTED");
    expect(await refusalCodeOf((nodes[0] as (typeof nodes)[0]).call("registerNode", registrationOf(id)))).to.equal(
      "NODE_REJECTED",
    );
    expect((await (nodes[2] as (typeof nodes)[0]).call("getNode", {}, { id })).status).to.equal("rejected");
  });

  it("S-11: cut the open stream of a revoked key when the revocation arrives, and refuse the key after a restart", async () => {
    const id = randomUUID();
    const { credentials } = await register(0, id);
    await knownEverywhere(id);
    const other = await register(0);
    await knownEverywhere(other.id);
    const ended: string[] = [];
    // A request whose body never ends: a connection in the middle of a request.
    const open = (whose: string, node: Credentials, { endpoint }: TestController): Promise<void> =>
      new Promise((resolve) => {
        const sent = request({
          ...parseEndpoint(endpoint),
          ...node,
          path: "/v1/nodes/heartbeat",
          method: "POST",
          headers: { "content-length": 100 },
          agent: false,
        });
        sent.on("error", () => undefined);
        sent.once("close", () => ended.push(whose));
        sent.write('{"nodeId":', () => resolve());
      });
    for (const controller of controllers) {
      await open("other", other.credentials, controller);
      await open("revoked", credentials, controller);
    }
    await at(2).operator.call("revoke", { spki: spkiOf(credentials), reason: "stolen" });
    // The other key's streams were opened first, so a time limit would end those first.
    await eventually(() => ended.length >= controllers.length);
    expect(ended).to.deep.equal(controllers.map(() => "revoked"));
    await at(0).stop();
    await at(0).start();
    expect(await refusalCodeOf(at(0).clientOf(credentials).call("heartbeat", { nodeId: id }))).to.match(
      /KEY_REVOKED|JOINING/,
    );
    await eventually(() => areAllInStep(controllers));
    expect(await refusalCodeOf(at(0).clientOf(credentials).call("getNode", {}, { id }))).to.equal("KEY_REVOKED");
    const listed = (await at(1).operator.call("listCertificates", {})).certificates;
    expect(listed.find(({ spki }) => spki === spkiOf(credentials))).to.include({ id, status: "revoked" });
  });

  it("S-12: refuse node A every call about node B, and answer the same calls about itself", async () => {
    const [a, b] = [await register(0), await register(1)];
    await knownEverywhere(b.id);
    for (const controller of controllers) {
      const client = controller.clientOf(a.credentials);
      const calls = (nodeId: string): readonly (() => Promise<unknown>)[] => [
        () => client.call("registerNode", registrationOf(nodeId)),
        () => client.call("heartbeat", { nodeId }),
        () => client.call("getNode", {}, { id: nodeId }),
        () => client.call("renewChallenge", { nodeId }),
        () => client.call("renew", { nodeId, nonce: "x", spki: "AAAA", signature: "AAAA" }),
        () => client.call("goodbye", { nodeId }),
      ];
      for (const call of calls(b.id)) expect(await refusalCodeOf(call())).to.equal("API_DENIED");
      const own = [];
      for (const call of calls(a.id)) own.push(await refusalCodeOf(call()));
      // The proof has another nonce than the challenge: the refusal names this, not a lack of rights.
      expect(own).to.deep.equal(["allowed", "allowed", "allowed", "allowed", "PKI_PROOF_INVALID", "allowed"]);
      for (const name of ["listNodes", "listControllers", "listCertificates", "replicationStatus", "metrics"] as const)
        expect(await refusalCodeOf(client.call(name, {}))).to.equal("API_DENIED");
    }
  });

  it("report different settings of requireManualApproval, and apply the stricter one", async () => {
    const strict = await startControllers(cluster, 2, { config: (index) => ({ requireManualApproval: index === 1 }) });
    try {
      const [lenient] = strict.controllers as [TestController];
      await eventually(async () => (await lenient.operator.call("ready", {})).requireManualApproval);
      const { warnings } = await lenient.operator.call("ready", {});
      expect(warnings.join()).to.contain("disagree on requireManualApproval");
      const id = randomUUID();
      const standing = await lenient.clientOf(nodeCredentials(cluster, id)).call("registerNode", registrationOf(id));
      expect(standing).to.include({ approval: "pending", status: "pending" });
      expect(
        await refusalCodeOf(lenient.clientOf(nodeCredentials(cluster, id)).call("renewChallenge", { nodeId: id })),
      ).to.match(/KEY_UNREGISTERED|NODE_PENDING/);
      const { settings } = await lenient.operator.call("replicationStatus", {});
      expect(new Set(settings.map(({ requireManualApproval }) => requireManualApproval))).to.deep.equal(
        new Set([false, true]),
      );
    } finally {
      await strict.stop();
    }
  });

  it("S-11: accept nothing more from a controller with a revoked key, on a stream that they opened themselves", async () => {
    const { controllers: pair, stop: stopPair } = await startControllers(cluster, 2);
    try {
      // The second one joined, so it is the side that dialled.
      const [revoked, dialled] = pair as [TestController, TestController];
      expect(dialled.log()).to.match(/"a replication stream begins".*"initiator":true/);
      const put = (number: number): Promise<unknown> =>
        revoked.operator.call("putObject", { value: { number } }, { id: "Revoked/one" });
      const held = async (): Promise<unknown> =>
        (await dialled.operator.call("getObject", {}, { id: "Revoked/one" })).value;
      await put(1);
      await eventually(async () => (await held().catch(() => undefined)) !== undefined);
      await dialled.operator.call("revoke", { spki: spkiOf(revoked.credentials), reason: "test" });
      await eventually(() => dialled.log().includes("a replication stream is cut"));
      await put(2);
      // Time for a push, and for a new stream.
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(await held()).to.deep.equal({ number: 1 });
    } finally {
      await stopPair();
    }
  });
});
