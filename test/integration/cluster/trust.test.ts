import { createPublicKey, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, request } from "node:https";
import type { Server } from "node:https";
import { connect } from "node:net";
import { expect } from "chai";
import { openApi } from "#api/client.ts";
import type { ApiClient, Credentials } from "#api/client.ts";
import { createLog } from "#api/log.ts";
import { watchNodes } from "#controller/nodes.ts";
import { createApiServer } from "#controller/server.ts";
import type { Handlers } from "#controller/server.ts";
import { KcoreError } from "#errors/problem.ts";
import { issueCertificate } from "#pki/certificate.ts";
import type { CertificatePlan } from "#pki/certificate.ts";
import { generateKey } from "#pki/keys.ts";
import { createTestCluster, issueTo } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";

const day = 86_400_000;
const silent = createLog({ write: () => undefined, clock: Date.now });

describe("trust between clients and controllers", function () {
  this.timeout(20_000);
  let cluster: TestCluster;
  let stranger: TestCluster;
  const servers: Server[] = [];
  const clients: ApiClient[] = [];

  before(async () => {
    cluster = await createTestCluster();
    stranger = await createTestCluster();
  });
  after(async () => {
    await cluster.remove();
    await stranger.remove();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    }
  });

  const listen = async (server: Server): Promise<number> => {
    servers.push(server.listen(0, "127.0.0.1"));
    await once(server, "listening");
    return (server.address() as { port: number }).port;
  };
  const startController = (credentials: Credentials): Promise<number> => {
    const store = {
      get: () => undefined,
      list: () => [],
      update: () => Promise.reject(new Error("no")),
      close: async () => undefined,
    };
    const rules = { controllerId: "c", requireManualApproval: false, staleAfterMs: 1000 };
    const nodes = watchNodes(store, rules, Date.now);
    const handlers = {
      health: () => ({}),
      registerNode: (call) => nodes.register(call.caller, call.body),
    } as Partial<Handlers>;
    const server = createApiServer({
      credentials,
      cluster: "lab",
      handlers: handlers as Handlers,
      log: silent,
      clock: Date.now,
    });
    return listen(server);
  };
  const healthOf = async (port: number, credentials: Credentials): Promise<string> => {
    try {
      const client = openApi({ endpoint: { host: "127.0.0.1", port }, credentials, clock: Date.now, timeoutMs: 3000 });
      clients.push(client);
      await client.call("health", {});
      return "allowed";
    } catch (error) {
      if (error instanceof KcoreError) return `${error.problems[0]?.code} ${error.message}`;
      throw error;
    }
  };
  /** A certificate as our sub-CA would sign it, with something changed. */
  const signed = (changes: Partial<CertificatePlan>): Credentials => {
    const key = generateKey();
    const leaf = issueCertificate({
      commonName: "kcore-node-n1",
      publicKey: createPublicKey(key),
      issuer: cluster.authority.certificate,
      signer: cluster.authority.key,
      notBefore: new Date(Date.now() - day),
      notAfter: new Date(Date.now() + day),
      usages: ["server", "client"],
      hosts: ["127.0.0.1"],
      uri: "kcore://lab/node/a",
      ...changes,
    });
    const { rootPem: ca, certificatePem } = cluster.authority;
    return { ca, cert: leaf + certificatePem, key: key.export({ type: "pkcs8", format: "pem" }) as string };
  };
  /** What the controller answers to a client that checks nothing itself. */
  const statusFor = (port: number, { cert, key }: Credentials): Promise<number | string> =>
    new Promise((resolve) => {
      const options = { host: "127.0.0.1", port, path: "/healthz", cert, key, rejectUnauthorized: false };
      const sent = request(options, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sent.once("error", () => resolve("refused"));
      sent.end();
    });

  it("S-10: a client trusts only a controller of its own cluster, for this host", async () => {
    const authority = cluster.authority;
    const of = (credentials: Credentials): Promise<string> =>
      listen(createServer({ ...credentials, minVersion: "TLSv1.3" }, (_request, response) => response.end("{}"))).then(
        (port) => healthOf(port, cluster.operator),
      );
    expect(await of(issueTo(authority, "controller", "c"))).to.equal("allowed");
    expect(await of(issueTo(authority, "node", "n"))).to.match(/^API_UNTRUSTED .*not a controller/);
    expect(await of(issueTo(authority, "controller", "c", { host: "127.0.0.2" }))).to.match(/^API_UNTRUSTED/);
    expect(await of(issueTo(stranger.authority, "controller", "c"))).to.match(/^API_UNTRUSTED/);
    expect(await of(issueTo(authority, "controller", "c", { now: Date.now() - 91 * day }))).to.match(/^API_UNTRUSTED/);
    const uri = "kcore://other/controller/c";
    expect(await of(signed({ commonName: "kcore-controller-x", uri }))).to.contain("belongs to the cluster “other”");
  });

  it("S-10: a controller refuses every certificate that is not exactly a member's", async () => {
    const port = await startController(issueTo(cluster.authority, "controller", "c"));
    expect(await statusFor(port, signed({}))).to.equal(200);
    const bad: Readonly<Record<string, Credentials>> = {
      "another CA of the same name": issueTo(stranger.authority, "node", "a"),
      expired: signed({ notAfter: new Date(Date.now() - 1000) }),
      "not valid yet": signed({ notBefore: new Date(Date.now() + day / 2) }),
      "for servers only": signed({ usages: ["server"] }),
      "without a usage": signed({ usages: [] }),
      "a CA's": signed({ pathLength: 0 }),
      "without an identity": signed({ uri: "https://example.org" }),
      "another cluster's": signed({ uri: "kcore://other/node/a" }),
      "with another role's name": signed({ commonName: "kctl" }),
      "with an unknown role": signed({ uri: "kcore://lab/admin/a" }),
      "self-signed": ((): Credentials => {
        const key = generateKey();
        const times = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
        const plan = {
          commonName: "kctl",
          publicKey: createPublicKey(key),
          signer: key,
          uri: "kcore://lab/operator/ann",
        };
        const cert = issueCertificate({ ...plan, ...times, usages: ["client"] });
        return { ca: cert, cert, key: key.export({ type: "pkcs8", format: "pem" }) as string };
      })(),
    };
    for (const [name, credentials] of Object.entries(bad)) {
      expect(await statusFor(port, credentials), name).to.be.oneOf(["refused", 401, 403]);
    }
    expect(await statusFor(port, signed({}))).to.equal(200);
  });

  it("says before it connects that our own certificate has expired", async () => {
    const expired = issueTo(cluster.authority, "node", "a", { now: Date.now() - 91 * day });
    expect(await healthOf(9, expired)).to.match(/^API_UNTRUSTED our own certificate expired on/);
  });

  it("says that nobody listens, and gives up on who never answers", async () => {
    expect(await healthOf(9, cluster.operator)).to.match(/^API_UNREACHABLE .*ECONNREFUSED/);
    const server = createServer({ ...issueTo(cluster.authority, "controller", "c") }, () => undefined);
    const port = await listen(server);
    expect(await healthOf(port, cluster.operator)).to.contain("no answer within 3 s");
  });

  it("S-17: refuses bodies that are too large, too deep or no JSON, and lives on", async () => {
    const id = randomUUID();
    const credentials = issueTo(cluster.authority, "node", id);
    const port = await startController(issueTo(cluster.authority, "controller", "c"));
    const post = (body: string): Promise<number | string> =>
      new Promise((resolve) => {
        const { ca, cert, key } = credentials;
        const sent = request(
          { host: "127.0.0.1", port, path: "/v1/nodes/register", method: "POST", ca, cert, key },
          (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          },
        );
        sent.on("error", () => resolve("cut"));
        sent.end(body);
      });
    expect(await post(`{"nodeId":"${"x".repeat(2_000_000)}"}`)).to.be.oneOf([413, "cut"]);
    expect(await post("[".repeat(100_000))).to.equal(400);
    expect(await post("nonsense")).to.equal(400);
    expect(await post('{"__proto__":{"nodeId":"x"}}')).to.equal(400);
    expect(await statusFor(port, credentials)).to.equal(200);
  });

  it("S-17: cuts connections that never finish their handshake", async () => {
    const port = await startController(issueTo(cluster.authority, "controller", "c"));
    const started = performance.now();
    const socket = connect(port, "127.0.0.1");
    socket.resume();
    socket.on("error", () => undefined);
    await once(socket, "close");
    expect(performance.now() - started).to.be.lessThan(8_000);
  });
});
