import { randomBytes, randomUUID } from "node:crypto";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect } from "chai";
import type { ApiClient, Credentials } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { knowBastionCas } from "#pki/chain.ts";
import { dialController } from "#controller/transport/dial.ts";
import { createTestCluster, issueTo, type TestCluster } from "#support/cluster.ts";
import {
  nodeCredentials,
  refusalCodeOf,
  registrationOf,
  spkiOf,
  startController,
  type TestController,
} from "#support/controllers.ts";
import { tellLongForm, tries } from "#support/hostile.ts";
import { hangLimit } from "#support/limit.ts";
import { seededRandom } from "#support/random.ts";

/** Counts of connections and requests; the long form has the numbers of promise S-17. */
const connections = tries(2_000, 10_000);
const frames = tries(30_000, 1_000_000);

/** The first bytes of a client of TLS 1.3 (RFC 8446, 4.1.2), as OpenSSL sends them. */
const hello = await clientHello();

describe("a controller among hostile peers", function () {
  this.timeout(1_200_000);
  let cluster: TestCluster;
  let controller: TestController;

  beforeEach(async () => {
    cluster = await createTestCluster();
    controller = await startController(cluster, { process: true });
  });
  afterEach(async () => {
    await controller?.end();
    await cluster.remove();
  });

  const register = async (): Promise<{ id: string; credentials: Credentials; node: ApiClient }> => {
    const id = randomUUID();
    const credentials = nodeCredentials(cluster, id);
    const node = controller.clientOf(credentials);
    await node.call("registerNode", registrationOf(id));
    return { id, credentials, node };
  };
  const dial = async (credentials: Credentials): Promise<Socket> => {
    const endpoint = parseEndpoint(controller.endpoint);
    const bastion = knowBastionCas(credentials.ca, credentials.cert);
    const timeoutMs = hangLimit;
    return (await dialController({ endpoint, credentials, cluster: "lab", bastion, timeoutMs })).socket;
  };
  const rss = async (): Promise<number> => {
    const text = await controller.operator.call("metrics", {});
    return Number(/^process_resident_memory_bytes\{[^}]*\} (\d+)$/m.exec(text)?.[1]) / 2 ** 20;
  };
  /** The memory of a process after its start, in MiB, so that its own growth is not counted as the attackers'. */
  const settledRss = async (): Promise<number> => {
    for (let index = 0; index < 100; index++) await rss();
    return rss();
  };
  const closed = (socket: Socket): Promise<void> =>
    new Promise((resolve) => {
      socket.on("error", () => undefined);
      socket.once("close", () => resolve());
      socket.resume();
    });

  it("S-17, S-24: disconnects a peer that sends garbage, deeply nested JSON or endless lines, and stays ready", async () => {
    const id = randomUUID();
    const credentials = issueTo(cluster.authority, "controller", id);
    await controller.operator.call("registerController", { spki: spkiOf(credentials) }, { id });
    const before = await settledRss();
    const junk: readonly Buffer[] = [
      Buffer.from("[".repeat(1_000_000) + "\n"),
      Buffer.from(`{"t":"hello","vv":${"[".repeat(40)}${"]".repeat(40)}}\n`),
      Buffer.from(
        '{"t":"push","page":{"origins":[],"contexts":[],"registers":[[1,2]]},"origin":"x","from":0,"upto":9}\n',
      ),
      Buffer.from("null\n".repeat(1000)),
      Buffer.alloc(12 * 2 ** 20, "x"),
      ...Array.from({ length: 20 }, () => randomBytes(4096)),
    ];
    for (const bytes of junk) {
      const socket = await dial(credentials);
      const disconnected = closed(socket);
      socket.write(bytes);
      if (!bytes.includes(0x0a)) socket.write("\n");
      await disconnected;
    }
    expect((await controller.operator.call("ready", {})).ready).to.equal(true);
    expect((await rss()) - before).to.be.lessThan(50);
  });

  for (const [what, first] of [
    ["say nothing", undefined],
    ["stop after the TLS ClientHello", hello],
  ] as const)
    it(`S-17: serves other nodes within its memory limit during ${connections} connections that ${what}`, async () => {
      const { id, credentials, node } = await register();
      let [most, slowest] = [0, 0];
      const sockets: Socket[] = [];
      const endpoint = parseEndpoint(controller.endpoint);
      const before = await settledRss();
      const look = async (): Promise<void> => {
        const began = performance.now();
        await served(() => controller.operator.call("health", {}));
        await served(() => node.call("heartbeat", { nodeId: id }));
        slowest = Math.max(slowest, performance.now() - began);
        most = Math.max(most, (await served(rss)) - before);
      };
      try {
        for (let index = 0; index < connections; index++) {
          const socket = connect({ ...endpoint, localAddress: `127.0.1.${1 + (index % 4)}` });
          socket.on("error", () => undefined);
          if (first) socket.write(first);
          sockets.push(socket);
          if (index % 100 === 0) {
            await new Promise((resolve) => setImmediate(resolve));
            await look();
          }
        }
        const fresh = controller.clientOf(credentials);
        expect((await served(() => fresh.call("getNode", {}, { id }))).status).to.equal("ready");
        await look();
        tellLongForm(
          `${connections} connections that ${what}: +${most.toFixed(1)} MiB, slowest answer ${slowest.toFixed(0)} ms`,
        );
        expect(most).to.be.lessThan(50);
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    });

  it(`S-17: refuses ${frames} malformed requests of one operator, and serves others meanwhile`, async () => {
    const { id, node } = await register();
    const before = await settledRss();
    let [most, slowest] = [0, 0];
    const senders = 8;
    const began = performance.now();
    const statuses = new Map<string, number>();
    const noise = async (sender: number): Promise<void> => {
      const random = seededRandom(sender + 1);
      const options = { ...parseEndpoint(controller.endpoint), ...cluster.operator, rejectUnauthorized: false };
      for (let sent = 0; sent < frames / senders;) {
        const socket = connectTls(options);
        socket.setEncoding("latin1");
        const disconnected = closed(socket);
        let heard = 0;
        socket.on("data", (text: string) => {
          for (const [, status = ""] of text.matchAll(/HTTP\/1.1 (\d+)/g)) {
            statuses.set(status, (statuses.get(status) ?? 0) + 1);
            heard++;
          }
        });
        // A few hundred requests are unanswered at any time.
        for (let asked = 0; sent < frames / senders && !socket.destroyed; asked += 100, sent += 100) {
          socket.write(Buffer.concat(Array.from({ length: 100 }, () => noiseRequest(random))));
          while (asked - heard > 300 && !socket.destroyed) await new Promise((resolve) => setTimeout(resolve, 5));
        }
        socket.end();
        await disconnected;
      }
    };
    let over = false;
    const watch = async (): Promise<void> => {
      while (!over) {
        const asked = performance.now();
        await node.call("heartbeat", { nodeId: id });
        slowest = Math.max(slowest, performance.now() - asked);
        most = Math.max(most, (await rss()) - before);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    };
    await Promise.all([
      Promise.all(Array.from({ length: senders }, (_, lane) => noise(lane))).finally(() => (over = true)),
      watch(),
    ]);
    most = Math.max(most, (await rss()) - before);
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    tellLongForm(
      `${frames} requests of noise in ${seconds} s: +${most.toFixed(1)} MiB, slowest heartbeat ${slowest.toFixed(0)} ms, ${JSON.stringify([...statuses])}`,
    );
    expect([...statuses.keys()].filter((status) => !status.startsWith("4"))).to.deep.equal([]);
    expect((await controller.operator.call("ready", {})).ready).to.equal(true);
    const failures = controller
      .log()
      .split("\n")
      .filter((line) => /a bug ended|a request failed/.test(line));
    expect(failures.slice(0, 3)).to.deep.equal([]);
    expect(most).to.be.lessThan(50);
  });

  it("S-17: refuses a node that asks too fast, and serves others", async () => {
    const [fast, calm] = [await register(), await register()];
    const codes = await Promise.all(
      Array.from({ length: 300 }, () => refusalCodeOf(fast.node.call("heartbeat", { nodeId: fast.id }))),
    );
    expect(new Set(codes)).to.deep.equal(new Set(["allowed", "API_BUSY"]));
    expect((await calm.node.call("heartbeat", { nodeId: calm.id })).status).to.equal("ready");
  });
});

/** The answer to a node that tries again: the machine may lose a first connection under load. */
async function served<Result>(call: () => Promise<Result>, triesLeft = 4): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    if (triesLeft === 0) throw error;
    return served(call, triesLeft - 1);
  }
}

/** The first bytes that a TLS client sends. */
async function clientHello(): Promise<Buffer> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const heard = new Promise<Buffer>((resolve) =>
    server.once("connection", (socket) =>
      socket.once("data", (bytes) => {
        socket.destroy();
        server.close();
        resolve(bytes);
      }),
    ),
  );
  const { port } = server.address() as AddressInfo;
  connectTls({ host: "127.0.0.1", port, minVersion: "TLSv1.3" }).on("error", () => undefined);
  return heard;
}

/** A whole request whose body, or path, is wrong in one of many ways. */
function noiseRequest(random: () => number): Buffer {
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
  const deep = Math.floor(random() * 60);
  const body = pick([
    () => "[".repeat(deep),
    () => `{"nodeId":${"[".repeat(deep)}${"]".repeat(deep)}}`,
    () => `{"__proto__":{"approval":"approved"},"constructor":{"prototype":1},"value":${random()}`,
    () => `{"epoch":1e400,"state":"approved","reason":"\\ud800${"x".repeat(deep)}"`,
    () => String.fromCharCode(...Array.from({ length: deep }, () => Math.floor(random() * 256))) + "{",
    () => `"${"\\".repeat(deep)}`,
  ])();
  const path = pick([
    "/v1/nodes/heartbeat",
    "/v1/nodes/x/approve",
    "/v1/objects/a%2fb",
    "/v1/%00/..",
    "/v1/controllers/y",
  ]);
  const verb = pick(["POST", "PUT", "DELETE"]);
  const bytes = Buffer.from(body, "latin1");
  return Buffer.concat([
    Buffer.from(`${verb} ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${bytes.length}\r\n\r\n`),
    bytes,
  ]);
}
