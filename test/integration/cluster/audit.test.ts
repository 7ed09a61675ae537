import { createHash, randomBytes, randomUUID } from "node:crypto";
import { request } from "node:https";
import { expect } from "chai";
import { askOnce } from "#api/ask.ts";
import { ApiRefusal, type ApiClient, type Credentials } from "#api/client.ts";
import { isAudited, methods, type MethodName } from "#api/methods.ts";
import { inventoryEntry, type CertificateEntry } from "#pki/issued.ts";
import { createTestCluster, eventually, issueTo, type TestCluster } from "#support/cluster.ts";
import {
  nodeCredentials,
  registrationOf,
  renewCredentials,
  spkiOf,
  startControllers,
  type TestController,
} from "#support/controllers.ts";

/** A part of every written value; no line of the trail may contain it. */
const canary = "canary-5f1d";
const unsigned = { statement: canary, signature: "", signer: "" };

describe("the audit log of a controller", () => {
  let cluster: TestCluster;
  let controller: TestController;
  let other: TestController;
  let stop: () => Promise<void>;
  let node: ApiClient;
  const nodeId = randomUUID();

  before(async () => {
    cluster = await createTestCluster();
    const started = await startControllers(cluster, 2);
    [controller, other] = started.controllers as [TestController, TestController];
    ({ stop } = started);
    node = controller.clientOf(nodeCredentials(cluster, nodeId));
    await node.call("registerNode", registrationOf(nodeId));
  });
  after(async () => {
    await stop();
    await cluster.remove();
  });

  const linesSince = (mark: number, { log } = controller): readonly Record<string, unknown>[] =>
    log()
      .slice(mark)
      .split("\n")
      .filter((line) => line.includes('"audit"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ message }) => message === "audit");
  const operator = (): ApiClient => controller.operator;
  const renew = (): Promise<unknown> => renewCredentials(node, nodeId, cluster.authority.rootPem);
  const someController = async (): Promise<string> => {
    const id = randomUUID();
    await operator().call("registerController", { spki: randomBytes(32).toString("hex") }, { id });
    return id;
  };
  const onNode = { id: nodeId };
  const entryOf = (id: string): CertificateEntry =>
    inventoryEntry(issueTo(cluster.authority, "node", id).cert) as CertificateEntry;
  const secret = { value: { password: canary } };
  const expected = { name: "n1", roles: [] as string[], source: "roster" as const };

  const bundle = Buffer.from(canary);
  type UpdateCall = "cancelUpdate" | "rollbackUpdate" | "promoteUpdate" | "takeOverUpdate" | "removeUpdate";
  const onUnknownUpdate = (
    name: UpdateCall,
    body: Readonly<Record<string, unknown>> = {},
    logged = body,
  ): readonly [() => Promise<unknown>, Readonly<Record<string, unknown>>] => [
    () => operator().call(name, body as never, { id: "spring" }),
    { target: "spring", outcome: "UPDATE_UNKNOWN", status: 404, ...logged },
  ];

  /** A call of each audited method, and fields of the expected line. Calls that remove things come last. */
  const calls: Partial<Record<MethodName, readonly [() => Promise<unknown>, Readonly<Record<string, unknown>>]>> = {
    registerNode: [() => node.call("registerNode", registrationOf(nodeId)), { target: nodeId, outcome: "done" }],
    renew: [renew, { target: nodeId, outcome: "done" }],
    approveNode: [() => operator().call("approveNode", {}, onNode), { target: nodeId, outcome: "done" }],
    setLabels: [() => operator().call("setLabels", { set: { tier: canary } }, onNode), { set: ["tier"] }],
    setTaints: [
      () => operator().call("setTaints", { set: [{ key: "k", value: canary, effect: "NoExecute" }] }, onNode),
      { target: nodeId, set: ["k"] },
    ],
    setExpected: [() => operator().call("setExpected", expected, onNode), { target: nodeId, outcome: "created" }],
    registerController: [someController, { outcome: "created" }],
    removeController: [
      async () => operator().call("removeController", {}, { id: await someController() }),
      { outcome: "deleted" },
    ],
    ackConflict: [
      () => operator().call("ackConflict", {}, { id: "none" }),
      { target: "none", outcome: "CONFLICT_UNKNOWN", status: 404 },
    ],
    takeLoser: [
      () => operator().call("takeLoser", {}, { id: "none" }),
      { target: "none", outcome: "CONFLICT_UNKNOWN", status: 404 },
    ],
    recordCertificate: [
      () => operator().call("recordCertificate", entryOf("n9")),
      { role: "node", holder: "n9", outcome: "created" },
    ],
    revoke: [
      () => operator().call("revoke", { spki: "ab".repeat(32), reason: "sold" }),
      { spki: "ab".repeat(32), reason: "sold", outcome: "created" },
    ],
    subCaRequest: [() => operator().call("subCaRequest", { nonce: "n".repeat(30) }), { outcome: "done" }],
    subCaInstall: [
      () => operator().call("subCaInstall", { certificate: canary }),
      { outcome: "SUB_CA_INVALID", status: 400 },
    ],
    certificateRequest: [() => operator().call("certificateRequest", { nonce: "n".repeat(30) }), { outcome: "done" }],
    certificateInstall: [
      () => operator().call("certificateInstall", { certificate: canary }),
      { outcome: "CERTIFICATE_INVALID", status: 400 },
    ],
    putObject: [() => operator().call("putObject", secret, { id: "Secret/x" }), { target: "Secret/x" }],
    removeObject: [() => operator().call("removeObject", {}, { id: "Secret/x" }), { outcome: "deleted" }],
    putConfig: [() => operator().call("putConfig", secret, { id: "group" }), { target: "group", outcome: "created" }],
    applyUpdate: [
      () => operator().call("applyUpdate", { signed: unsigned, ownership: unsigned }, { id: "spring" }),
      { target: "spring", outcome: "UPDATE_UNSIGNED", status: 400 },
    ],
    approveUpdate: [
      () => operator().call("approveUpdate", { generation: 1, hash: "ab".repeat(32) }, { id: "spring" }),
      { target: "spring", outcome: "UPDATE_UNKNOWN", status: 404, generation: 1, hash: "ab".repeat(32) },
    ],
    cancelUpdate: onUnknownUpdate("cancelUpdate"),
    rollbackUpdate: onUnknownUpdate("rollbackUpdate", { now: true }),
    promoteUpdate: onUnknownUpdate("promoteUpdate"),
    takeOverUpdate: onUnknownUpdate("takeOverUpdate", { ownership: unsigned }, {}),
    removeUpdate: onUnknownUpdate("removeUpdate"),
    attendUpdate: [
      () => operator().call("attendUpdate", { host: "bastion-1" }, { id: "spring" }),
      { target: "spring", outcome: "UPDATE_UNKNOWN", status: 404, host: "bastion-1" },
    ],
    answerHook: [
      () =>
        operator().call(
          "answerHook",
          { node: nodeId, generation: 1, seq: 1, hook: "drain", ok: true, message: canary },
          { id: "spring" },
        ),
      { target: "spring", outcome: "UPDATE_UNKNOWN", status: 404, node: nodeId, hook: "drain", ok: true },
    ],
    putBundle: [
      () =>
        operator().call(
          "putBundle",
          { offset: 0, size: bundle.length, data: bundle.toString("base64") },
          { id: createHash("sha256").update(bundle).digest("hex") },
        ),
      { size: bundle.length, outcome: "done" },
    ],
    backup: [
      async () => {
        const stream = await operator().open("backup", {});
        for await (const _ of stream);
      },
      { outcome: "done" },
    ],
    goodbye: [() => node.call("goodbye", { nodeId }), { target: nodeId }],
    rejectNode: [() => operator().call("rejectNode", { reason: "r" }, onNode), { target: nodeId, reason: "r" }],
    removeNode: [() => operator().call("removeNode", { reason: "r" }, onNode), { outcome: "deleted", reason: "r" }],
    leave: [() => other.operator.call("leave", {}), { outcome: "deleted" }],
  };
  const names = (Object.keys(methods) as MethodName[]).filter((name) => isAudited(name));

  it("S-27: this test calls every audited method", () => {
    expect(Object.keys(calls).toSorted(), "a new method needs a call in this test").to.deep.equal(names.toSorted());
  });

  it("S-27, S-7: has one line for each call, with caller, target and outcome, and no value", async () => {
    for (const [name, [call, wanted]] of Object.entries(calls)) {
      const asked = name === "leave" ? other : controller;
      const mark = asked.log().length;
      await call().catch((error: unknown) => {
        if (!(error instanceof ApiRefusal)) throw error;
      });
      const found = () => linesSince(mark, asked).filter(({ method }) => method === name);
      // A stream's answer begins before its end.
      await eventually(() => found().length > 0);
      const lines = found();
      expect(lines, name).to.have.length(1);
      const [line = {}] = lines;
      const isNode = (methods[name as MethodName].roles as readonly string[]).includes("node");
      expect(line, name).to.deep.include({ level: "info", status: 200, ...wanted });
      expect(line["by"], name).to.equal(isNode ? `node ${nodeId}` : "operator ann");
      expect(line["key"], name).to.match(/^[0-9a-f]{64}$/);
      expect(line["request"], name).to.match(/^[0-9a-f-]{36}$/);
      expect(line["from"], name).to.equal("127.0.0.1");
    }
    for (const { log } of [controller, other]) expect(log()).not.to.contain(canary);
  });

  it("S-27: has refused calls, too", async () => {
    const id = randomUUID();
    const credentials = nodeCredentials(cluster, id);
    const client = controller.clientOf(credentials);
    await client.call("registerNode", registrationOf(id));
    const mark = controller.log().length;
    await client.call("setLabels", { set: {} }, { id }).catch(() => undefined);
    const line = { method: "setLabels", by: `node ${id}`, key: spkiOf(credentials), target: id };
    expect(linesSince(mark)).to.have.length(1);
    expect(linesSince(mark)[0]).to.deep.include({ ...line, outcome: "API_DENIED", status: 403 });
  });

  it("S-27: has the request id that the answer carries, also of a refusal", async () => {
    const ask = (credentials: Credentials): Promise<readonly [number | undefined, unknown]> =>
      new Promise((resolve, reject) => {
        const url = `https://${controller.endpoint}/v1/config/group`;
        const sent = request(url, { method: "POST", agent: false, ...credentials }, (response) => {
          response.resume();
          resolve([response.statusCode, response.headers["x-request-id"]]);
        });
        sent.on("error", reject).end('{"value":{}}');
      });
    for (const credentials of [cluster.operator, issueTo(cluster.authority, "controller", randomUUID())]) {
      const mark = controller.log().length;
      const [status, id] = await ask(credentials);
      expect(linesSince(mark).map((line) => [line["status"], line["request"]])).to.deep.equal([[status, id]]);
    }
  });

  it("S-27: names the run that asks, if its id is well-formed", async () => {
    const ask = { endpoints: [controller.endpoint], credentials: cluster.operator, clock: Date.now };
    for (const [run, logged] of [
      ["20261121-r1", "20261121-r1"],
      [`x ${canary}`, undefined],
    ] as const) {
      const mark = controller.log().length;
      await askOnce({ ...ask, run }, (client) => client.call("putConfig", { value: {} }, { id: "group" }));
      expect(linesSince(mark)[0]?.["run"]).to.equal(logged);
    }
  });
});
