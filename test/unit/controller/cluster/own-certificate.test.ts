import { randomUUID, type X509Certificate } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { CredentialFiles } from "#api/credentials.ts";
import { createLog } from "#api/log.ts";
import { openOwnCertificate, type OwnCertificate } from "#controller/cluster/own-certificate.ts";
import { watchCertificateEnds } from "#controller/certificate-ends.ts";
import { certificatesOf, refusalOfIssuer } from "#pki/chain.ts";
import { openRoot } from "#pki/cluster.ts";
import { hostsOf } from "#pki/expectation.ts";
import { issueLeaf, type Authority } from "#pki/issue.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import { issueSubCa, readSubCa, type Root } from "#pki/sub-ca.ts";
import { createTestCluster, issueTo, passphrase, writeCredentials, type TestCluster } from "#support/cluster.ts";

describe("a controller's own certificate", () => {
  let cluster: TestCluster;
  let folder: string;
  let open: () => Promise<OwnCertificate>;
  let deploy: (now: number) => Promise<CredentialFiles>;
  let now: number;
  const id = randomUUID();
  const log = createLog({ write: () => undefined, clock: Date.now });
  let changes = 0;

  before(async () => (cluster = await createTestCluster()));
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

  /** A certificate for the requested key. */
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

  it("is the rotated one at once and after a restart, without other files on the disk", async () => {
    const own = await open();
    const certificate = await rotate(own);
    expect([own.credentials().cert, changes]).to.deep.equal([certificate, 1]);
    expect((await readdir(folder)).toSorted()).to.deep.equal(["controller.crt", "controller.key"]);
    expect((await open()).credentials().cert).to.equal(certificate);
  });

  it("is kept if the new key is not registered, or the certificate is another controller's", async () => {
    const own = await open();
    const { cert } = own.credentials();
    const certificate = certify(own);
    expect(await own.install(certificate, () => false).catch(String)).to.contain("not registered");
    const other = issueTo(cluster.authority, "controller", randomUUID()).cert;
    expect(await own.install(other, () => true).catch(String)).to.contain("the key changed");
    expect([own.credentials().cert, changes]).to.deep.equal([cert, 0]);
  });

  describe("with 30 days or less left", () => {
    let root: Root;
    const key = generateKey();
    /** The controller's sub-CA, with the names under which the root lets it renew. */
    const subCaFor = (hosts: readonly string[], at = now): Authority => {
      const spki = publicDer(key).toString("base64");
      const proof = { challenge: "test", signature: proveKey(key, "test") };
      const certificatePem = issueSubCa({ controllerId: id, spki, proof, hosts }, { root, now: at });
      const keyPem = key.export({ type: "pkcs8", format: "pem" }) as string;
      return readSubCa({ cluster: "lab", controllerId: id, rootPem: root.rootPem, certificatePem, keyPem, where: "" });
    };
    const daysLeft = (own: OwnCertificate): number =>
      Math.round((own.credentials().notAfter.getTime() - now) / 86_400_000);

    const startOf = (own: OwnCertificate): number =>
      (certificatesOf(own.credentials().cert)[0] as X509Certificate).validFromDate.getTime();

    before(async () => (root = await openRoot(join(cluster.home, "lab"), passphrase)));

    it("is renewed by the controller's own sub-CA for the same key and names, also after a restart", async () => {
      const own = await open();
      const { key: present } = own.credentials();
      now += 59 * 86_400_000;
      await own.renewIfDue(() => subCaFor(["127.0.0.1"]));
      expect([daysLeft(own), changes], "not yet").to.deep.equal([31, 0]);
      now += 86_400_000;
      await own.renewIfDue(() => subCaFor(["127.0.0.1"]));
      expect([daysLeft(own), changes, own.credentials().key]).to.deep.equal([90, 1, present]);
      expect(own.problem()).to.equal(undefined);
      expect((await open()).credentials().cert).to.equal(own.credentials().cert);
      const [leaf, issuer] = certificatesOf(own.credentials().cert);
      expect(hostsOf(leaf as X509Certificate)).to.deep.equal(["127.0.0.1"]);
      expect(refusalOfIssuer(leaf as X509Certificate, { issuer, rootPem: root.rootPem })).to.equal(undefined);
    });

    it("is renewed after it has expired, as long as the sub-CA is valid", async () => {
      const own = await open();
      const subCa = subCaFor(["127.0.0.1"]);
      for (let renewals = 1; renewals <= 3; renewals++) {
        now += 400 * 86_400_000;
        await own.renewIfDue(() => subCa);
        expect([daysLeft(own), changes]).to.deep.equal([90, renewals]);
      }
    });

    it("is kept, with the reason, if the sub-CA must not renew it or is missing", async () => {
      const own = await open();
      const { cert } = own.credentials();
      now += 85 * 86_400_000;
      await own.renewIfDue(() => subCaFor(["192.0.2.1"]));
      expect(own.problem()).to.contain("it was not issued on the bastion");
      await own.renewIfDue(() => subCaFor(["127.0.0.1"], now - 1825 * 86_400_000));
      expect(own.problem()).to.contain("another CA issued it");
      await own.renewIfDue(() => {
        throw new Error("no sub-CA");
      });
      expect([own.problem(), own.credentials().cert, changes]).to.deep.equal(["no sub-CA", cert, 0]);
    });

    it("is renewed with the same key if a clock that was ahead made it begin in the future", async () => {
      const own = await open();
      const { key: present } = own.credentials();
      const start = now;
      const renew = async (one: OwnCertificate): Promise<void> => {
        await one.renewIfDue(() => subCaFor(["127.0.0.1"], start));
        expect([one.problem(), daysLeft(one), one.credentials().key]).to.deep.equal([undefined, 90, present]);
        expect(startOf(one)).to.be.at.most(now);
      };
      for (const isRestarted of [false, true]) {
        now = start + 400 * 86_400_000;
        await renew(own);
        now = start;
        await renew(isRestarted ? await open() : own);
      }
      expect((await open()).credentials().key).to.equal(present);
    });

    it("is the deployed one if the renewed one begins in the future; a rotated key is kept", async () => {
      const ahead = async (own: OwnCertificate): Promise<void> => {
        now += 400 * 86_400_000;
        await own.renewIfDue(() => subCaFor(["127.0.0.1"]));
        now -= 400 * 86_400_000;
      };
      const own = await open();
      const { cert } = own.credentials();
      await ahead(own);
      expect((await open()).credentials().cert).to.equal(cert);
      await own.reload();
      await rotate(own);
      const { key: rotated } = own.credentials();
      await ahead(own);
      const again = await open();
      expect(again.credentials().key).to.equal(rotated);
      await again.renewIfDue(() => subCaFor(["127.0.0.1"]));
      expect([again.problem(), again.credentials().key]).to.deep.equal([undefined, rotated]);
      expect(startOf(again)).to.be.at.most(now);
    });

    it("raises an alarm at each threshold, and counts as a failure at two days", async () => {
      const own = await open();
      const alarms = new Set<string>();
      const ends = watchCertificateEnds({
        own,
        subCa: { published: () => undefined },
        replica: { alarm: (isOn, _code, about) => void (isOn ? alarms.add(about) : alarms.delete(about)) },
        clock: () => now,
      });
      const seen: unknown[] = [];
      for (const days of [59, 2, 16, 7, 5]) {
        now += days * 86_400_000;
        ends.raiseAlarms();
        seen.push([[...alarms], ends.failure() !== undefined]);
      }
      expect(seen).to.deep.equal([
        [[], false],
        [["controller, 30 days"], false],
        [["controller, 14 days"], false],
        [["controller, 7 days"], false],
        [["controller, 2 days"], true],
      ]);
    });
  });

  it("is the deployed one again after a later deployment", async () => {
    const own = await open();
    await rotate(own);
    const { certFile } = await deploy(now + 60_000);
    await own.reload();
    expect([own.credentials().cert, changes]).to.deep.equal([await readFile(certFile, "utf8"), 2]);
    expect((await open()).credentials().cert).to.equal(own.credentials().cert);
  });

  it("is the deployed one if the rotated files are another controller's", async () => {
    const { cert } = (await open()).credentials();
    const other = issueTo(cluster.authority, "controller", randomUUID(), { now: now + 60_000 });
    const files = await writeCredentials(join(cluster.dir, randomUUID()), "controller", other);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await copyFile(files.certFile, join(folder, "controller.crt"));
    await copyFile(files.keyFile, join(folder, "controller.key"));
    expect((await open()).credentials().cert).to.equal(cert);
  });

  it("is not rotated with a key that was requested more than ten minutes ago or used before", async () => {
    const own = await open();
    const late = certify(own);
    now += 600_001;
    expect(await own.install(late, () => true).catch(String)).to.contain("no key was asked for");
    const certificate = await rotate(own);
    expect(await own.install(certificate, () => true).catch(String)).to.contain("no key was asked for");
  });

  it("is the rotated one after the next reload if installing its files failed halfway", async () => {
    const own = await open();
    await mkdir(join(folder, "controller.crt", "in the way"), { recursive: true, mode: 0o700 });
    const certificate = certify(own);
    expect(await own.install(certificate, () => true).catch(({ code }) => String(code))).to.equal("EISDIR");
    await rm(join(folder, "controller.crt"), { recursive: true });
    await own.reload();
    expect([own.credentials().cert, changes]).to.deep.equal([certificate, 1]);
  });

  it("is the new or the former pair after a crash between its two files", async () => {
    const own = await open();
    const first = await rotate(own);
    await copyFile(join(folder, "controller.crt"), join(folder, "old.crt"));
    const formerKey = await readFile(join(folder, "controller.key"), "utf8");
    const second = await rotate(own);
    // The new key is in place, but not its certificate.
    await rename(join(folder, "controller.crt"), join(folder, "controller-next.crt"));
    await rename(join(folder, "old.crt"), join(folder, "controller.crt"));
    expect((await open()).credentials().cert).to.equal(second);
    // The new certificate is in place, but not its key.
    await writeFile(join(folder, "controller-next.crt"), second);
    await writeFile(join(folder, "controller.crt"), first);
    await writeFile(join(folder, "controller.key"), formerKey);
    expect((await open()).credentials().cert).to.equal(first);
    expect((await readdir(folder)).toSorted()).to.deep.equal(["controller.crt", "controller.key"]);
  });
});
