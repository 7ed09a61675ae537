import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { ApiRefusal } from "#api/client.ts";
import type { ApiClient, Credentials } from "#api/client.ts";
import { certificatesOf } from "#pki/chain.ts";
import { generateKey } from "#pki/keys.ts";
import { createTestCluster, issueTo } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { nodeCredentials, registrationOf, renewCredentials, spkiOf, startController } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";

const day = 86_400_000;

describe("a node whose certificate expired while it was off", () => {
  let cluster: TestCluster;
  let controller: TestController;

  before(async () => {
    cluster = await createTestCluster();
    controller = await startController(cluster, { process: true });
  });
  after(async () => {
    await controller.end();
    await cluster.remove();
  });

  const clientOf = (credentials: Credentials): ApiClient => controller.clientOf(credentials);
  /** A node that registered, and whose certificate ends now. */
  const expired = async (): Promise<{ id: string; credentials: Credentials }> => {
    const id = randomUUID();
    const key = generateKey();
    const client = clientOf(nodeCredentials(cluster, id, { key }));
    await client.call("registerNode", registrationOf(id));
    client.close();
    const credentials = issueTo(cluster.authority, "node", id, { key, now: Date.now() - 90 * day - 1_000 });
    return { id, credentials };
  };
  const renew = (client: ApiClient, nodeId: string): Promise<Credentials> =>
    renewCredentials(client, nodeId, cluster.authority.rootPem);
  const reasonOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => "allowed",
      (error: unknown) => (error instanceof ApiRefusal ? `${error.reason} ${error.message}` : String(error)),
    );

  it("F-25: may renew it by its old key for 30 days, and do nothing else", async () => {
    const { id, credentials } = await expired();
    const late = clientOf(credentials);
    expect(await reasonOf(late.call("heartbeat", { nodeId: id }))).to.match(/^API_DENIED .*has expired/);
    expect(await reasonOf(late.call("health", {}))).to.match(/^API_DENIED .*has expired/);
    expect(await reasonOf(late.call("renewChallenge", { nodeId: randomUUID() }))).to.match(/^API_DENIED/);
    const fresh = await renew(late, id);
    expect(certificatesOf(fresh.cert)[0]?.validToDate.getTime()).to.be.greaterThan(Date.now() + 89 * day);
    expect((await clientOf(fresh).call("registerNode", registrationOf(id))).status).to.equal("ready");
  });

  it("F-25: may not when it was rejected, when its key was revoked, nor with a key that never registered", async () => {
    const [rejected, revoked] = await Promise.all([expired(), expired()]);
    await controller.operator.call("rejectNode", {}, { id: rejected.id });
    await controller.operator.call("revoke", { spki: spkiOf(revoked.credentials), reason: "test" });
    expect(await reasonOf(renew(clientOf(rejected.credentials), rejected.id))).to.match(/^NODE_REJECTED/);
    expect(await reasonOf(renew(clientOf(revoked.credentials), revoked.id))).to.match(/^KEY_REVOKED/);
    const id = randomUUID();
    const stranger = issueTo(cluster.authority, "node", id, { now: Date.now() - 91 * day });
    expect(await reasonOf(renew(clientOf(stranger), id))).to.match(/^KEY_UNREGISTERED/);
  });

  it("F-25: a certificate of another CA is refused there as everywhere", async () => {
    const other = await createTestCluster();
    try {
      const { id } = await expired();
      const forged = issueTo(other.authority, "node", id, { now: Date.now() - 91 * day });
      const credentials = { ...forged, ca: cluster.authority.rootPem };
      expect(await reasonOf(renew(clientOf(credentials), id))).to.match(/^API_DENIED .*not of this cluster/);
    } finally {
      await other.remove();
    }
  });
});
