import { execFileSync } from "node:child_process";
import { createPrivateKey, createPublicKey, randomUUID, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { createServer, request, type Server } from "node:https";
import { connect, type AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { connect as connectTls, createServer as createTlsServer, type SecureVersion } from "node:tls";
import { expect } from "chai";
import { openApi, type ApiClient, type Credentials } from "#api/client.ts";
import { issuerHeaders } from "#api/issuer-header.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { KcoreError } from "#errors/problem.ts";
import { issueCertificate, type CertificatePlan } from "#pki/certificate.ts";
import { firstCertificate, knowBastionCas } from "#pki/chain.ts";
import { openRoot } from "#pki/cluster.ts";
import { contextFolder } from "#pki/contexts.ts";
import { issuedFile } from "#pki/issued.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import type { Authority } from "#pki/issue.ts";
import { dialController } from "#controller/transport/dial.ts";
import { issueSubCa, signSubCa, type Root } from "#pki/sub-ca.ts";
import { ClusterSite } from "#support/cluster-site.ts";
import { createTestCluster, eventually, issueTo, passphrase, type TestCluster } from "#support/cluster.ts";
import {
  waitForWritesOf,
  nodeCredentials,
  prepareController,
  refusalCodeOf,
  recordAt,
  registrationOf,
  renewCredentials,
  spkiOf,
  startController,
  startControllers,
  type TestController,
} from "#support/controllers.ts";
import { hangLimit } from "#support/limit.ts";
import { makeTempDir } from "#support/temp-dir.ts";
import { openWirePeer } from "#support/wire-peer.ts";

const day = 86_400_000;
const pemOf = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }) as string;
const validNow = () => ({ notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) });

describe("trust between clients and controllers", () => {
  let cluster: TestCluster;
  let stranger: TestCluster;
  let controllers: readonly TestController[];
  let controller: TestController;
  let root: Root;
  let stop: () => Promise<void>;
  const servers: Server[] = [];
  const clients: ApiClient[] = [];

  before(async () => {
    cluster = await createTestCluster();
    stranger = await createTestCluster();
    ({ controllers, stop } = await startControllers(cluster, 2));
    [controller] = controllers as [TestController];
    root = await openRoot(contextFolder(cluster.home, "lab"), passphrase);
  });
  after(async () => {
    await stop();
    await cluster.remove();
    await stranger.remove();
  });
  const others: TestController[] = [];
  afterEach(async () => {
    for (const other of others.splice(0)) await other.end();
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
  const healthOf = async (port: number, credentials: Credentials, timeoutMs = hangLimit): Promise<string> => {
    try {
      const endpoint = { host: "127.0.0.1", port };
      const client = openApi({ endpoint, credentials, clock: Date.now, timeoutMs });
      clients.push(client);
      await client.call("health", {});
      return "allowed";
    } catch (error) {
      if (error instanceof KcoreError) return `${error.problems[0]?.code} ${error.message}`;
      throw error;
    }
  };
  /** A certificate with changes, signed by our sub-CA or another CA. */
  const signed = (changes: Partial<CertificatePlan>, by: Authority = cluster.authority): Credentials => {
    const key = generateKey();
    const leaf = issueCertificate({
      commonName: "kcore-node-n1",
      publicKey: createPublicKey(key),
      issuer: by.certificate,
      signer: by.key,
      ...validNow(),
      usages: ["server", "client"],
      hosts: ["127.0.0.1"],
      uri: "kcore://lab/node/a",
      ...changes,
    });
    return { ca: by.rootPem, cert: leaf + by.certificatePem, key: pemOf(key) };
  };
  const operatorOf = (by: Authority, name = "mallory"): Credentials =>
    signed({ commonName: "kctl", usages: ["client"], hosts: [], uri: `kcore://lab/operator/${name}` }, by);
  /** A certificate of our sub-CA, signed by openssl, for contents that our own issuer refuses to write. */
  const signedByOpenssl = async (subject: string, alternatives: string): Promise<Credentials> => {
    const dir = await makeTempDir("cert");
    const { authority } = cluster;
    const key = pemOf(generateKey());
    const files = {
      "ca.crt": authority.certificatePem,
      "ca.key": pemOf(authority.key),
      key,
      ext: `extendedKeyUsage=clientAuth\nbasicConstraints=critical,CA:FALSE\nsubjectAltName=${alternatives}\n`,
    };
    const openssl = (words: string, ...more: string[]): string =>
      execFileSync("openssl", [...words.split(" "), ...more], { cwd: dir.path, encoding: "utf8", stdio: "pipe" });
    try {
      for (const [name, text] of Object.entries(files)) writeFileSync(join(dir.path, name), text, { mode: 0o600 });
      openssl("req -new -key key -out csr -subj", subject);
      const leaf = openssl("x509 -req -in csr -CA ca.crt -CAkey ca.key -set_serial 0x77 -days 2 -extfile ext");
      return { ca: authority.rootPem, cert: leaf + authority.certificatePem, key };
    } finally {
      await dir.remove();
    }
  };
  interface Reply {
    readonly status: number | string;
    readonly reason: string;
  }
  /** The controller's answer to a client that verifies nothing, on a new connection. */
  const ask = (
    credentials: Partial<Credentials>,
    { path = "/healthz", method = "GET", body = "", maxVersion = "TLSv1.3" as SecureVersion, headers = {} } = {},
  ): Promise<Reply> =>
    new Promise((resolve) => {
      const { cert, key } = credentials;
      const options = { ...parseEndpoint(controller.endpoint), path, method, headers, cert, key, maxVersion };
      const sent = request({ ...options, agent: false, rejectUnauthorized: false }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.once("end", () => resolve({ status: response.statusCode ?? 0, reason: text }));
      });
      sent.once("error", (error) => resolve({ status: "refused", reason: error.message }));
      sent.end(body);
    });
  /** Log lines since a mark. */
  const logSince = (mark: number): string => controller.log().slice(mark);

  it("S-10: a client trusts only a controller of its own cluster and for this host", async () => {
    const authority = cluster.authority;
    const healthOfServer = (credentials: Credentials): Promise<string> =>
      listen(createServer({ ...credentials, minVersion: "TLSv1.3" }, (_request, response) => response.end("{}"))).then(
        (port) => healthOf(port, cluster.operator),
      );
    expect(await healthOfServer(issueTo(authority, "controller", "c"))).to.equal("allowed");
    expect(await healthOfServer(issueTo(authority, "node", "n"))).to.match(/^API_UNTRUSTED .*not a controller/);
    expect(await healthOfServer(issueTo(authority, "controller", "c", { host: "127.0.0.2" }))).to.match(
      /^API_UNTRUSTED/,
    );
    expect(await healthOfServer(issueTo(stranger.authority, "controller", "c"))).to.match(/^API_UNTRUSTED/);
    expect(await healthOfServer(issueTo(authority, "controller", "c", { now: Date.now() - 91 * day }))).to.match(
      /^API_UNTRUSTED/,
    );
    const uri = "kcore://other/controller/c";
    expect(await healthOfServer(signed({ commonName: "kcore-controller-x", uri }))).to.match(/^API_UNTRUSTED/);
  });

  it("S-10: a controller refuses 23 kinds of bad certificates, and logs each reason", async () => {
    const registered = randomUUID();
    await controller.clientOf(nodeCredentials(cluster, registered)).call("registerNode", registrationOf(registered));
    const revoked = nodeCredentials(cluster, randomUUID());
    await controller.operator.call("revoke", { spki: spkiOf(revoked), reason: "test" });
    const [member, unrecorded] = [randomUUID(), randomUUID()].map((id) => issueTo(cluster.authority, "node", id)) as [
      Credentials,
      Credentials,
    ];
    await recordAt(controller, member);
    const own = generateKey();
    const selfSigned = issueCertificate({
      commonName: "kctl",
      publicKey: createPublicKey(own),
      signer: own,
      ...validNow(),
      usages: ["client"],
      uri: "kcore://lab/operator/ann",
    });
    const leafKey = generateKey();
    const leaf = signed({ publicKey: createPublicKey(leafKey), commonName: "kcore-node-x" }).cert;
    const byLeaf = { ...cluster.authority, certificate: firstCertificate(leaf), certificatePem: leaf, key: leafKey };
    const heartbeat = { path: "/v1/nodes/heartbeat", method: "POST" };
    const rows: readonly (readonly [string, Partial<Credentials>, RegExp, Parameters<typeof ask>[1]?])[] = [
      ["of another CA of the same name", issueTo(stranger.authority, "node", "a"), /UNABLE_TO_GET_ISSUER/],
      ["self-signed, with the operator's name", { cert: selfSigned, key: pemOf(own) }, /SELF_SIGNED/],
      ["expired", signed({ notAfter: new Date(Date.now() - 1000) }), /CERT_HAS_EXPIRED/],
      ["not valid yet", signed({ notBefore: new Date(Date.now() + day / 2) }), /CERT_NOT_YET_VALID/],
      ["for servers only", signed({ usages: ["server"] }), /INVALID_PURPOSE/],
      ["without a usage", signed({ usages: [] }), /INVALID_PURPOSE/],
      ["a CA's", signed({ pathLength: 0 }), /INVALID_PURPOSE/],
      [
        "with two common names",
        await signedByOpenssl("/CN=kctl/CN=kcore-node-x", "URI:kcore://lab/operator/ann"),
        /has 2 common names/,
      ],
      [
        "without a common name",
        await signedByOpenssl("/O=kcore", "URI:kcore://lab/operator/ann"),
        /has 0 common names/,
      ],
      [
        "with two identities",
        await signedByOpenssl("/CN=kctl", "URI:kcore://lab/operator/ann,URI:kcore://lab/operator/bob"),
        /exactly one/,
      ],
      ["without an identity", signed({ uri: "https://example.org" }), /UNSPECIFIED/],
      ["with an identity in a DNS name only", await signedByOpenssl("/CN=kctl", "DNS:operator"), /exactly one/],
      ["another cluster's", signed({ uri: "kcore://other/node/a" }), /UNSPECIFIED/],
      ["with another role's name", signed({ commonName: "kctl" }), /does not fit its role/],
      ["with an unknown role", signed({ uri: "kcore://lab/admin/a" }), /exactly one/],
      ["of the operator's name with another key", operatorOf(cluster.authority, "ann"), /KEY_UNREGISTERED/],
      [
        "of a controller that nobody registered",
        issueTo(cluster.authority, "controller", randomUUID()),
        /CONTROLLER_UNKNOWN/,
      ],
      [
        "of this very controller with another key",
        issueTo(cluster.authority, "controller", controller.id),
        /KEY_UNREGISTERED/,
      ],
      ["of a node that nobody ever told of", unrecorded, /KEY_UNREGISTERED/],
      ["whose key was revoked", revoked, /KEY_REVOKED/],
      ["a node's, on the controllers' stream", member, /may not ask GET \/v1\/replicate/, { path: "/v1/replicate" }],
      [
        "of a registered node with another key",
        issueTo(cluster.authority, "node", registered),
        /KEY_UNREGISTERED/,
        { ...heartbeat, body: JSON.stringify({ nodeId: registered }) },
      ],
      ["signed by a member's certificate", operatorOf(byLeaf, "ann"), /UNSPECIFIED|INVALID_CA/],
    ];
    for (const [name, credentials, reason, options] of rows) {
      const mark = controller.log().length;
      const answer = await ask(credentials, options);
      expect(answer.status, name).to.be.oneOf(["refused", 401, 403, 404]);
      const evidence = `${answer.reason} ${logSince(mark)}`;
      expect(evidence, name).to.match(reason);
      if (answer.status !== 404) expect(logSince(mark), `${name}: log`).to.match(/refused/);
    }
    expect((await ask({})).status).to.equal("refused");
    expect((await ask(cluster.operator, { maxVersion: "TLSv1.2" })).status).to.equal("refused");
    const good = signed({});
    await recordAt(controller, good);
    expect((await ask(good)).status).to.equal(200);
  });

  it("S-10: a resumed session is checked like a new one", async () => {
    const id = randomUUID();
    const credentials = issueTo(cluster.authority, "node", id);
    await recordAt(controller, credentials);
    const options = { ...parseEndpoint(controller.endpoint), ...credentials, servername: "" };
    const session = await new Promise<Buffer>((resolve, reject) => {
      const socket = connectTls(options);
      socket.once("session", resolve);
      socket.once("error", reject);
      socket.on("data", () => socket.end());
      socket.once("secureConnect", () => socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
    });
    await controller.operator.call("revoke", { spki: spkiOf(credentials), reason: "test" });
    const answer = await new Promise<string>((resolve) => {
      const socket = connectTls({ ...options, session });
      let text = "";
      socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
      socket.once("error", () => resolve("refused"));
      socket.once("close", () => resolve(text));
      socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    });
    expect(answer).not.to.contain(" 200 ");
  });

  describe("a stolen controller: its sub-CA, certificate and place in the replication", () => {
    let evil: Authority;

    before(() => {
      const id = randomUUID();
      const key = generateKey();
      const proof = { challenge: "x", signature: proveKey(key, "x") };
      const spki = publicDer(key).toString("base64");
      const certificatePem = issueSubCa(
        { controllerId: id, spki, proof, hosts: ["127.0.0.1"] },
        { root, now: Date.now() },
      );
      evil = { ...cluster.authority, certificate: firstCertificate(certificatePem), certificatePem, key };
    });
    /** Registers a controller whose certificate the bastion issued, and writes these registers in its name. */
    const writeAsMember = async (
      registers: readonly { readonly key: string; readonly value: unknown }[],
      isWritten: () => Promise<boolean>,
    ): Promise<void> => {
      const id = randomUUID();
      const credentials = issueTo(cluster.authority, "controller", id);
      const spki = spkiOf(credentials);
      await controller.operator.call("registerController", { spki, dc: "DC1", address: "127.0.0.1:1" }, { id });
      const peer = await openWirePeer(controller, { id, credentials });
      try {
        await peer.next("welcome");
        peer.push(registers.map(({ key, value }) => ({ key, text: JSON.stringify(value) })));
        await eventually(isWritten);
      } finally {
        peer.close();
      }
    };
    it("cannot make an operator by the registers that it writes", async () => {
      const made = operatorOf(evil);
      const spki = spkiOf(made);
      const issued = {
        issuer: "kcore-cluster-sub-ca",
        notAfter: "2099-01-01T00:00:00Z",
        issued: "",
        by: "operator ann",
      };
      const serial = "e1".repeat(16);
      await writeAsMember(
        [
          { key: `cert/${serial}`, value: { spki, role: "operator", id: "mallory", ...issued } },
          { key: `operator/mallory/key/${spki}`, value: { spki } },
        ],
        async () =>
          (await controller.operator.call("listCertificates", {})).certificates.some((one) => one.serial === serial),
      );
      for (const path of ["/v1/nodes", "/healthz"]) {
        for (const headers of [{}, issuerHeaders(made.cert), issuerHeaders(cluster.operator.cert)]) {
          const answer = await ask(made, { path, headers });
          expect(answer.status).to.equal(403);
          expect(answer.reason).to.match(/was not issued on the bastion|does not come with the CA that issued it/);
        }
      }
      // Nor does it help to send the bastion's CA along.
      const beside = made.cert + cluster.authority.certificatePem;
      expect((await ask({ ...made, cert: beside }, { path: "/v1/nodes" })).status).to.equal(403);
      const leaf = made.cert.slice(0, made.cert.indexOf("-----END CERTIFICATE-----\n") + 26);
      const instead = leaf + cluster.authority.certificatePem + evil.certificatePem;
      expect((await ask({ ...made, cert: instead }, { path: "/v1/nodes" })).status).to.be.oneOf([403, "refused"]);
    });

    it("cannot make another controller by the registers that it writes", async () => {
      const id = randomUUID();
      const made = issueTo(evil, "controller", id);
      await writeAsMember([{ key: `controller/${id}/auth`, value: { spki: spkiOf(made), dc: "DC1" } }], async () =>
        (await controller.operator.call("listControllers", {})).controllers.some((one) => one.controllerId === id),
      );
      const answer = await ask(made, { path: "/v1/nodes", headers: issuerHeaders(made.cert) });
      expect(answer.status).to.equal(403);
      expect(answer.reason).to.contain("was not issued on the bastion");
      const port = await listen(
        createServer({ ...made, requestCert: true, rejectUnauthorized: false }, () => undefined),
      );
      const endpoint = { host: "127.0.0.1", port };
      const { ca, cert, key } = cluster.operator;
      const bastion = knowBastionCas(ca, cert);
      const dialled = dialController({
        endpoint,
        credentials: { ca, cert, key },
        cluster: "lab",
        bastion,
        timeoutMs: hangLimit,
      });
      expect(await refusalCodeOf(dialled)).to.contain("was not issued on the bastion");
    });

    it("does not prevent the bastion's new sub-CA from issuing valid certificates", async () => {
      const key = generateKey();
      const certificatePem = signSubCa({ root, publicKey: createPublicKey(key), now: Date.now() });
      const authority = { ...cluster.authority, certificate: firstCertificate(certificatePem), certificatePem, key };
      const ann = operatorOf(authority, "ann");
      await recordAt(controller, ann);
      const path = "/v1/nodes";
      expect((await ask(ann, { path })).status).to.equal(403);
      expect((await ask(ann, { path, headers: issuerHeaders(ann.cert) })).status).to.equal(200);
      // A CA that was seen once is known.
      expect((await ask(ann, { path })).status).to.equal(200);
    });

    it("cannot lock an operator out for good: the root CA issues a new certificate", async () => {
      const site = await ClusterSite.open(1);
      const { home, operator, authority } = site.cluster;
      try {
        const { operator: ann } = site.at(0);
        // The cluster accepts a controller's revocation: to revoke is the safe side.
        await ann.call("revoke", { spki: spkiOf(operator), reason: "mallory" });
        expect((await site.call("get", "nodes")).stderr).to.contain("KEY_REVOKED");
        const rotated = await site.call("rotate", "operator", "--passphrase-file", site.passphraseFile);
        expect(rotated.stdout).to.contain(`kcore revoke cert --spki ${spkiOf(operator)}`);
        expect((await site.call("get", "nodes")).code).to.equal(0);
        const certificate = readFileSync(join(home, authority.cluster, "kctl.crt"), "utf8");
        expect((await site.call("get", "certificates", "-o", "json")).stdout).to.contain(spkiOf({ cert: certificate }));
        const recorded = await site.call("rotate", "certs", "--passphrase-file", site.passphraseFile);
        expect(recorded.stdout).to.contain("operator: new certificate");
        expect((await site.call("get", "nodes")).code).to.equal(0);
      } finally {
        await site.stop();
      }
    });

    it("cannot pose as another controller to a client", async () => {
      const made = issueTo(evil, "controller", controller.id);
      const port = await listen(createServer(made, (_request, response) => response.end("{}")));
      expect(await healthOf(port, cluster.operator)).to.match(/^API_UNTRUSTED .*was not issued on the bastion/);
    });
  });

  it("a client reports before connecting that its own certificate has expired", async () => {
    const expired = issueTo(cluster.authority, "node", "a", { now: Date.now() - 121 * day });
    expect(await healthOf(9, expired)).to.match(/^API_UNTRUSTED our own certificate expired on/);
  });

  it("a client reports a refused connection, and gives up on a server that never answers", async () => {
    expect(await healthOf(9, cluster.operator)).to.match(/^API_UNREACHABLE .*ECONNREFUSED/);
    const server = createServer({ ...issueTo(cluster.authority, "controller", "c") }, () => undefined);
    const port = await listen(server);
    expect(await healthOf(port, cluster.operator, 3_000)).to.contain("no answer within 3 s");
  });

  it("S-17: a controller cuts connections that never finish their handshake", async () => {
    // A server with Node's default limit waits longer.
    const usual = createTlsServer().listen(0, "127.0.0.1");
    await once(usual, "listening");
    const places = [
      parseEndpoint(controller.endpoint),
      { host: "127.0.0.1", port: (usual.address() as AddressInfo).port },
    ];
    const sockets = places.map((place) =>
      connect(place)
        .on("error", () => undefined)
        .resume(),
    );
    const ends = sockets.map((socket, index) => once(socket, "close").then(() => index));
    try {
      expect(await Promise.race(ends)).to.equal(0);
    } finally {
      for (const socket of sockets) socket.destroy();
      usual.close();
    }
  });

  /** A node that is registered at the first controller and known everywhere. */
  const registered = async (): Promise<{ readonly id: string; readonly credentials: Credentials }> => {
    const id = randomUUID();
    const credentials = nodeCredentials(cluster, id);
    await controller.clientOf(credentials).call("registerNode", registrationOf(id));
    await waitForWritesOf(controller, controllers);
    return { id, credentials };
  };
  const renew = (client: ApiClient, nodeId: string): Promise<Credentials> =>
    renewCredentials(client, nodeId, cluster.authority.rootPem);

  it("S-10, S-11: a new key that an operator records ends the old one at once, on an open connection too", async () => {
    const { id, credentials } = await registered();
    const old = controllers.map((controller) => controller.clientOf(credentials));
    for (const client of old) await client.call("heartbeat", { nodeId: id });
    const next = issueTo(cluster.authority, "node", id);
    await recordAt(controller, next);
    expect(await refusalCodeOf((old[0] as ApiClient).call("heartbeat", { nodeId: id }))).to.equal("KEY_REVOKED");
    await waitForWritesOf(controller, controllers);
    for (const client of old)
      expect(await refusalCodeOf(client.call("heartbeat", { nodeId: id }))).to.equal("KEY_REVOKED");
    expect(await refusalCodeOf((old[1] as ApiClient).call("registerNode", registrationOf(id)))).to.equal("KEY_REVOKED");
    expect((await controller.clientOf(next).call("registerNode", registrationOf(id))).status).to.equal("ready");
    expect(await refusalCodeOf(recordAt(controller, credentials))).to.equal("KEY_REVOKED");
    const { certificates } = await controller.operator.call("getNode", {}, { id });
    const states = certificates.map(({ spki, status }) => [spki, status]);
    expect(new Map(states as [string, string][])).to.deep.equal(
      new Map([
        [spkiOf(credentials), "revoked"],
        [spkiOf(next), "active"],
      ]),
    );
  });

  it("S-12: a node learns of its controller only whether it is ready", async () => {
    const { id, credentials } = await registered();
    const { operator } = controller;
    const readyz = async (): Promise<string> => (await ask(credentials, { path: "/readyz" })).reason;
    expect(await readyz()).to.equal('{"ready":true}');
    await operator.call("rejectNode", {}, { id });
    expect(await readyz()).to.equal('{"ready":true}');
    const { peers } = await operator.call("ready", {});
    const { id: second, endpoint } = controllers[1] as TestController;
    expect(
      peers.find(({ controllerId }) => controllerId === second)?.address,
      "operators see the registered address",
    ).to.equal(endpoint);
  });

  it("S-14: a renewal ends the old key when the new one registers, not before", async () => {
    const { id, credentials } = await registered();
    const old = controller.clientOf(credentials);
    const next = controller.clientOf(await renew(old, id));
    expect(await refusalCodeOf(next.call("getNode", {}, { id }))).to.equal("allowed");
    expect(await refusalCodeOf(old.call("heartbeat", { nodeId: id }))).to.equal("allowed");
    await next.call("registerNode", registrationOf(id));
    expect(await refusalCodeOf(old.call("heartbeat", { nodeId: id }))).to.equal("KEY_REVOKED");
    expect(await refusalCodeOf(next.call("heartbeat", { nodeId: id }))).to.equal("allowed");
  });

  it("S-17: a node that renews all the time is refused, whichever key it has by then", async () => {
    const { id, credentials } = await registered();
    let client = controller.clientOf(credentials);
    let renewals = 0;
    const answer = await (async () => {
      for (; renewals < 20; renewals++) {
        const next = await refusalCodeOf(
          renew(client, id).then(async (fresh) => (client = controller.clientOf(fresh))),
        );
        if (next !== "allowed") return next;
        await client.call("registerNode", registrationOf(id));
      }
      return "allowed";
    })();
    expect([answer, renewals]).to.deep.equal(["API_BUSY", 10]);
    expect(await refusalCodeOf(client.call("heartbeat", { nodeId: id }))).to.equal("allowed");
  });

  it("F-25: an expired certificate of a node can only renew itself, with its old key and for 30 days", async () => {
    /** A registered node whose certificate, for the same key and names, has just expired. */
    const expired = async (by = cluster.authority) => {
      const { id, credentials } = await registered();
      const given = { key: createPrivateKey(credentials.key), now: Date.now() - 90 * day - 1_000 };
      return { id, late: controller.clientOf({ ...issueTo(by, "node", id, given), ca: credentials.ca }), credentials };
    };
    const { id, late } = await expired();
    const asked = [
      late.call("heartbeat", { nodeId: id }),
      late.call("health", {}),
      late.call("renewChallenge", { nodeId: randomUUID() }),
    ];
    expect(await Promise.all(asked.map(refusalCodeOf))).to.deep.equal(["API_DENIED", "API_DENIED", "API_DENIED"]);
    const fresh = await renew(late, id);
    expect(firstCertificate(fresh.cert).validToDate.getTime()).to.be.greaterThan(Date.now() + 89 * day);
    expect((await controller.clientOf(fresh).call("registerNode", registrationOf(id))).status).to.equal("ready");
    const [rejected, revoked, forged] = [await expired(), await expired(), await expired(stranger.authority)];
    await controller.operator.call("rejectNode", {}, { id: rejected.id });
    await controller.operator.call("revoke", { spki: spkiOf(revoked.credentials), reason: "test" });
    const unknown = { id: randomUUID() };
    const old = issueTo(cluster.authority, "node", unknown.id, { now: Date.now() - 91 * day });
    for (const [{ id: whose, late: client }, reason] of [
      [rejected, "NODE_REJECTED"],
      [revoked, "KEY_REVOKED"],
      [{ ...unknown, late: controller.clientOf(old) }, "KEY_UNREGISTERED"],
      [forged, "API_DENIED"],
    ] as const)
      expect(await refusalCodeOf(renew(client, whose))).to.equal(reason);
  });

  describe("the key of a rotated sub-CA", () => {
    const second = (): TestController => controllers[1] as TestController;
    const nonce = "n".repeat(30);
    const certified = async (): Promise<string> => {
      const { challenge, spki, signature } = await second().operator.call("subCaRequest", { nonce });
      const proof = { challenge, signature };
      return issueSubCa({ controllerId: second().id, spki, proof, hosts: ["127.0.0.1"] }, { root, now: Date.now() });
    };
    const deployed = ["controller.key", "sub-ca.key"];
    const keysOnDisk = async (): Promise<readonly string[]> => {
      const names = await readdir(second().folder, { recursive: true });
      return names.filter((name) => name.endsWith(".key")).toSorted();
    };

    it("S-15: is on no disk before its certificate arrives, nor after an abandoned rotation", async () => {
      const given = await certified();
      expect(await keysOnDisk()).to.deep.equal(deployed);
      await second().stop();
      await second().start();
      expect(await keysOnDisk()).to.deep.equal(deployed);
      expect(await refusalCodeOf(second().operator.call("subCaInstall", { certificate: given }))).to.equal(
        "SUB_CA_INVALID",
      );
    });

    it("S-15: replaces the former key with mode 0600, and accepts one certificate only", async () => {
      const overtaken = await certified();
      await certified();
      expect(await refusalCodeOf(second().operator.call("subCaInstall", { certificate: overtaken }))).to.equal(
        "PKI_CERT_INVALID",
      );
      for (let round = 0; round < 2; round++) {
        const certificate = await certified();
        await second().operator.call("subCaInstall", { certificate });
        expect(await keysOnDisk()).to.deep.equal(deployed);
        expect((await stat(join(second().folder, "sub-ca.key"))).mode & 0o777).to.equal(0o600);
        expect((await stat(second().folder)).mode & 0o777).to.equal(0o700);
        expect(await refusalCodeOf(second().operator.call("subCaInstall", { certificate }))).to.equal("SUB_CA_INVALID");
      }
    });
  });

  it("S-10: kcore rotate signs only for the controller key that this machine issued a certificate for", async () => {
    const site = await ClusterSite.open(1);
    const { cluster: own, passphraseFile } = site;
    const { id, credentials, log } = site.at(0);
    const file = issuedFile(join(own.home, "lab"), id, "controller");
    const rotate = (what: string) => site.call("rotate", what, "--passphrase-file", passphraseFile);
    try {
      await mkdir(dirname(file), { recursive: true });
      // To kcore, the server seems to show a certificate of a stolen sub-CA.
      await writeFile(file, issueTo(own.authority, "controller", id).cert);
      for (const what of ["sub-ca", "certs"]) {
        const mark = log().length;
        const { code, stderr } = await rotate(what);
        expect(code, stderr).to.equal(1);
        expect(stderr).to.match(/not done: .*it shows another key .*than the one that was issued to it/);
        expect(log().slice(mark)).not.to.match(/"method":"(?:subCaRequest|certificateRequest)"/);
      }
      await writeFile(file, credentials.cert);
      for (const what of ["sub-ca", "certs"]) {
        const { code, stderr } = await rotate(what);
        expect([code, stderr]).to.deep.equal([0, ""]);
      }
      expect(await readdir(dirname(file))).to.deep.equal([`${id}-controller.crt`]);
    } finally {
      await site.stop();
    }
  });

  describe("a controller that joins", () => {
    /** Starts a joining controller that the sponsor has registered; `joinKeys` are the pinned keys of sponsors. */
    const joining = async (sponsor: TestController, joinKeys: object): Promise<TestController> => {
      const config = { replication: { join: [sponsor.advertised], joinKeys } };
      const joiner = await prepareController(cluster, { sponsor, config });
      others.push(joiner);
      const body = { spki: spkiOf(joiner.credentials), address: joiner.advertised };
      await sponsor.operator.call("registerController", body, { id: joiner.id });
      await joiner.start();
      return joiner;
    };
    const isReady = async ({ operator }: TestController): Promise<boolean> => (await operator.call("ready", {})).ready;

    it("S-10: accepts nothing from an impostor at its sponsor's address with a certificate of a stolen sub-CA", async () => {
      const sponsor = await startController(cluster);
      // The impostor has everything that the CA vouches for: the cluster's name, a certificate for this host, members.
      const impostor = await startController(cluster);
      others.push(sponsor, impostor);
      const joiner = await joining(impostor, { [impostor.advertised]: spkiOf(sponsor.credentials) });
      await eventually(() => joiner.log().includes("with another key than the one of the sponsor"));
      expect(await isReady(joiner)).to.equal(false);
      expect((await joiner.operator.call("replicationStatus", {})).registers).to.equal(0);
      const welcome = await joining(sponsor, { [sponsor.advertised]: spkiOf(sponsor.credentials) });
      await eventually(() => isReady(welcome));
      expect(welcome.log()).not.to.contain("by the CA's signature alone");
    });

    it("S-10: trusts the CA alone when no key is pinned, and logs that", async () => {
      const sponsor = await startController(cluster);
      others.push(sponsor);
      const joiner = await joining(sponsor, {});
      await eventually(() => isReady(joiner));
      expect(joiner.log()).to.contain("by the CA's signature alone");
    });
  });

  it("S-10: a controller that left does not found a second cluster when it is started again", async () => {
    const started = await startControllers(cluster, 2);
    const [founder, other] = started.controllers as [TestController, TestController];
    others.push(founder, other);
    const id = randomUUID();
    const credentials = nodeCredentials(cluster, id);
    await other.clientOf(credentials).call("registerNode", registrationOf(id));
    const client = founder.clientOf(credentials);
    await eventually(async () => (await refusalCodeOf(client.call("heartbeat", { nodeId: id }))) === "allowed");
    await founder.operator.call("leave", {});
    // The controller's agents must look for another one, since their heartbeats go no further than this controller.
    expect(await refusalCodeOf(client.call("heartbeat", { nodeId: id }))).to.equal("CONTROLLER_JOINING");
    await founder.stop();
    await founder.start();
    const { controllers } = await other.operator.call("listControllers", {});
    expect(controllers.map(({ controllerId }) => controllerId)).to.deep.equal([other.id]);
    expect(await founder.operator.call("ready", {})).to.include({
      ready: false,
      reason: "it is no member of its cluster any more",
    });
    expect(await refusalCodeOf(founder.operator.call("setLabels", { set: { a: "b" } }, { id }))).to.equal(
      "CONTROLLER_JOINING",
    );
    expect(await refusalCodeOf(founder.operator.call("listNodes", {}))).to.equal("CONTROLLER_JOINING");
    expect(await refusalCodeOf(client.call("heartbeat", { nodeId: id }))).to.equal("CONTROLLER_JOINING");
    expect(founder.log().split("no member of its cluster any more")).to.have.length(2);
  });
});
