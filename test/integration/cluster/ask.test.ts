import { once } from "node:events";
import { createServer } from "node:https";
import type { Server } from "node:https";
import { expect } from "chai";
import { askOnce, openControllers } from "#api/ask.ts";
import type { ControllersOptions, Controllers } from "#api/ask.ts";
import type { ApiClient } from "#api/client.ts";
import { createTestCluster, issueTo } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { refusalCodeOf, spkiOf } from "#support/controllers.ts";
import { freePort } from "#support/ports.ts";
import { rejectionOf } from "#support/rejection.ts";

/** A server with a controller's certificate and prepared answers, and the requests that it has counted. */
interface FakeController {
  readonly endpoint: string;
  readonly key: string;
  answer: readonly [status: number, body: object];
  asked: number;
  connections: number;
}

const fine = [200, { ready: true }] as const;
const refusal = (status: number, code: string) => [status, { code, message: "no" }] as const;

describe("a request to a cluster's controllers", () => {
  let cluster: TestCluster;
  const servers: Server[] = [];
  let all: readonly FakeController[];
  let opened: Controllers | undefined;

  const serve = async (id: string): Promise<FakeController> => {
    const credentials = issueTo(cluster.authority, "controller", id);
    const fake: FakeController = { endpoint: "", key: spkiOf(credentials), answer: fine, asked: 0, connections: 0 };
    const server = createServer({ ...credentials, requestCert: true, minVersion: "TLSv1.3" }, (_request, response) => {
      fake.asked++;
      response.writeHead(fake.answer[0], { "content-type": "application/json" }).end(JSON.stringify(fake.answer[1]));
    });
    servers.push(server);
    server.on("secureConnection", () => fake.connections++);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return Object.assign(fake, { endpoint: `127.0.0.1:${(server.address() as { port: number }).port}` });
  };
  const open = (given: Partial<ControllersOptions> = {}): Controllers => {
    const endpoints = all.map(({ endpoint }) => endpoint);
    return (opened = openControllers({ endpoints, credentials: cluster.operator, clock: Date.now, ...given }));
  };
  const askReady = (client: ApiClient) => client.call("ready", {});
  const requestCounts = (): readonly number[] => all.map(({ asked }) => asked);

  before(async () => {
    cluster = await createTestCluster();
    all = await Promise.all(["a", "b", "c"].map((id) => serve(`controller-${id}`)));
  });
  beforeEach(() => {
    for (const fake of all) Object.assign(fake, { answer: fine, asked: 0, connections: 0 });
  });
  afterEach(() => opened?.close());
  after(async () => {
    for (const server of servers) server.close().closeAllConnections();
    await cluster.remove();
  });

  it("goes to the first controller, and keeps its connection", async () => {
    const controllers = open();
    for (let turn = 0; turn < 3; turn++) expect((await controllers.ask(askReady)).ready).to.equal(true);
    expect(requestCounts()).to.deep.equal([3, 0, 0]);
    expect(all[0]?.connections).to.equal(1);
  });

  it("goes to the next controller when one is unreachable, and stays with the one that answered", async () => {
    const failed: [string, boolean][] = [];
    const dead = `127.0.0.1:${await freePort()}`;
    const controllers = open({
      endpoints: [dead, ...all.map(({ endpoint }) => endpoint)],
      onFailed: (_failure, endpoint, isLast) => void failed.push([endpoint, isLast]),
    });
    await controllers.ask(askReady);
    await controllers.ask(askReady);
    expect(failed).to.deep.equal([[dead, false]]);
    expect(controllers.current()).to.equal(all[0]?.endpoint);
    expect(requestCounts()).to.deep.equal([2, 0, 0]);
  });

  it("is repeated for at most 3 s while the only controller is still joining", async () => {
    const [one] = all as readonly [FakeController, ...FakeController[]];
    one.answer = refusal(503, "CONTROLLER_JOINING");
    const controllers = open({ endpoints: [one.endpoint] });
    const asking = controllers.ask(askReady);
    while (one.asked < 3) await new Promise((resolve) => setImmediate(resolve));
    one.answer = fine;
    expect((await asking).ready).to.equal(true);
    one.answer = refusal(503, "CONTROLLER_JOINING");
    one.asked = 0;
    expect(await rejectionOf(controllers.ask(askReady))).to.include({ reason: "CONTROLLER_JOINING" });
    // Five questions a second at most.
    expect(one.asked).to.be.within(2, 16);
    // Any other failure of a controller is reported at once.
    one.answer = refusal(503, "CONTROLLER_READ_ONLY");
    one.asked = 0;
    expect(await rejectionOf(controllers.ask(askReady))).to.include({ reason: "CONTROLLER_READ_ONLY" });
    expect(one.asked).to.equal(1);
  });

  it("is not repeated at a joining controller for an impatient client, such as an agent (F-27)", async () => {
    const [one] = all as readonly [FakeController, ...FakeController[]];
    one.answer = refusal(503, "CONTROLLER_JOINING");
    const controllers = open({ endpoints: [one.endpoint], isPatient: false });
    expect(await rejectionOf(controllers.ask(askReady))).to.include({ reason: "CONTROLLER_JOINING" });
    expect(one.asked).to.equal(1);
  });

  it("ends with a refusal that every controller would give, and otherwise goes to the next controller", async () => {
    for (const [status, code, next] of [
      [404, "NODE_UNKNOWN", 0],
      [403, "KEY_REVOKED", 0],
      [403, "NODE_REJECTED", 0],
      [409, "MATCH_FAILED", 0],
      [400, "API_INVALID", 0],
      [503, "CONTROLLER_JOINING", 1],
      [503, "CONTROLLER_READ_ONLY", 1],
      [507, "STORE_UNWRITABLE", 1],
      [429, "API_BUSY", 1],
      [500, "INTERNAL", 1],
      [401, "API_DENIED", 1],
      [403, "KEY_UNREGISTERED", 1],
      [403, "NODE_PENDING", 1],
    ] as const) {
      for (const fake of all) fake.asked = 0;
      (all[0] as FakeController).answer = refusal(status, code);
      expect(await refusalCodeOf(open().ask(askReady))).to.equal(next === 1 ? "allowed" : code);
      expect(requestCounts()).to.deep.equal([1, next, 0]);
    }
  });

  it("fails with the refusal when the others are unreachable, otherwise with one problem for each", async () => {
    const dead = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    const refusing = all[1] as FakeController;
    refusing.answer = refusal(503, "CONTROLLER_JOINING");
    const mixed = open({ endpoints: [refusing.endpoint, ...dead] });
    expect(await rejectionOf(mixed.ask(askReady))).to.include({ reason: "CONTROLLER_JOINING", exitCode: 1 });
    const silent = await rejectionOf(open({ endpoints: dead }).ask(askReady));
    expect(silent.problems.map(({ code }) => code)).to.deep.equal(["API_UNREACHABLE", "API_UNREACHABLE"]);
    expect(silent.exitCode).to.equal(3);
    const unknown = await rejectionOf(open({ endpoints: [] }).ask(askReady));
    expect(unknown.problems.map(({ code }) => code)).to.deep.equal(["CLUSTER_UNKNOWN"]);
  });

  it("to endpoints of its own reports no failure, and leaves the preferred controller as it was", async () => {
    const failed: string[] = [];
    const controllers = open({ onFailed: (_failure, endpoint) => void failed.push(endpoint) });
    await controllers.ask(askReady);
    const dead = `127.0.0.1:${await freePort()}`;
    await controllers.ask(askReady, { endpoints: [dead, all[2]?.endpoint ?? ""] });
    await controllers.ask(askReady);
    expect(requestCounts()).to.deep.equal([2, 0, 1]);
    expect(failed).to.deep.equal([]);
  });

  it("to a pinned key accepts no other key", async () => {
    const { endpoint, key } = all[1] as FakeController;
    const controllers = open();
    expect((await controllers.ask(askReady, { endpoints: [endpoint], serverKeys: [key] })).ready).to.equal(true);
    const other = controllers.ask(askReady, { endpoints: [endpoint], serverKeys: ["0".repeat(64)] });
    const error = await rejectionOf(other);
    expect(error.problems.map(({ code }) => code)).to.deep.equal(["API_UNTRUSTED"]);
    expect(requestCounts()).to.deep.equal([0, 1, 0]);
  });

  it("goes to learned controllers last, each once", async () => {
    const [first, second] = all as [FakeController, FakeController];
    const controllers = open({ endpoints: [first.endpoint] });
    expect(controllers.learn([first.endpoint, second.endpoint])).to.deep.equal([second.endpoint]);
    expect(controllers.learn([second.endpoint])).to.deep.equal([]);
    first.answer = refusal(503, "CONTROLLER_JOINING");
    await controllers.ask(askReady);
    expect(requestCounts()).to.deep.equal([1, 1, 0]);
  });

  it("uses the credentials that are current when it connects", async () => {
    let present = cluster.operator;
    const controllers = open({ credentials: () => present });
    await controllers.ask(askReady);
    present = issueTo(cluster.authority, "controller", "another");
    await controllers.ask(askReady);
    controllers.close();
    await controllers.ask(askReady);
    expect(all[0]?.connections).to.equal(2);
  });

  it("passes on an error that is no controller's failure, and goes to no other controller", async () => {
    const thrownBy = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);
    const bug = new TypeError("a bug");
    expect(await thrownBy(open().ask(() => Promise.reject(bug)))).to.equal(bug);
    const stop = AbortSignal.abort(new Error("stopped"));
    const asking = { endpoints: all.map(({ endpoint }) => endpoint), credentials: cluster.operator, clock: Date.now };
    expect(await thrownBy(askOnce({ ...asking, signal: stop }, askReady))).to.equal(stop.reason);
    expect(requestCounts()).to.deep.equal([0, 0, 0]);
  });
});
