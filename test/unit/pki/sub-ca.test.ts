import { execFileSync } from "node:child_process";
import { createPublicKey, type X509Certificate } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { issueCertificate } from "#pki/certificate.ts";
import { certificatesOf, firstCertificate, refusalOfIssuer } from "#pki/chain.ts";
import { openRoot } from "#pki/cluster.ts";
import { identityOf } from "#pki/identity.ts";
import { issueLeaf, type Authority } from "#pki/issue.ts";
import { renewalReason } from "#pki/expectation.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import { issueSubCa, readSubCa, refusalOfSubCa, type Root } from "#pki/sub-ca.ts";
import { createTestCluster, issueTo, passphrase, type TestCluster } from "#support/cluster.ts";
import { problemsIn } from "#support/problems.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
const other = "0b7d2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";

describe("a controller's sub-CA", () => {
  const folder = folderOfEachTest("sub-ca");
  let cluster: TestCluster;
  let root: Root;
  const key = generateKey();
  const spki = publicDer(key).toString("base64");
  const keyPem = key.export({ type: "pkcs8", format: "pem" }) as string;
  const request = {
    controllerId: id,
    spki,
    proof: { challenge: "nonce", signature: proveKey(key, "nonce") },
    hosts: ["n1", "192.0.2.11", "2001:db8::11"],
  };
  let pem: string;
  let authority: Authority;
  const given = () => ({ cluster: "lab", controllerId: id, rootPem: root.rootPem, keyPem, where: "sub-ca.key" });

  before(async () => {
    cluster = await createTestCluster();
    root = await openRoot(join(cluster.home, "lab"), passphrase);
    pem = issueSubCa(request, { root, now: Date.now() });
    authority = readSubCa({ ...given(), certificatePem: pem });
  });
  after(() => cluster.remove());

  const verify = async (leaf: string): Promise<string> => {
    await writeFile(folder("ca"), root.rootPem);
    await writeFile(folder("chain"), leaf);
    const words = ["verify", "-x509_strict", "-CAfile", folder("ca"), "-untrusted", folder("chain"), folder("chain")];
    return execFileSync("openssl", words, { encoding: "utf8", stdio: "pipe" });
  };

  it("S-14: is signed by the root with path length 0 and for this cluster's URIs only, and issues valid certificates", async () => {
    const certificate = firstCertificate(pem);
    expect(certificate.subject).to.equal("CN=kcore-cluster-sub-ca");
    expect(certificate.verify(firstCertificate(root.rootPem).publicKey)).to.equal(true);
    const { cert } = issueTo(authority, "node", other, { host: "n1" });
    expect(await verify(cert)).to.contain("OK");
    expect(certificatesOf(cert)).to.have.length(2);
    const text = execFileSync("openssl", ["x509", "-noout", "-text"], { input: pem, encoding: "utf8" });
    expect(text)
      .to.match(/CA:TRUE, pathlen:0/)
      .and.match(/Name Constraints: critical\s+Permitted:\s+URI:lab/);
    expect(text).to.contain(`URI:kcore://lab/sub-ca/${id}`);
  });

  it("S-14: cannot issue for another cluster, because openssl refuses the name", async () => {
    const foreign = issueCertificate({
      commonName: "kcore-node-n1",
      publicKey: createPublicKey(generateKey()),
      issuer: authority.certificate,
      signer: authority.key,
      notBefore: new Date(Date.now() - 1000),
      notAfter: new Date(Date.now() + 1000_000),
      usages: ["client"],
      uri: `kcore://other/node/${other}`,
    });
    const error = await verify(foreign + pem).catch((reason: unknown) => reason);
    expect(String((error as { stderr?: unknown }).stderr)).to.contain("permitted subtree violation");
  });

  it("ends no later than the root", () => {
    const end = firstCertificate(root.rootPem).validToDate.getTime();
    const late = firstCertificate(issueSubCa(request, { root, now: end - 86_400_000 }));
    expect(late.validToDate.getTime()).to.equal(end);
  });

  it("is accepted as no member's identity", () =>
    expect(problemsIn(() => identityOf(firstCertificate(pem), "client"))[0]).to.contain("is a CA's"));

  it("S-14: is not issued without the controller's proof of possession", () => {
    const stolen = { ...request, proof: { challenge: "another", signature: request.proof.signature } };
    expect(problemsIn(() => issueSubCa(stolen, { root, now: Date.now() }))[0]).to.contain("[PKI_PROOF_INVALID]");
  });

  it("is refused for another controller, key or root", async () => {
    const strange = await createTestCluster();
    try {
      const elsewhere = await openRoot(join(strange.home, "lab"), passphrase);
      const expected = { cluster: "lab", controllerId: id, rootPem: root.rootPem };
      expect(refusalOfSubCa(pem, expected)).to.equal(undefined);
      expect(refusalOfSubCa(pem, { ...expected, controllerId: other })).to.equal("it is not this controller's");
      expect(refusalOfSubCa(pem, { ...expected, rootPem: elsewhere.rootPem })).to.equal(
        "the cluster's root did not sign it",
      );
      expect(refusalOfSubCa("nothing", expected)).to.equal("it is not exactly one certificate");
      expect(refusalOfSubCa(cluster.operator.cert, expected)).to.equal("it is not exactly one certificate");
    } finally {
      await strange.remove();
    }
    const another = generateKey().export({ type: "pkcs8", format: "pem" }) as string;
    const problems = problemsIn(() => readSubCa({ ...given(), certificatePem: pem, keyPem: another }));
    expect(problems[0]).to.contain("[PKI_CERT_INVALID]");
  });

  it("issues certificates that a deployment does not renew", () => {
    const node = generateKey();
    const challenge = "renewal";
    const leaf = {
      role: "node" as const,
      id: other,
      host: "n1",
      spki: publicDer(node).toString("base64"),
      proof: { challenge, signature: proveKey(node, challenge) },
    };
    const { chain, identity } = issueLeaf(leaf, { authority, now: Date.now() });
    const expected = { spki: leaf.spki, hosts: ["n1"], identity, rootPem: root.rootPem, now: Date.now() };
    expect(renewalReason(chain, expected)).to.equal(undefined);
  });

  it("certifies only its own controller, under the names that the root allowed", () => {
    const refusal = (role: "controller" | "node", subject: string, host: string): string | undefined => {
      const [leaf, issuer] = certificatesOf(issueTo(authority, role, subject, { host }).cert);
      return refusalOfIssuer(leaf as X509Certificate, { issuer, rootPem: root.rootPem });
    };
    for (const host of request.hosts) expect(refusal("controller", id, host), host).to.equal(undefined);
    const reason = "was not issued on the bastion";
    expect(refusal("controller", other, "n1"), "another controller").to.equal(reason);
    expect(refusal("controller", id, "n2"), "another's name").to.equal(reason);
    expect(refusal("node", id, "n1"), "no controller").to.equal(reason);
    const certified = (more: object): string =>
      issueCertificate({
        commonName: "kctl",
        publicKey: createPublicKey(generateKey()),
        issuer: authority.certificate,
        signer: authority.key,
        notBefore: new Date(Date.now() - 1000),
        notAfter: new Date(Date.now() + 1_000_000),
        usages: ["client"],
        ...more,
      });
    const issued = { issuer: authority.certificate, rootPem: root.rootPem };
    const operator = firstCertificate(certified({ uri: "kcore://lab/operator/ann" }));
    expect(refusalOfIssuer(operator, issued), "an operator").to.equal(reason);
    expect(refusalOfIssuer(firstCertificate(certified({})), issued), "without a name").to.equal(reason);
  });

  it("certifies no controller if the root allowed no names, as earlier versions did", () => {
    const certificatePem = issueSubCa({ ...request, hosts: [] }, { root, now: Date.now() });
    const former = readSubCa({ ...given(), certificatePem });
    const [leaf, issuer] = certificatesOf(issueTo(former, "controller", id, { host: "n1" }).cert);
    expect(refusalOfIssuer(leaf as X509Certificate, { issuer, rootPem: root.rootPem })).to.equal(
      "was not issued on the bastion",
    );
  });
});
