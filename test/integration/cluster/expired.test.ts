import { createPrivateKey, randomUUID } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { Credentials } from "#api/client.ts";
import { firstCertificate } from "#pki/chain.ts";
import { daysLeft, reissueOperator } from "#pki/cluster.ts";
import { hostsOf } from "#pki/expectation.ts";
import { ClusterSite } from "#support/cluster-site.ts";
import { eventually, issueTo, startDaemon, writeCredentials } from "#support/cluster.ts";
import type { Daemon } from "#support/cluster.ts";
import {
  areAllInStep,
  waitForWritesOf,
  nodeCredentials,
  recordAt,
  registrationOf,
  spkiOf,
} from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";

const day = 86_400_000;

describe("a cluster whose every certificate expired while it was off", () => {
  let site: ClusterSite;
  let agent: Daemon | undefined;
  const nodeId = randomUUID();
  const folder = (): string => join(site.cluster.home, "lab");
  /** A certificate for the same key and names that was issued `days` ago. */
  const issuedAgo = (
    days: number,
    role: "controller" | "node",
    id: string,
    { cert, key }: Credentials,
  ): Credentials => {
    const [host = "", ...addresses] = hostsOf(firstCertificate(cert));
    const given = { host, addresses, key: createPrivateKey(key), now: Date.now() - days * day };
    return issueTo(site.cluster.authority, role, id, given);
  };
  const remainingDays = async ({ folder: at }: TestController): Promise<number> =>
    Math.round(daysLeft(firstCertificate(await readFile(join(at, "controller.crt"), "utf8")), Date.now()));

  before(async () => {
    site = await ClusterSite.open(2);
    const { cluster, controllers } = site;
    const node = nodeCredentials(cluster, nodeId);
    await recordAt(site.at(0), node);
    await site.at(0).clientOf(node).call("registerNode", registrationOf(nodeId));
    await waitForWritesOf(site.at(0), controllers);
    for (const controller of controllers) await controller.stop();
    for (const { id, folder: at, credentials } of controllers)
      await writeFile(join(at, "controller.crt"), issuedAgo(92, "controller", id, credentials).cert);
    await writeFile(
      join(folder(), "kctl.crt"),
      await reissueOperator(folder(), cluster.authority, Date.now() - 92 * day),
    );
    for (const controller of controllers) await controller.start();
    await eventually(() => areAllInStep(controllers));
    agent = await startDaemon(["agent", "run"], join(cluster.dir, "agent.yaml"), {
      nodeId,
      listenAddr: "127.0.0.1:0",
      controllers: controllers.map(({ endpoint }) => endpoint),
      tls: await writeCredentials(join(cluster.dir, "node"), "node", issuedAgo(92, "node", nodeId, node)),
      stateDir: join(cluster.dir, "state"),
      heartbeatIntervalSecs: 0.2,
    });
  });
  after(async () => {
    await agent?.end();
    await site?.stop();
  });

  it("has controllers that renewed their own certificates before they listened, for the registered keys", async () => {
    for (const controller of site.controllers) expect(await remainingDays(controller)).to.equal(90);
    const { controllers } = await site.at(0).operator.call("listControllers", {});
    expect(controllers.map(({ key }) => key)).to.have.members(
      site.controllers.map(({ credentials }) => spkiOf(credentials)),
    );
    await eventually(async () => {
      const { certificates } = await site.at(0).operator.call("listCertificates", {});
      return certificates.filter(({ role }) => role === "controller").length === 2;
    });
  });

  it("has agents that renewed their certificates", async () => {
    await agent?.logged("the certificate was renewed");
    await agent?.logged("the node is registered");
  });

  it("names the one command that restores the operator's access", async () => {
    const before = await site.call("health");
    expect(before.code).to.equal(1);
    expect(before.stderr).to.match(
      /^warning: the operator's certificate ended on \d{4}-\d\d-\d\d: kcore rotate certs$/m,
    );
    const { code, stderr } = await site.call("rotate", "certs", "--passphrase-file", site.passphraseFile);
    expect([code, stderr.replace(/^warning: .*\n/, "")]).to.deep.equal([0, ""]);
    await eventually(() => areAllInStep(site.controllers));
    await eventually(async () => (await site.call("health")).stdout.includes("cluster is healthy"));
    expect((await site.call("health")).stderr).to.equal("");
  });

  it("has sub-CAs with the controllers' names after the next rotation", async () => {
    const { code } = await site.call("rotate", "sub-ca", "--passphrase-file", site.passphraseFile);
    expect(code).to.equal(0);
    for (const { folder: at } of site.controllers) {
      const subCa = firstCertificate(await readFile(join(at, "sub-ca.crt"), "utf8"));
      expect(hostsOf(subCa)).to.deep.equal(
        hostsOf(firstCertificate(await readFile(join(at, "controller.crt"), "utf8"))),
      );
    }
  });

  it("warns of a certificate that expires in six days, and is unhealthy at one", async () => {
    const write = async (days: number): Promise<void> => {
      const cert = await reissueOperator(folder(), site.cluster.authority, Date.now() - (90 - days) * day + 3_600_000);
      await writeFile(join(folder(), "kctl.crt"), cert);
    };
    await write(6);
    const soon = await site.call("health");
    expect([soon.code, soon.stderr]).to.deep.equal([0, soon.stderr]);
    expect(soon.stderr).to.match(/^warning: the operator's certificate ends in 6 days, on .*: kcore rotate certs$/m);
    await write(1);
    const urgent = await site.call("health");
    expect([urgent.code, urgent.stdout.includes("cluster is healthy")]).to.deep.equal([1, false]);
    expect(urgent.stdout).to.contain("the operator's certificate ends in 1 day, on");
  });

  it("renews the operator's certificate during any command that has the passphrase", async () => {
    const { code, stderr } = await site.project.call(["get", "nodes"], {
      KCORE_HOME: site.cluster.home,
      KCORE_CA_PASSPHRASE: "correct horse battery",
    });
    expect([code, stderr]).to.deep.equal([0, "renewed the operator's certificate\n"]);
    const operator = firstCertificate(await readFile(join(folder(), "kctl.crt"), "utf8"));
    expect(Math.round(daysLeft(operator, Date.now()))).to.equal(90);
  });

  it("is unhealthy while nodes are not ready, and shows no approval for a node that never registered", async () => {
    const { id, client } = await site.register("n2");
    await client.call("goodbye", { nodeId: id });
    const expected = { name: "n3", roles: [], dc: "DC1", address: "192.0.2.3", source: "roster" as const };
    const never = randomUUID();
    await site.at(0).operator.call("setExpected", expected, { id: never });
    const isUnhealthy = async (): Promise<boolean> =>
      (await site.call("health")).stdout.endsWith("controllers are healthy; 1 of 3 nodes is ready: kcore get nodes\n");
    await eventually(isUnhealthy);
    expect((await site.call("describe", "node", never)).stdout).to.match(/^Approval: +-$/m);
  });

  it("has a controller that reports why it cannot renew, and is not ready in the last two days", async () => {
    const { id, folder: at, stop, start, operator } = site.at(1);
    await stop();
    for (const name of ["sub-ca.crt", "sub-ca.key"]) await rm(join(at, name));
    const credentials = { ...site.at(1).credentials };
    await writeFile(join(at, "controller.key"), credentials.key);
    await writeFile(join(at, "controller.crt"), issuedAgo(88.5, "controller", id, credentials).cert);
    await start();
    const { ready, reason, warnings } = await operator.call("ready", {});
    expect([ready, reason]).to.deep.equal([false, reason]);
    expect(reason).to.contain("this controller's certificate ends in 1 day").and.to.contain("no sub-CA");
    expect(warnings.some((text) => text.includes("CERTIFICATE_ENDS"))).to.equal(true);
    expect(await operator.call("metrics", {})).to.match(/kcore_alarms\{code="CERTIFICATE_ENDS".* 1/);
  });
});
