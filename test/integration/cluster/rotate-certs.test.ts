import { execFile } from "node:child_process";
import { X509Certificate, randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { ClusterSite } from "#support/cluster-site.ts";
import type { Credentials } from "#api/client.ts";
import { eventually, startDaemon, writeCredentials } from "#support/cluster.ts";
import type { Daemon, TestCluster } from "#support/cluster.ts";
import { areAllInStep, nodeCredentials, refusalCodeOf, recordAt, spkiOf } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import type { CommandEnd } from "#support/kcore.ts";

const run = promisify(execFile);

describe("rotate certs on a live cluster of three controllers", () => {
  let site: ClusterSite;
  let cluster: TestCluster;
  let controllers: readonly TestController[];
  let agent: Daemon;
  const nodeId = randomUUID();
  const at = (index: number): TestController => site.at(index);
  const rotate = (): Promise<CommandEnd> => site.call("rotate", "certs", "--passphrase-file", site.passphraseFile);
  /** The certificate that a controller shows, by openssl. */
  const shownBy = async ({ endpoint, folder }: TestController): Promise<X509Certificate> => {
    const [ca = "", cert = "", key = ""] = ["ca.crt", "controller.crt", "controller.key"].map((name) =>
      join(folder, name),
    );
    const own = ["-cert", cert, "-cert_chain", cert, "-key", key];
    const words = ["s_client", "-connect", endpoint, "-CAfile", ca, ...own, "-verify_return_error"];
    const asked = run("openssl", words);
    // The client says goodbye, instead of waiting for the server's end.
    asked.child.stdin?.end("Q\n");
    const { stdout } = await asked;
    return new X509Certificate(stdout.slice(stdout.indexOf("-----BEGIN")));
  };
  const refusalAt = (controller: TestController, credentials: Credentials): Promise<string> =>
    refusalCodeOf(controller.clientOf(credentials).call("listNodes", {}));
  const lastSeen = async (): Promise<number> =>
    Date.parse((await at(0).operator.call("getNode", {}, { id: nodeId })).lastSeen);

  before(async () => {
    site = await ClusterSite.open(3, { processes: true, dcs: ["DC1", "DC1", "DC2"] });
    ({ cluster, controllers } = site);
    const credentials = nodeCredentials(cluster, nodeId);
    await recordAt(at(0), credentials);
    agent = await startDaemon(["agent", "run"], join(cluster.dir, "agent.yaml"), {
      nodeId,
      listenAddr: "127.0.0.1:0",
      controllers: controllers.map(({ endpoint }) => endpoint),
      tls: await writeCredentials(join(cluster.dir, "node"), "node", credentials),
      stateDir: join(cluster.dir, "state"),
      heartbeatIntervalSecs: 0.2,
    });
    await agent.logged("the node is registered");
  });
  after(async () => {
    await agent?.end();
    await site?.stop();
  });

  it("gives every controller a new key and certificate without a missed heartbeat, and revokes the old keys", async () => {
    const before = await Promise.all(controllers.map(shownBy));
    const { key: nodeKey } = await at(0).operator.call("getNode", {}, { id: nodeId });
    let heartbeats = 0;
    let isOn = true;
    const watching = (async () => {
      for (let seen = await lastSeen(); isOn;) {
        const now = await eventually(async () => {
          const latest = await lastSeen();
          return latest > seen && latest;
        });
        heartbeats++;
        seen = now;
      }
    })();
    const { code, stdout, stderr } = await rotate();
    isOn = false;
    await watching;
    expect([code, stderr]).to.deep.equal([0, ""]);
    const after = await Promise.all(
      controllers.map(async ({ folder }) => new X509Certificate(readFileSync(join(folder, "controller.crt")))),
    );
    for (const [index, certificate] of after.entries()) {
      const former = before[index] as X509Certificate;
      expect(stdout).to.contain(`new certificate ${certificate.serialNumber.toLowerCase()}, until `);
      expect(certificate.publicKey.equals(former.publicKey)).to.equal(false);
      expect(certificate.subjectAltName).to.equal(former.subjectAltName);
      expect(statSync(join(at(index).folder, "controller.key")).mode & 0o777).to.equal(0o600);
    }
    expect(agent.log()).not.to.match(/no controller accepted a heartbeat|a controller could not be used/);
    expect(heartbeats).to.be.greaterThan(2);
    const keyOfNode = async () => (await at(0).operator.call("getNode", {}, { id: nodeId })).key;
    await eventually(async () => (await keyOfNode()) !== nodeKey);

    await eventually(() => areAllInStep(controllers));
    for (const asked of controllers)
      for (const { credentials } of controllers)
        await eventually(async () => (await refusalAt(asked, credentials)) === "KEY_REVOKED");
    const { controllers: listed } = await at(0).operator.call("listControllers", {});
    const registered = listed.map(({ key, nextKey }) => [key, nextKey]);
    expect(registered).to.have.deep.members(after.map((one) => [spkiOf({ cert: one.toString() }), undefined]));
  });

  it("changes no controller's key while one is unreachable, names that controller, and exits 1", async () => {
    const former = await Promise.all(controllers.map(shownBy));
    await at(2).stop("SIGKILL");
    const missed = await rotate();
    expect(missed.code).to.equal(1);
    expect(missed.stdout).to.contain("operator: new certificate").and.to.contain("nodes: each renews");
    expect(missed.stderr)
      .to.match(/^not done: 3\/3 DC2 /m)
      .and.to.contain("3 controllers kept the old certificate");
    expect(missed.stderr.split(at(2).endpoint)).to.have.length.greaterThan(3);
    await at(2).start();
    await eventually(() => areAllInStep(controllers));
    expect((await Promise.all(controllers.map(shownBy))).map(({ serialNumber }) => serialNumber)).to.deep.equal(
      former.map(({ serialNumber }) => serialNumber),
    );
    const old = await shownBy(at(2));
    await eventually(() => areAllInStep(controllers));
    const { code, stderr } = await rotate();
    expect([code, stderr]).to.deep.equal([0, ""]);
    expect((await shownBy(at(2))).serialNumber).not.to.equal(old.serialNumber);
    await eventually(() => areAllInStep(controllers));
  });
});
