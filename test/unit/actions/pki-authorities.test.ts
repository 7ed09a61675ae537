import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { kubernetesKubeconfig } from "#actions/kubernetes-kubeconfig.ts";
import { pkiCreateAuthority } from "#actions/pki-create-authority.ts";
import { pkiIssueCertificate } from "#actions/pki-issue-certificate.ts";
import { firstCertificate } from "#pki/chain.ts";
import { createForeignCa, foreignRenewalReason, type ForeignLeaf } from "#pki/foreign-ca.ts";
import { createCluster } from "#pki/cluster.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import { contextHomeOf } from "#actions/cluster-context.ts";
import { actionContext } from "#support/action-context.ts";
import { cheapCost, passphrase } from "#support/cluster.ts";
import { codeOf } from "#support/rejection.ts";
import { nodeEntry } from "#support/runs.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const day = 86_400_000;

describe("CAs for other programs, such as Kubernetes", () => {
  const dir = folderOfEachTest("authorities");

  const n1 = nodeEntry("n1");
  const contextOf = (fields: Parameters<typeof actionContext>[0] = {}) =>
    actionContext({ home: dir(), node: n1, nodes: new Map([["n1", n1]]), ...fields });
  const withPassphrase = () => contextOf({ passphrase: () => Promise.resolve(passphrase) });
  const makeCa = async (name = "kubernetes", now = Date.now()) =>
    (await createForeignCa(dir(), name, { commonName: name, days: 3650, passphrase, now, cost: cheapCost })) ?? "";
  const keyOf = (challenge = `kcore proof of possession a challenge ${n1.id}`, key = generateKey()) => ({
    facts: { spki: publicDer(key).toString("base64"), proof: proveKey(key, challenge) },
  });
  const asked = (more: object = {}) =>
    pkiIssueCertificate.args.parse({
      authority: "kubernetes",
      key: keyOf(),
      commonName: "system:node:n1",
      organizations: ["system:nodes"],
      hosts: ["n1", "192.0.2.11"],
      usages: ["client", "server"],
      ...more,
    }) as Parameters<typeof pkiIssueCertificate.run>[0];
  const beside = (args: ReturnType<typeof asked>, pem: unknown) => ({
    ...args,
    key: { facts: { ...args.key.facts, certificate: Buffer.from(String(pem)).toString("base64") } },
  });

  it("creates a CA once; the outputs of a dry run are unknown until then", async () => {
    const args = pkiCreateAuthority.args.parse({ name: "kubernetes" }) as { name: string; days: number };
    expect(await pkiCreateAuthority.plan(args, contextOf())).to.equal("unknown");
    const made = await pkiCreateAuthority.run(args, withPassphrase());
    expect(made.changed).to.equal(true);
    const present = { changed: false, outputs: made.outputs };
    expect(await pkiCreateAuthority.run(args, contextOf())).to.deep.equal(present);
    expect(await pkiCreateAuthority.plan(args, contextOf())).to.deep.equal(present);
    const [file, key] = ["ca.crt", "ca.key"].map((name) => dir("authorities/kubernetes", name));
    expect(
      execFileSync("openssl", ["verify", "-x509_strict", "-CAfile", file ?? "", file ?? ""], { encoding: "utf8" }),
    ).to.contain("OK");
    execFileSync("openssl", ["pkey", "-in", key ?? "", "-passin", `pass:${passphrase}`, "-noout"]);
  });

  it("gives two runs that create a CA at the same time the same CA", async () => {
    const args = pkiCreateAuthority.args.parse({ name: "kubernetes" }) as { name: string; days: number };
    const both = await Promise.all([1, 2].map(() => pkiCreateAuthority.run(args, withPassphrase())));
    expect(both.map(({ changed }) => changed)).to.have.members([false, true]);
    expect(both[0]?.outputs).to.deep.equal(both[1]?.outputs);
    expect(await readdir(dir("authorities"))).to.deep.equal(["kubernetes"]);
  });

  it("refuses a context called “authorities”, the folder of the CAs", async () => {
    const plan = { ...contextHomeOf({ home: dir() }), context: "authorities", controllers: [], operator: "ops" };
    expect(await codeOf(createCluster({ ...plan, passphrase, now: 0, cost: cheapCost }))).to.equal("PKI_NAME_INVALID");
  });

  it("issues a kubelet's certificate that openssl verifies, and keeps a valid one without the passphrase", async () => {
    await makeCa();
    const args = asked();
    expect(await pkiIssueCertificate.plan(args, contextOf())).to.equal("unknown");
    const { changed, outputs } = await pkiIssueCertificate.run(args, withPassphrase());
    expect(changed).to.equal(true);
    await mkdir(dir("out"));
    for (const name of ["ca", "certificate"]) await writeFile(dir("out", name), String(outputs[name]));
    const files = ["-CAfile", dir("out/ca"), dir("out/certificate")];
    for (const purpose of ["sslclient", "sslserver"])
      expect(
        execFileSync("openssl", ["verify", "-x509_strict", "-purpose", purpose, ...files], { encoding: "utf8" }),
      ).to.contain("OK");
    const certificate = firstCertificate(String(outputs["certificate"]));
    expect(certificate.subject).to.equal("O=system:nodes\nCN=system:node:n1");
    expect(certificate.subjectAltName).to.equal("DNS:n1, IP Address:192.0.2.11");
    const again = beside(args, outputs["certificate"]);
    for (const answer of [
      await pkiIssueCertificate.run(again, contextOf()),
      await pkiIssueCertificate.plan(again, contextOf()),
    ])
      expect(answer).to.deep.equal({ changed: false, outputs });
  });

  it("issues a new certificate if the present one does not fit the arguments, and notes the reason", async () => {
    const caPem = await makeCa();
    const otherCa = await makeCa("etcd");
    const args = asked();
    const { outputs } = await pkiIssueCertificate.run(args, withPassphrase());
    const pem = String(outputs["certificate"]);
    const leaf: ForeignLeaf = { ...args, spki: args.key.facts.spki ?? "" };
    const now = Date.now();
    for (const [reason, change, days = 0, present = pem, ca = caPem] of [
      [undefined, {}],
      ["it cannot be read", {}, 0, "nonsense"],
      ["another CA issued it", {}, 0, pem, otherCa],
      ["the key changed", { spki: keyOf().facts.spki }],
      ["its subject changed", { commonName: "system:node:n2" }],
      ["its subject changed", { organizations: ["system:masters"] }],
      ["its subject changed", { organizations: [] }],
      ["its names changed", { hosts: ["n1"] }],
      ["its names changed", { hosts: ["n1", "192.0.2.12"] }],
      ["its usages changed", { usages: ["client"] }],
      [undefined, {}, 240],
      ["it expires in 64 days", {}, 300],
      ["it expired", {}, 366],
      ["it is not valid yet", {}, -1],
    ] as readonly [string | undefined, Partial<ForeignLeaf>, number?, string?, string?][])
      expect(foreignRenewalReason(present, { ...leaf, ...change }, ca, now + days * day)).to.equal(reason);
    const changed = beside(asked({ key: args.key, hosts: ["n1"] }), pem);
    expect(await pkiIssueCertificate.plan(changed, contextOf())).to.equal("unknown");
    const context = withPassphrase();
    expect((await pkiIssueCertificate.run(changed, context)).changed).to.equal(true);
    expect(context.notes.join()).to.contain("its names changed");
  });

  it("writes a kubeconfig with mode 0600, and keeps its key unless other users could read the file", async () => {
    const args = (more: object = {}) =>
      kubernetesKubeconfig.args.parse({
        file: ".kcore/admin.conf",
        server: "https://192.0.2.31:6443",
        ...more,
      }) as Parameters<typeof kubernetesKubeconfig.run>[0];
    const context = { ...contextOf(), project: dir() };
    const opened = () => ({ ...withPassphrase(), project: dir() });
    expect(await kubernetesKubeconfig.plan(args(), context)).to.equal("unknown");
    const ca = await makeCa();
    expect(await kubernetesKubeconfig.plan(args(), context)).to.equal("unknown");
    expect((await kubernetesKubeconfig.run(args(), opened())).changed).to.equal(true);
    const path = dir(".kcore/admin.conf");
    expect((await stat(path)).mode & 0o777).to.equal(0o600);
    const kept = { changed: false, outputs: { kubeconfig: ".kcore/admin.conf" } };
    expect(await kubernetesKubeconfig.run(args(), context)).to.deep.equal(kept);
    expect(await kubernetesKubeconfig.plan(args(), context)).to.deep.equal(kept);
    const dataOf = async (name: string): Promise<string> => {
      const [, data = ""] = new RegExp(`${name}: (.*)`).exec(await readFile(path, "utf8")) ?? [];
      return Buffer.from(data, "base64").toString("utf8");
    };
    expect(await dataOf("certificate-authority-data")).to.equal(ca);
    const certificate = firstCertificate(await dataOf("client-certificate-data"));
    expect(certificate.subject).to.equal("O=system:masters\nCN=kubernetes-admin");
    const key = await dataOf("client-key-data");
    for (const more of [{ server: "https://192.0.2.32:6443" }, { groups: ["ops"] }]) {
      expect(await kubernetesKubeconfig.plan(args(more), context)).to.equal("unknown");
      expect((await kubernetesKubeconfig.run(args(more), opened())).changed).to.equal(true);
      expect(await dataOf("client-key-data")).to.equal(key);
    }
    await chmod(path, 0o644);
    expect(await kubernetesKubeconfig.plan(args({ groups: ["ops"] }), context)).to.equal("unknown");
    expect((await kubernetesKubeconfig.run(args({ groups: ["ops"] }), opened())).changed).to.equal(true);
    expect((await stat(path)).mode & 0o777).to.equal(0o600);
    expect(await dataOf("client-key-data"), "others may have read it").not.to.equal(key);
    await writeFile(path, "broken");
    expect((await kubernetesKubeconfig.run(args(), opened())).changed).to.equal(true);
    expect(await dataOf("client-key-data")).not.to.equal(key);
    expect(kubernetesKubeconfig.args.safeParse({ ...args(), file: "../admin.conf" }).success).to.equal(false);
  });

  it("S-14: refuses a key without proof of possession for this run and node, and an unknown CA", async () => {
    expect(await codeOf(pkiIssueCertificate.run(asked(), withPassphrase()))).to.equal("PKI_AUTHORITY_UNKNOWN");
    await makeCa();
    const stolen = asked({ key: keyOf("kcore proof of possession another challenge") });
    expect(await codeOf(pkiIssueCertificate.run(stolen, withPassphrase()))).to.equal("PKI_PROOF_INVALID");
  });

  it("issues no certificate of an expired CA", async () => {
    const now = Date.now() - 40 * day;
    await createForeignCa(dir(), "kubernetes", { commonName: "k", days: 30, passphrase, now, cost: cheapCost });
    expect(await codeOf(pkiIssueCertificate.run(asked(), withPassphrase()))).to.equal("PKI_CERT_INVALID");
  });

  it("issues no certificate that ends later than its CA", async () => {
    const now = Date.now();
    await createForeignCa(dir(), "kubernetes", { commonName: "k", days: 30, passphrase, now, cost: cheapCost });
    const { outputs } = await pkiIssueCertificate.run(asked(), withPassphrase());
    const left = firstCertificate(String(outputs["certificate"])).validToDate.getTime() - now;
    expect(left).to.be.within(29 * day, 30 * day);
  });
});
