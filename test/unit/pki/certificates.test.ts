import { execFileSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { KcoreError } from "#errors/problem.ts";
import { issueCertificate } from "#pki/certificate.ts";
import { firstCertificate } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { endOfLeaf, issueLeaf, certificateNames, type Authority, type LeafRequest } from "#pki/issue.ts";
import { renewalReason } from "#pki/expectation.ts";
import { generateKey, proveKey, publicDer, readPublicKey } from "#pki/keys.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const day = 86_400_000;
const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";

/** A CA in memory, made like createCluster's, without files. */
function createAuthority(now = Date.now()): Authority & { readonly rootKey: ReturnType<typeof generateKey> } {
  const [rootKey, key] = [generateKey(), generateKey()];
  const times = { notBefore: new Date(now - 600_000), notAfter: new Date(now + 1825 * day) };
  const rootPem = issueCertificate({
    commonName: "kcore-cluster-ca",
    publicKey: createPublicKey(rootKey),
    signer: rootKey,
    pathLength: 1,
    ...times,
  });
  const certificatePem = issueCertificate({
    commonName: "kcore-cluster-sub-ca",
    publicKey: createPublicKey(key),
    issuer: firstCertificate(rootPem),
    signer: rootKey,
    pathLength: 0,
    ...times,
  });
  return { cluster: "lab", certificate: firstCertificate(certificatePem), certificatePem, rootPem, key, rootKey };
}

function requestFor(key = generateKey(), changes: Partial<LeafRequest> = {}): LeafRequest {
  const challenge = "prove it";
  return {
    role: "node",
    id,
    host: "n1",
    addresses: ["192.0.2.11", "2001:db8::11"],
    spki: publicDer(key).toString("base64"),
    proof: { challenge, signature: proveKey(key, challenge) },
    ...changes,
  };
}

function codesOf(run: () => unknown): string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof KcoreError) return error.problems.map(({ code }) => code);
    throw error;
  }
  return [];
}

describe("issued certificates", () => {
  const dir = folderOfEachTest("pki");

  const openssl = (authority: Authority, leaf: string, ...options: string[]): string => {
    writeFileSync(dir("ca"), authority.rootPem);
    writeFileSync(dir("sub"), authority.certificatePem);
    writeFileSync(dir("leaf"), leaf);
    const files = ["-CAfile", dir("ca"), "-untrusted", dir("sub"), dir("leaf")];
    return execFileSync("openssl", ["verify", "-x509_strict", ...options, ...files], {
      encoding: "utf8",
      stdio: "pipe",
    });
  };

  it("S-14: pass openssl verify -x509_strict for both purposes, every name and address", () => {
    const authority = createAuthority();
    const { chain } = issueLeaf(requestFor(), { authority, now: Date.now() });
    for (const options of [
      ["-purpose", "sslserver", "-verify_hostname", "n1"],
      ["-purpose", "sslclient", "-verify_ip", "2001:db8::11"],
    ]) {
      expect(openssl(authority, chain, ...options)).to.contain("OK");
    }
    expect(() => openssl(authority, chain, "-verify_hostname", "n2")).to.throw("hostname mismatch");
  });

  it("are refused by openssl if another CA of the same name signed them", () => {
    const { chain } = issueLeaf(requestFor(), { authority: createAuthority(), now: Date.now() });
    expect(() => openssl(createAuthority(), chain)).to.throw("verification failed");
  });

  it("S-14: are refused below a CA that a sub-CA issued (path length 0)", () => {
    const authority = createAuthority();
    const [evil, key] = [generateKey(), generateKey()];
    const times = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
    const third = issueCertificate({
      commonName: "kcore-another-ca",
      publicKey: createPublicKey(evil),
      issuer: authority.certificate,
      signer: authority.key,
      pathLength: 0,
      ...times,
    });
    const leaf = issueCertificate({
      commonName: "kcore-node-n1",
      publicKey: createPublicKey(key),
      issuer: firstCertificate(third),
      signer: evil,
      usages: ["client"],
      ...times,
    });
    writeFileSync(dir("third"), third);
    expect(() => openssl(authority, leaf, "-untrusted", dir("third"))).to.throw("path length constraint exceeded");
  });

  it("last 90 days from now, begin 10 minutes ago, and end no later than their CA", () => {
    const now = Date.parse("2026-11-21T12:00:00Z");
    const young = firstCertificate(issueLeaf(requestFor(), { authority: createAuthority(now), now }).chain);
    expect(young.validFromDate.getTime()).to.equal(now - 600_000);
    expect(young.validToDate.getTime()).to.equal(now + 90 * day);
    const authority = createAuthority(now - 1800 * day);
    const short = firstCertificate(issueLeaf(requestFor(), { authority, now }).chain);
    expect(short.validToDate.getTime()).to.equal(authority.certificate.validToDate.getTime());
  });

  it("end no earlier than endOfLeaf of an earlier moment in the same second", () => {
    const now = Date.parse("2026-11-21T12:00:00.900Z");
    const leaf = firstCertificate(issueLeaf(requestFor(), { authority: createAuthority(now), now: now + 50 }).chain);
    expect(leaf.validToDate.getTime()).to.be.at.least(endOfLeaf(now).getTime());
    expect(leaf.validToDate.getTime()).to.equal(
      issueLeaf(requestFor(), { authority: createAuthority(now), now }).notAfter.getTime(),
    );
  });

  it("have role and id in one URI, and the role's common name", () => {
    const authority = createAuthority();
    const { chain } = issueLeaf(requestFor(generateKey(), { role: "controller" }), { authority, now: Date.now() });
    const certificate = firstCertificate(chain);
    expect(certificate.subject).to.equal("CN=kcore-controller-n1");
    expect(identityOf(certificate, "server")).to.deep.equal({ cluster: "lab", role: "controller", id });
    expect(certificate.serialNumber).to.match(/^[0-7][0-9A-F]{31}$/);
  });

  it("S-14: are not issued without proof of possession of the key", () => {
    const authority = createAuthority();
    const [mine, other] = [generateKey(), generateKey()];
    const signature = proveKey(other, "prove it");
    const issue = (proof: LeafRequest["proof"]) => () => issueLeaf(requestFor(mine, { proof }), { authority, now: 0 });
    expect(codesOf(issue({ challenge: "prove it", signature }))).to.deep.equal(["PKI_PROOF_INVALID"]);
    expect(codesOf(issue({ challenge: "another", signature: proveKey(mine, "prove it") }))).to.deep.equal([
      "PKI_PROOF_INVALID",
    ]);
    expect(codesOf(issue({ challenge: "prove it", signature: "garbage" }))).to.deep.equal(["PKI_PROOF_INVALID"]);
  });

  it("are issued with a proof of possession made by openssl", () => {
    const key = dir("node.key");
    execFileSync("openssl", ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key], {
      stdio: "pipe",
    });
    const spki = execFileSync("openssl", ["pkey", "-in", key, "-pubout"], { encoding: "utf8" });
    const signature = execFileSync("openssl", ["dgst", "-sha256", "-sign", key], { input: "prove it" }).toString(
      "base64",
    );
    const request = requestFor(generateKey(), { spki, proof: { challenge: "prove it", signature } });
    const { chain } = issueLeaf(request, { authority: createAuthority(), now: Date.now() });
    expect(firstCertificate(chain).publicKey.export({ type: "spki", format: "pem" })).to.equal(spki);
  });

  it("S-14: are not issued for keys other than EC P-256, and malformed host names", () => {
    const rsa = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }) as string;
    const p384 = generateKeyPairSync("ec", { namedCurve: "P-384" }).publicKey.export({
      type: "spki",
      format: "pem",
    }) as string;
    for (const spki of [rsa, p384, "", "AAAA"])
      expect(codesOf(() => readPublicKey(spki))).to.deep.equal(["PKI_KEY_KIND"]);
    for (const host of ["", "a b", "-x", "n1,URI:kcore://lab/operator/x", "*.example.org", "n1\0"]) {
      expect(codesOf(() => certificateNames({ host }))).to.deep.equal(["PKI_NAME_INVALID"]);
    }
  });
});

describe("the reason to renew a certificate", () => {
  const now = Date.parse("2026-11-21T12:00:00Z");
  const authority = createAuthority(now);
  const key = generateKey();
  const request = requestFor(key);
  const { chain, identity } = issueLeaf(request, { authority, now });
  const expected = { spki: request.spki, hosts: certificateNames(request), identity, rootPem: authority.rootPem, now };

  it("is none with more than 30 days left, and then its end", () => {
    expect(renewalReason(chain, { ...expected, now: now + 59 * day })).to.equal(undefined);
    expect(renewalReason(chain, { ...expected, now: now + 60 * day })).to.equal("it expires in 30 days");
    expect(renewalReason(chain, { ...expected, now: now + 91 * day })).to.equal("it expired");
  });
  it("is another key, name, identity or issuer, or an unreadable certificate", () => {
    const other = publicDer(generateKey()).toString("base64");
    expect(renewalReason(chain, { ...expected, spki: other })).to.equal("the key changed");
    expect(renewalReason(chain, { ...expected, hosts: ["n1"] })).to.equal("its names changed");
    expect(renewalReason(chain, { ...expected, hosts: ["n1", "192.0.2.12", "2001:db8::11"] })).to.equal(
      "its names changed",
    );
    expect(renewalReason(chain, { ...expected, identity: { ...identity, id: "b" } })).to.equal("its identity changed");
    expect(renewalReason(chain, { ...expected, rootPem: createAuthority(now).rootPem })).to.equal(
      "another CA issued it",
    );
    expect(renewalReason("garbage", expected)).to.be.a("string");
  });
  it("is a life of more than 90 days, or beyond the CA's end", () => {
    const issueFor = ({ certificate, certificatePem, key: signer }: Authority, days: number): string =>
      issueCertificate({
        commonName: "kcore-node-n1",
        publicKey: createPublicKey(key),
        issuer: certificate,
        signer,
        notBefore: new Date(now),
        notAfter: new Date(now + days * day),
        usages: ["server", "client"],
        hosts: certificateNames(request),
        uri: `kcore://lab/node/${id}`,
      }) + certificatePem;
    expect(renewalReason(issueFor(authority, 60), expected)).to.equal(undefined);
    expect(renewalReason(issueFor(authority, 400), expected)).to.equal("it was issued for more than 90 days");
    const ended = createAuthority(now - 1826 * day);
    const { rootPem } = ended;
    expect(renewalReason(issueFor(ended, 60), { ...expected, rootPem })).to.equal("another CA issued it");
  });
});

describe("the identity in a certificate", () => {
  const authority = createAuthority();
  const make = (plan: {
    commonName?: string;
    usages?: ("server" | "client")[];
    uri?: string;
    hosts?: string[];
    pathLength?: number;
  }): string =>
    issueCertificate({
      commonName: "kcore-node-n1",
      publicKey: createPublicKey(generateKey()),
      issuer: authority.certificate,
      signer: authority.key,
      notBefore: new Date(),
      notAfter: new Date(Date.now() + day),
      usages: ["server", "client"],
      uri: `kcore://lab/node/${id}`,
      ...plan,
    });
  const refused = (plan: Parameters<typeof make>[0]): string[] =>
    codesOf(() => identityOf(firstCertificate(make(plan)), "client"));

  it("S-10: is refused for a CA, a missing usage, another role's common name, or other than one valid URI", () => {
    for (const plan of [{ pathLength: 0 }, { usages: ["server" as const] }, { commonName: "kctl" }])
      expect(refused(plan), JSON.stringify(plan)).to.deep.equal(["PKI_IDENTITY"]);
    expect(refused({ hosts: ["a, URI:kcore://lab/operator/x, b"], uri: "x:y" })).to.deep.equal(["PKI_IDENTITY"]);
    expect(refused({})).to.deep.equal([]);
    const uris = `kcore://lab/controller/${id} kcore://lab/root/x https://example.org kcore://Lab/node/x kcore://lab/node/-x`;
    for (const uri of [...uris.split(" "), "kcore://lab/node/x%2fy", "kcore://lab/node/x, URI:kcore://lab/operator/x"])
      expect(refused({ uri }), uri).to.deep.equal(["PKI_IDENTITY"]);
  });
});
