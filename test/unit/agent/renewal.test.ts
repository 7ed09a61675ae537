import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { keepNextKey, finishSwap, swapIn } from "#agent/certificate-files.ts";
import { isRenewalDue, renewCertificate } from "#agent/renewal.ts";
import { refusalOfNext } from "#pki/expectation.ts";
import type { ApiClient } from "#api/client.ts";
import { loadCredentials, type CredentialFiles, type LoadedCredentials } from "#api/credentials.ts";
import { generateKey, publicDer, renewalChallenge } from "#pki/keys.ts";
import { issueLeaf } from "#pki/issue.ts";
import { createTestCluster, issueTo, writeCredentials, type TestCluster } from "#support/cluster.ts";
import { codeOf } from "#support/rejection.ts";

const dayMs = 86_400_000;
const nodeId = "0b5b5b52-7c1e-4f0e-9a50-0d8a3b0f4e11";

describe("the renewal of a node's certificate", () => {
  let cluster: TestCluster;
  let other: TestCluster;
  let folder: string;
  let files: CredentialFiles;
  let present: LoadedCredentials;
  const now = Date.now();
  const names = async (): Promise<readonly string[]> => (await readdir(folder)).toSorted();
  const settled = ["ca.crt", "node.crt", "node.key"];

  /** A controller that answers renewals, with this deviation. */
  const controller = (
    change: {
      readonly challenge?: string;
      readonly host?: string;
      readonly id?: string;
      readonly by?: TestCluster;
    } = {},
  ): ApiClient =>
    ({
      call(name: string, body: { readonly spki: string; readonly signature: string }) {
        const challenge = change.challenge ?? renewalChallenge("lab", nodeId, "n0");
        if (name === "renewChallenge") return Promise.resolve({ nonce: "n0", challenge, expires: "" });
        if (name !== "renew") throw new Error(`not taught: ${name}`);
        const { host = "127.0.0.1", id = nodeId, by = cluster } = change;
        const proof = { challenge, signature: body.signature };
        const leaf = issueLeaf({ role: "node", id, host, spki: body.spki, proof }, { authority: by.authority, now });
        return Promise.resolve({ certificate: leaf.chain, serial: leaf.serial, notAfter: leaf.notAfter.toISOString() });
      },
    }) as unknown as ApiClient;
  const renew = (client: ApiClient, prove = (): Promise<void> => Promise.resolve()): Promise<Date> =>
    renewCertificate({ files, present, clock: () => now, client, prove });

  before(async () => ([cluster, other] = await Promise.all([createTestCluster(), createTestCluster()])));
  after(() => Promise.all([cluster.remove(), other.remove()]));
  beforeEach(async () => {
    folder = join(cluster.dir, `node-${Math.random()}`);
    files = await writeCredentials(
      folder,
      "node",
      issueTo(cluster.authority, "node", nodeId, { now: now - 61 * dayMs }),
    );
    present = await loadCredentials(files, "node");
  });

  it("is due at 30 days left or up to a day earlier, and never at once", () => {
    const isDue = (left: number, daysLeft: number): boolean =>
      isRenewalDue({ cert: "any", notAfter: new Date(now + left * dayMs) }, daysLeft, now);
    expect([isDue(31, 30), isDue(30, 30), isDue(89.9, 89), isDue(89, 89)]).to.deep.equal([false, true, false, true]);
  });

  it("comes over a day to 10,000 nodes whose certificates end together", () => {
    const notAfter = new Date(now + 31 * dayMs);
    const minutes = new Map<number, number>();
    for (let node = 0; node < 10_000; node++) {
      let [from, to] = [0, 1440];
      // The first minute at which the node's certificate is due.
      while (from < to) {
        const middle = (from + to) >> 1;
        if (isRenewalDue({ cert: `node ${node}`, notAfter }, 30, now + middle * 60_000)) to = middle;
        else from = middle + 1;
      }
      minutes.set(from, (minutes.get(from) ?? 0) + 1);
    }
    expect(Math.max(...minutes.values())).to.be.at.most(30);
  });

  it("S-14: installs a certificate for a new key that the node generated, 0600, without leftover files", async () => {
    const expires = await renew(controller());
    const fresh = await loadCredentials(files, "node");
    expect(fresh.notAfter).to.deep.equal(expires);
    expect(fresh.key).not.to.equal(present.key);
    expect((await stat(files.keyFile)).mode & 0o777).to.equal(0o600);
    expect(await names()).to.deep.equal(settled);
  });

  it("signs only the challenge of its own renewal", async () => {
    const forged = controller({ challenge: `kcore sub-ca lab ${nodeId} n0` });
    expect(await codeOf(renew(forged))).to.equal("RENEWAL_FAILED");
    expect(await names()).to.deep.equal(settled);
  });

  it("keeps the old pair if the new certificate has other names, another CA, or no controller accepts it", async () => {
    const wrong = [controller({ host: "192.0.2.66" }), controller({ id: "another" }), controller({ by: other })];
    for (const client of wrong) expect(await codeOf(renew(client))).to.equal("RENEWAL_FAILED");
    await renew(controller(), () => Promise.reject(new Error("403"))).catch(() => undefined);
    expect((await loadCredentials(files, "node")).cert).to.equal(present.cert);
    expect(await names()).to.deep.equal(settled);
  });

  it("keeps a new certificate whose key is installed until the certificate can be installed", async () => {
    await renew(controller(), async () => {
      await rm(files.certFile);
      await mkdir(join(files.certFile, "in the way"), { recursive: true });
    }).catch(() => undefined);
    await rm(files.certFile, { recursive: true });
    await keepNextKey(files, "key");
    expect((await loadCredentials(files, "node")).key).not.to.equal(present.key);
  });

  it("refuses a certificate that ends no later than the present one", () => {
    const key = generateKey();
    const refusal = (at: number): string | undefined => {
      const { cert } = issueTo(cluster.authority, "node", nodeId, { key, now: at });
      return refusalOfNext(cert, { spki: publicDer(key).toString("base64"), present, now });
    };
    expect(refusal(now - 61 * dayMs)).to.equal("it ends no later than the present one");
    expect(refusal(now - 60 * dayMs)).to.equal(undefined);
  });

  it("installs the key before its certificate, and discards a certificate without its key", async () => {
    const next = issueTo(cluster.authority, "node", nodeId);
    await keepNextKey(files, next.key);
    await rm(files.certFile);
    await mkdir(join(files.certFile, "in the way"), { recursive: true });
    await swapIn(files, next.cert).catch(() => undefined);
    await rm(files.certFile, { recursive: true });
    expect(await finishSwap(files)).to.equal("finished");
    expect((await loadCredentials(files, "node")).cert).to.equal(next.cert);
    await writeFile(`${files.certFile}.next`, issueTo(cluster.authority, "node", nodeId).cert);
    expect(await finishSwap(files)).to.equal("discarded");
    expect((await loadCredentials(files, "node")).cert).to.equal(next.cert);
  });

  it("finishes at the next start what a crash interrupted, or discards it", async () => {
    const next = issueTo(cluster.authority, "node", nodeId);
    // Before any file was in place.
    await keepNextKey(files, next.key);
    expect(await finishSwap(files)).to.equal("discarded");
    await keepNextKey(files, next.key);
    await writeFile(`${files.certFile}.next`, next.cert);
    expect(await finishSwap(files)).to.equal("discarded");
    expect((await loadCredentials(files, "node")).cert).to.equal(present.cert);
    // Between the two renames.
    await writeFile(`${files.certFile}.next`, next.cert);
    await writeFile(files.keyFile, next.key);
    expect(await finishSwap(files)).to.equal("finished");
    expect((await loadCredentials(files, "node")).cert).to.equal(next.cert);
    expect(await finishSwap(files)).to.equal(undefined);
    expect(await names()).to.deep.equal(settled);
  });

  it("replaces a leftover file at the new key's path, with mode 0600", async () => {
    await writeFile(`${files.keyFile}.next`, "left behind", { mode: 0o644 });
    await keepNextKey(files, "key");
    expect((await stat(`${files.keyFile}.next`)).mode & 0o777).to.equal(0o600);
    const next = issueTo(cluster.authority, "node", nodeId);
    await keepNextKey(files, next.key);
    await swapIn(files, next.cert);
    expect(await readFile(files.certFile, "utf8")).to.equal(next.cert);
  });
});
