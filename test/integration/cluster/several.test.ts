import { randomUUID } from "node:crypto";
import { request } from "node:https";
import { expect } from "chai";
import type { ApiRefusal, Credentials } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import {
  areAllInStep,
  nodeCredentials,
  reasonOf,
  registrationOf,
  spkiOf,
  startControllers,
  knowAllOf,
} from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { startDelayLine } from "#support/delay-line.ts";
import type { DelayLine } from "#support/delay-line.ts";

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

  it("list each other, wherever one asks", async () => {
    for (const { operator } of controllers) {
      const list = (await operator.call("listControllers", {})).controllers;
      expect(list.map(({ controllerId }) => controllerId).toSorted()).to.deep.equal(
        controllers.map(({ id }) => id).toSorted(),
      );
      expect(list.map(({ dc }) => dc).toSorted()).to.deep.equal(["DC1", "DC1", "DC2"]);
    }
  });

  it("show a node that registered at one of them everywhere, ready, with the same words", async () => {
    const began = Date.now();
    const { id } = await register(0);
    await knownEverywhere(id);
    const views = await Promise.all(controllers.map(({ operator }) => operator.call("listNodes", {})));
    const [first, ...others] = views.map(({ nodes }) => nodes.map((node) => ({ ...node, lastSeen: "" })));
    for (const other of others) expect(other).to.deep.equal(first);
    // A beat is handed on by its age, which each controller counts back on a clock of its own.
    const seen = views.flatMap(({ nodes }) => nodes.map(({ lastSeen }) => Date.parse(lastSeen)));
    for (const each of seen) expect(each).to.be.within(began, Date.now());
    await eventually(async () => {
      const states = await Promise.all(controllers.map(({ operator }) => operator.call("replicationStatus", {})));
      const [first] = states;
      return states.every(({ digest, healthy }) => digest === first?.digest && healthy);
    });
  });

  it("S-11: refuse a rejected node from the moment its record is there, also on a connection that stands", async () => {
    const { id, credentials } = await register(0);
    await knownEverywhere(id);
    const nodes = controllers.map((controller) => controller.clientOf(credentials));
    for (const node of nodes) await node.call("heartbeat", { nodeId: id });
    await at(1).operator.call("rejectNode", { reason: "test" }, { id });
    await knowAllOf(at(1), controllers);
    for (const node of nodes) expect(await reasonOf(node.call("heartbeat", { nodeId: id }))).to.equal("NODE_REJECTED");
    expect(await reasonOf((nodes[0] as (typeof nodes)[0]).call("registerNode", registrationOf(id)))).to.equal(
      "NODE_REJECTED",
    );
    expect((await (nodes[2] as (typeof nodes)[0]).call("getNode", {}, { id })).status).to.equal("rejected");
  });

  it("S-11: cut the open stream of a revoked key when its record comes, on every controller, and refuse it after a restart", async () => {
    const id = randomUUID();
    const { credentials } = await register(0, id);
    await knownEverywhere(id);
    // A request whose body never ends: a connection in the middle of something.
    let cuts = 0;
    await Promise.all(
      controllers.map(
        ({ endpoint }) =>
          new Promise<void>((resolve) => {
            const path = "/v1/nodes/heartbeat";
            const headers = { "content-length": 100 };
            const sent = request({
              ...parseEndpoint(endpoint),
              ...credentials,
              path,
              method: "POST",
              headers,
              agent: false,
            });
            sent.once("error", () => cuts++);
            sent.write('{"nodeId":', () => resolve());
          }),
      ),
    );
    await eventually(async () => (await at(2).operator.call("metrics", {})).includes("kcore_connections"));
    await new Promise((resolve) => setTimeout(resolve, 300));
    await at(2).operator.call("revoke", { spki: spkiOf(credentials), reason: "stolen" });
    await knowAllOf(at(2), controllers);
    // This process hears of it in one of its next turns.
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(cuts).to.equal(controllers.length);
    await at(0).stop();
    await at(0).start();
    expect(await reasonOf(at(0).clientOf(credentials).call("heartbeat", { nodeId: id }))).to.match(
      /KEY_REVOKED|JOINING/,
    );
    await eventually(() => areAllInStep(controllers));
    expect(await reasonOf(at(0).clientOf(credentials).call("getNode", {}, { id }))).to.equal("KEY_REVOKED");
    const listed = (await at(1).operator.call("listCertificates", {})).certificates;
    expect(listed.find(({ spki }) => spki === spkiOf(credentials))).to.include({ id, status: "revoked" });
  });

  it("S-12: node A asks nothing as node B, while its own identical call succeeds", async () => {
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
      for (const call of calls(b.id)) expect(await reasonOf(call())).to.equal("API_DENIED");
      const own = [];
      for (const call of calls(a.id)) own.push(await reasonOf(call()));
      // The nonce is not the one that was given; that is said, and not that the node may not ask.
      expect(own).to.deep.equal(["allowed", "allowed", "allowed", "allowed", "PKI_PROOF_INVALID", "allowed"]);
      for (const name of ["listNodes", "listControllers", "listCertificates", "replicationStatus", "metrics"] as const)
        expect(await reasonOf(client.call(name, {}))).to.equal("API_DENIED");
    }
  });

  it("keep two nodes of one name apart: the first keeps the name", async () => {
    const [first, second] = [randomUUID(), randomUUID()];
    for (const [index, id] of [first, second].entries()) {
      const client = at(index).clientOf(nodeCredentials(cluster, id));
      await client.call("registerNode", registrationOf(id, { hostname: "twin" }));
      await knownEverywhere(id);
    }
    const { nodes } = await at(2).operator.call("listNodes", {});
    const twins = nodes.filter(({ hostname }) => hostname === "twin");
    expect(new Map(twins.map(({ id, nameConflict }) => [id, nameConflict?.keepsName]))).to.deep.equal(
      new Map([
        [first, true],
        [second, false],
      ]),
    );
    const { names } = await at(2).operator.call("listConflicts", {});
    expect(names).to.deep.include({ hostname: "twin", nodes: [first, second], keptBy: first });
  });

  it("answer a write that was made from an old look with 409 and the present version", async () => {
    const id = "Cluster/prod";
    const created = await at(0).operator.call("putObject", { value: { a: 1 }, ifMatch: "absent" }, { id });
    expect(created.result).to.equal("created");
    expect((await at(0).operator.call("putObject", { value: { a: 1 } }, { id })).result).to.equal("unchanged");
    const updated = await at(0).operator.call("putObject", { value: { a: 2 }, ifMatch: created.dot }, { id });
    expect(updated.result).to.equal("updated");
    const late = at(0).operator.call("putObject", { value: { a: 3 }, ifMatch: created.dot }, { id });
    const error = await late.then(
      () => undefined,
      (refusal: unknown) => refusal as ApiRefusal,
    );
    expect(error?.status).to.equal(409);
    expect(error?.problems[0]?.hint).to.contain(updated.dot);
  });

  it("show a node that is only expected as unknown, with its roles, and never take a removed id again", async () => {
    const id = randomUUID();
    const expected = { name: "n9", roles: ["worker"], dc: "DC2", source: "manifest" as const };
    await at(0).operator.call("setExpected", expected, { id });
    await knownEverywhere(id, "unknown");
    const view = await at(1).operator.call("getNode", {}, { id });
    expect(view).to.deep.include({ hostname: "n9", roles: ["worker"], dc: "DC2", status: "unknown" });
    await at(1).operator.call("removeNode", { reason: "gone" }, { id });
    const credentials = nodeCredentials(cluster, id);
    await eventually(
      async () =>
        (await reasonOf(at(2).clientOf(credentials).call("registerNode", registrationOf(id)))) === "NODE_REMOVED",
    );
  });

  it("tell a disagreement on requireManualApproval, and the stricter wins", async () => {
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
        await reasonOf(lenient.clientOf(nodeCredentials(cluster, id)).call("renewChallenge", { nodeId: id })),
      ).to.match(/KEY_UNREGISTERED|NODE_PENDING/);
      const { settings } = await lenient.operator.call("replicationStatus", {});
      expect(new Set(settings.map(({ requireManualApproval }) => requireManualApproval))).to.deep.equal(
        new Set([false, true]),
      );
    } finally {
      await strict.stop();
    }
  });

  it("list what changes to who watches", async () => {
    const stream = await at(0).operator.open("watch", { prefixes: ["object/"] });
    let text = "";
    stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    await eventually(() => text.includes('"synced"'));
    await at(1).operator.call("putObject", { value: { seen: true } }, { id: "Cluster/watched" });
    await eventually(() => text.includes("object/Cluster/watched"));
    stream.destroy();
  });

  it("S-11: take nothing more from a controller whose key is revoked, over a stream that they opened themselves", async () => {
    const { controllers: pair, stop: stopPair } = await startControllers(cluster, 2);
    try {
      // The second one joined, so it was who dialled.
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

  it("take a fourth one in that dials only its sponsor, and let it go again", async () => {
    const [sponsor] = controllers as [TestController];
    const { controllers: pair, stop: stopPair } = await startControllers(cluster, 2);
    try {
      const leaving = pair[1] as TestController;
      await leaving.operator.call("leave", {});
      const staying = pair[0] as TestController;
      await eventually(async () => (await staying.operator.call("listControllers", {})).controllers.length === 1);
    } finally {
      await stopPair();
    }
    expect((await sponsor.operator.call("listControllers", {})).controllers.length).to.equal(3);
  });
});

describe("controllers that lose sight of each other", () => {
  let cluster: TestCluster;
  let lines: DelayLine[];
  let stop: () => Promise<void>;
  let pair: readonly [TestController, TestController];

  beforeEach(async () => {
    cluster = await createTestCluster();
    lines = [];
    const started = await startControllers(cluster, 2, {
      dcs: ["DC1", "DC2"],
      advertise: async (_index, endpoint) => {
        const line = await startDelayLine({ target: parseEndpoint(endpoint) });
        lines.push(line);
        return `127.0.0.1:${line.port}`;
      },
    });
    pair = started.controllers as [TestController, TestController];
    ({ stop } = started);
  });
  afterEach(async () => {
    await stop();
    for (const line of lines) await line.close();
    await cluster.remove();
  });

  it("F-28: go on, converge when it heals, list what was written on both sides, and a reject beats an approve", async () => {
    const [a, b] = pair;
    const id = randomUUID();
    await a.clientOf(nodeCredentials(cluster, id)).call("registerNode", registrationOf(id));
    await eventually(async () => (await b.operator.call("listNodes", {})).nodes.length === 1);
    await a.operator.call("rejectNode", {}, { id });
    await eventually(async () => (await b.operator.call("getNode", {}, { id })).approval === "rejected");
    for (const line of lines) line.cut();
    await eventually(async () => !(await areAllInStep(pair)));
    await a.operator.call("setLabels", { set: { tier: "ssd" } }, { id });
    await b.operator.call("setLabels", { set: { tier: "hdd" } }, { id });
    await b.operator.call("approveNode", {}, { id });
    await b.operator.call("rejectNode", {}, { id });
    // Later by the clock, and still it loses: who approved had not read this reject.
    await a.operator.call("approveNode", {}, { id });
    await a.operator.call("putObject", { value: { from: "a" } }, { id: "Cluster/one" });
    await b.operator.call("putObject", { value: { from: "b" } }, { id: "Cluster/two" });
    for (const line of lines) line.heal();
    await eventually(async () => {
      const [one, two] = await Promise.all(pair.map(({ operator }) => operator.call("replicationStatus", {})));
      return one?.digest === two?.digest && JSON.stringify(one?.vv) !== "{}" && (await areAllInStep(pair));
    });
    for (const { operator } of pair) {
      const objects = (await operator.call("listObjects", {})).objects.map(({ name }) => name);
      expect(objects).to.deep.equal(["one", "two"]);
      const { conflicts } = await operator.call("listConflicts", {});
      expect(conflicts.map(({ key }) => key)).to.include(`node/${id}/label/tier`);
    }
    const [views] = [await Promise.all(pair.map(({ operator }) => operator.call("getNode", {}, { id })))];
    expect(views[0]?.labels).to.deep.equal(views[1]?.labels);
    expect(views.map((view) => view.approval)).to.deep.equal(["rejected", "rejected"]);
    const { conflicts } = await a.operator.call("listConflicts", {});
    const label = conflicts.find(({ key }) => key.endsWith("/tier"));
    await a.operator.call("takeLoser", {}, { id: label?.id ?? "" });
    const taken = (label?.loser.value as { value: string } | undefined)?.value;
    await eventually(async () => (await b.operator.call("getNode", {}, { id })).labels["tier"] === taken);
    await eventually(
      async () => !(await b.operator.call("listConflicts", {})).conflicts.some((one) => one.id === label?.id),
    );
  });

  it("S-7: keep a secret object's values out of the conflict about it, and take none from there", async () => {
    const [a, b] = pair;
    const id = "Secret/one";
    for (const line of lines) line.cut();
    await eventually(async () => !(await areAllInStep(pair)));
    for (const { operator, endpoint } of pair)
      await operator.call("putObject", { value: { password: `canary ${endpoint}` } }, { id });
    for (const line of lines) line.heal();
    const found = await eventually(async () => (await a.operator.call("listConflicts", {})).conflicts[0]);
    expect(found.key).to.equal("object/Secret/one");
    expect([found.winner.value, found.loser.value]).to.deep.equal(["(secret)", "(secret)"]);
    expect(await reasonOf(a.operator.call("takeLoser", {}, { id: found.id }))).to.equal("CONFLICT_FINAL");
    const { value } = await a.operator.call("getObject", {}, { id });
    expect(JSON.stringify(value)).to.contain("canary");
    await a.operator.call("ackConflict", {}, { id: found.id });
    await eventually(async () => (await b.operator.call("listConflicts", {})).conflicts.length === 0);
  });
});
