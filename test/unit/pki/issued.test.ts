import { join } from "node:path";
import { expect } from "chai";
import { firstCertificate } from "#pki/chain.ts";
import { openRoot } from "#pki/cluster.ts";
import { inventoryEntry } from "#pki/issued.ts";
import { generateKey, keyFingerprint, proveKey, publicDer } from "#pki/keys.ts";
import { issueSubCa } from "#pki/sub-ca.ts";
import { createTestCluster, issueTo, passphrase, type TestCluster } from "#support/cluster.ts";

const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";

describe("the inventory's entry of a certificate", () => {
  let cluster: TestCluster;
  before(async () => (cluster = await createTestCluster()));
  after(() => cluster.remove());
  /** A controller's sub-CA, as in a cluster of this name. */
  const subCaOf = async (name: string): Promise<string> => {
    const key = generateKey();
    const proof = { challenge: "c", signature: proveKey(key, "c") };
    const root = { ...(await openRoot(join(cluster.home, "lab"), passphrase)), cluster: name };
    const request = { controllerId: id, spki: publicDer(key).toString("base64"), proof, hosts: ["n1"] };
    return issueSubCa(request, { root, now: Date.now() });
  };

  it("has role, id, issuer, key and end", () => {
    const key = generateKey();
    const { cert } = issueTo(cluster.authority, "node", id, { key });
    const entry = inventoryEntry(cert);
    expect(entry).to.include({
      role: "node",
      id,
      issuer: "kcore-cluster-sub-ca",
      spki: keyFingerprint(publicDer(key)),
    });
    expect(entry?.serial).to.match(/^[0-9a-f]{32}$/);
    expect(Date.parse(entry?.notAfter ?? "")).to.be.greaterThan(Date.now());
    expect(inventoryEntry(cluster.operator.cert)).to.include({ role: "operator", id: "ann" });
  });

  it("exists for a controller's sub-CA, and not for the root", async () => {
    expect(inventoryEntry(await subCaOf("lab"))).to.include({ role: "sub-ca", id, issuer: "kcore-cluster-ca" });
    expect(inventoryEntry(cluster.authority.rootPem)).to.equal(undefined);
  });

  it("has the right role also for clusters called “sub-ca” or “controller”", async () => {
    const { cert } = issueTo({ ...cluster.authority, cluster: "sub-ca" }, "node", id);
    expect(inventoryEntry(cert)).to.include({ role: "node", id });
    const pem = await subCaOf("controller");
    expect(firstCertificate(pem).subjectAltName).to.contain(`URI:kcore://controller/sub-ca/${id}`);
    expect(inventoryEntry(pem)).to.include({ role: "sub-ca", id });
  });
});
