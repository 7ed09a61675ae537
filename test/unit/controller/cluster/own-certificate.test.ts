import { randomUUID } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { CredentialFiles } from "#api/credentials.ts";
import { createLog } from "#api/log.ts";
import { openOwnCertificate } from "#controller/cluster/own-certificate.ts";
import type { OwnCertificate } from "#controller/cluster/own-certificate.ts";
import { issueLeaf } from "#pki/issue.ts";
import { createTestCluster, issueTo, writeCredentials } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";

describe("a controller's own certificate", () => {
  let cluster: TestCluster;
  let folder: string;
  let open: () => Promise<OwnCertificate>;
  let deploy: (now: number) => Promise<CredentialFiles>;
  let now: number;
  const id = randomUUID();
  const log = createLog({ write: () => undefined, clock: Date.now });
  let changes = 0;

  before(async () => {
    cluster = await createTestCluster();
  });
  after(() => cluster.remove());
  beforeEach(async () => {
    changes = 0;
    now = Date.now();
    const dir = join(cluster.dir, randomUUID());
    folder = join(dir, "pki");
    deploy = (at) => writeCredentials(dir, "controller", issueTo(cluster.authority, "controller", id, { now: at }));
    const files = await deploy(now - 60_000);
    open = async () => {
      const own = await openOwnCertificate({ files, folder, log, clock: () => now });
      own.watch(() => changes++);
      return own;
    };
  });

  /** A certificate for the key that it was asked to make. */
  const certify = (own: OwnCertificate): string => {
    const { spki, challenge, signature } = own.request("n".repeat(30));
    const request = { role: "controller", id, host: "127.0.0.1", spki, proof: { challenge, signature } } as const;
    return issueLeaf(request, { authority: cluster.authority, now }).chain;
  };
  const rotate = async (own: OwnCertificate): Promise<string> => {
    const certificate = certify(own);
    await own.install(certificate, () => true);
    return certificate;
  };

  it("is the rotated one at once and at the next start, and leaves nothing else on the disk", async () => {
    const own = await open();
    const certificate = await rotate(own);
    expect([own.credentials().cert, changes]).to.deep.equal([certificate, 1]);
    expect((await readdir(folder)).toSorted()).to.deep.equal(["controller.crt", "controller.key"]);
    expect((await open()).credentials().cert).to.equal(certificate);
  });

  it("stays when the new key is not registered, or another's certificate comes", async () => {
    const own = await open();
    const { cert } = own.credentials();
    const certificate = certify(own);
    expect(await own.install(certificate, () => false).catch(String)).to.contain("not registered");
    const other = issueTo(cluster.authority, "controller", randomUUID()).cert;
    expect(await own.install(other, () => true).catch(String)).to.contain("the key changed");
    expect([own.credentials().cert, changes]).to.deep.equal([cert, 0]);
  });

  it("is the deployed one again as soon as a later deployment leaves another", async () => {
    const own = await open();
    await rotate(own);
    const { certFile } = await deploy(now + 60_000);
    await own.reload();
    expect([own.credentials().cert, changes]).to.deep.equal([await readFile(certFile, "utf8"), 2]);
    expect((await open()).credentials().cert).to.equal(own.credentials().cert);
  });

  it("is the deployed one where the rotated files are another controller's", async () => {
    const { cert } = (await open()).credentials();
    const other = issueTo(cluster.authority, "controller", randomUUID(), { now: now + 60_000 });
    const files = await writeCredentials(join(cluster.dir, randomUUID()), "controller", other);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await copyFile(files.certFile, join(folder, "controller.crt"));
    await copyFile(files.keyFile, join(folder, "controller.key"));
    expect((await open()).credentials().cert).to.equal(cert);
  });

  it("is not rotated with a key that was asked for more than ten minutes ago, or with one twice", async () => {
    const own = await open();
    const late = certify(own);
    now += 600_001;
    expect(await own.install(late, () => true).catch(String)).to.contain("no key was asked for");
    const certificate = await rotate(own);
    expect(await own.install(certificate, () => true).catch(String)).to.contain("no key was asked for");
  });

  it("is the rotated one at the next look when its files could not all be put in place", async () => {
    const own = await open();
    await mkdir(join(folder, "controller.crt", "in the way"), { recursive: true, mode: 0o700 });
    const certificate = certify(own);
    expect(await own.install(certificate, () => true).catch(({ code }) => String(code))).to.equal("EISDIR");
    await rm(join(folder, "controller.crt"), { recursive: true });
    await own.reload();
    expect([own.credentials().cert, changes]).to.deep.equal([certificate, 1]);
  });

  it("is a whole pair after a crash between its two files: the new one, or the one before", async () => {
    const own = await open();
    const first = await rotate(own);
    await copyFile(join(folder, "controller.crt"), join(folder, "old.crt"));
    const formerKey = await readFile(join(folder, "controller.key"), "utf8");
    const second = await rotate(own);
    // The new key is in place, its certificate not yet.
    await rename(join(folder, "controller.crt"), join(folder, "controller-next.crt"));
    await rename(join(folder, "old.crt"), join(folder, "controller.crt"));
    expect((await open()).credentials().cert).to.equal(second);
    // The new certificate is there, its key not yet.
    await writeFile(join(folder, "controller-next.crt"), second);
    await writeFile(join(folder, "controller.crt"), first);
    await writeFile(join(folder, "controller.key"), formerKey);
    expect((await open()).credentials().cert).to.equal(first);
    expect((await readdir(folder)).toSorted()).to.deep.equal(["controller.crt", "controller.key"]);
  });
});
