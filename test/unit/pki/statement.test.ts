import { execFileSync } from "node:child_process";
import { createPublicKey, sign } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { openRoot } from "#pki/cluster.ts";
import { issueCertificate } from "#pki/certificate.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import { signStatement, verifyStatement, type SignedText } from "#pki/statement.ts";
import { issueSubCa, signSubCa, type Root } from "#pki/sub-ca.ts";
import { createTestCluster, issueTo, passphrase, type TestCluster } from "#support/cluster.ts";
import { problemsIn } from "#support/problems.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
const dayMs = 86_400_000;
const text = JSON.stringify({ kind: "ClusterUpdate", cluster: "lab", name: "spring", note: "Grüße" });

describe("signed statements", () => {
  let cluster: TestCluster;
  let stranger: TestCluster;
  let root: Root;
  let signed: SignedText;
  const verify = (given: SignedText, more: { cluster?: string; now?: number } = {}): unknown =>
    verifyStatement(given, { rootPem: root.rootPem, cluster: "lab", ...more });
  const refusal = (given: SignedText, more: { cluster?: string; now?: number } = {}): string | undefined =>
    problemsIn(() => verify(given, more))[0];

  before(async () => {
    [cluster, stranger] = await Promise.all([createTestCluster(), createTestCluster()]);
    root = await openRoot(join(cluster.home, "lab"), passphrase);
    signed = signStatement(text, cluster.authority);
  });
  after(() => Promise.all([cluster.remove(), stranger.remove()]));

  it("are accepted from the bastion's sub-CA, unchanged", () => {
    expect(verify(signed)).to.deep.equal(JSON.parse(text));
    expect(signed.statement).to.equal(text);
  });

  describe("openssl", () => {
    const folder = folderOfEachTest("statement");
    beforeEach(async () => {
      const key = cluster.authority.key.export({ type: "pkcs8", format: "pem" }) as string;
      await writeFile(folder("key"), key, { mode: 0o600 });
      await writeFile(folder("text"), `kcore cluster update\n${text}`);
      await writeFile(folder("public"), createPublicKey(cluster.authority.key).export({ type: "spki", format: "pem" }));
    });

    it("accepts kcore's signature", async () => {
      await writeFile(folder("signature"), Buffer.from(signed.signature, "base64"));
      const words = ["-sha256", "-verify", folder("public"), "-signature", folder("signature"), folder("text")];
      expect(execFileSync("openssl", ["dgst", ...words], { encoding: "utf8" })).to.equal("Verified OK\n");
    });

    it("makes a signature that kcore accepts", () => {
      const signature = execFileSync("openssl", ["dgst", "-sha256", "-sign", folder("key"), folder("text")]);
      expect(verify({ ...signed, signature: signature.toString("base64") })).to.deep.equal(JSON.parse(text));
    });
  });

  it("are refused with a changed text or signature", () => {
    expect(refusal({ ...signed, statement: text.replace("spring", "autumn") })).to.match(/signature.*UPDATE_UNSIGNED/);
    expect(refusal({ ...signed, statement: `${text} ` })).to.contain("signature");
    expect(refusal({ ...signed, signature: "" })).to.contain("signature");
    expect(refusal({ ...signed, signature: "bm9uZQ==" })).to.contain("signature");
  });

  it("are refused with a signature of the same key for another purpose", () => {
    for (const other of [text, `kcore cluster\n${text}`]) {
      const signature = sign("sha256", Buffer.from(other), cluster.authority.key).toString("base64");
      expect(refusal({ ...signed, signature })).to.contain("the signature is not one of this text");
    }
    expect(refusal({ ...signed, signature: proveKey(cluster.authority.key, text) })).to.contain("signature");
  });

  it("are refused from a controller's sub-CA, which the root issued as well", () => {
    const key = generateKey();
    const spki = publicDer(key).toString("base64");
    const proof = { challenge: "nonce", signature: proveKey(key, "nonce") };
    const certificatePem = issueSubCa({ controllerId: id, spki, proof, hosts: [] }, { root, now: Date.now() });
    expect(refusal(signStatement(text, { certificatePem, key }))).to.contain("not the bastion's CA");
  });

  it("are refused from the root's key or a member's", () => {
    expect(refusal(signStatement(text, { certificatePem: root.rootPem, key: root.key }))).to.contain(
      "the root signed it",
    );
    const key = generateKey();
    const { cert } = issueTo(cluster.authority, "controller", id, { key });
    const [leaf = ""] = cert.split(/(?<=-----END CERTIFICATE-----\n)/);
    expect(refusal(signStatement(text, { certificatePem: leaf, key }))).to.contain("not the bastion's CA");
    expect(refusal(signStatement(text, { certificatePem: cert, key }))).to.contain("exactly one certificate");
  });

  it("are refused from another cluster's CA of the same name, or one with a forged issuer", () => {
    expect(refusal(signStatement(text, stranger.authority))).to.contain("not the bastion's CA");
    const key = generateKey();
    const forged = issueCertificate({
      commonName: "kcore-cluster-sub-ca",
      publicKey: createPublicKey(key),
      issuer: root.certificate,
      signer: key,
      notBefore: new Date(Date.now() - dayMs),
      notAfter: new Date(Date.now() + dayMs),
      pathLength: 0,
    });
    expect(refusal(signStatement(text, { certificatePem: forged, key }))).to.contain("not the bastion's CA");
  });

  it("are refused from a CA that has expired or is not valid yet", () => {
    const key = generateKey();
    const certificatePem = signSubCa({ root, publicKey: createPublicKey(key), now: Date.now() });
    const given = signStatement(text, { certificatePem, key });
    expect(verify(given)).to.include({ name: "spring" });
    expect(refusal(given, { now: Date.now() + 1826 * dayMs })).to.match(/is valid from .* to .*; here it is/);
    expect(refusal(given, { now: Date.now() - dayMs })).to.contain("set the clock right");
  });

  it("are refused for another cluster, or without a JSON object", () => {
    expect(refusal(signed, { cluster: "live" })).to.contain('for the cluster "lab", not for “live”');
    for (const other of ["null", "[]", "7", "{", `{"name":"spring"}`])
      expect(refusal(signStatement(other, cluster.authority)), other).to.match(
        /no JSON object|for the cluster undefined/,
      );
  });

  it("are refused with other than exactly one signer's certificate", () => {
    for (const signer of ["", "none", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
      expect(refusal({ ...signed, signer })).to.contain("exactly one certificate");
    expect(refusal({ ...signed, signer: signed.signer + signed.signer })).to.contain("exactly one certificate");
  });
});
