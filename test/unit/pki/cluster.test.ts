import { execFileSync } from "node:child_process";
import { chmod, cp, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { firstCertificate } from "#pki/chain.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import {
  createCluster,
  daysLeft,
  openAuthority,
  openRoot,
  renewOperatorIfNeeded,
  replaceOperatorKey,
  reviveOperator,
  type NewCluster,
} from "#pki/cluster.ts";
import { addController, changeConfig, deleteContext, loadContext, readConfig, useContext } from "#pki/contexts.ts";
import { gatherContext } from "#pki/context-backup.ts";
import { encryptKey } from "#pki/encrypted-key.ts";
import { identityOf } from "#pki/identity.ts";
import { generateKey } from "#pki/keys.ts";
import { cheapCost, codec, passphrase } from "#support/cluster.ts";
import { rejectionOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const day = 86_400_000;

const codesOf = async (work: Promise<unknown>): Promise<string[]> =>
  (await rejectionOf(work)).problems.map(({ code }) => code);

describe("the contexts of clusters", () => {
  const dir = folderOfEachTest("cluster");
  let home: string;
  beforeEach(() => (home = dir("kcore")));
  const plan = (changes: Partial<NewCluster> = {}): NewCluster => ({
    home,
    codec,
    context: "default",
    controllers: ["192.0.2.11:9090"],
    operator: "ann",
    passphrase,
    now: Date.now(),
    cost: cheapCost,
    ...changes,
  });

  it("are created with root, sub-CA and an operator's certificate that openssl accepts", async () => {
    const { folder } = await createCluster(plan());
    const verify = ["verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", join(folder, "ca.crt")];
    const files = ["-untrusted", join(folder, "sub-ca.crt"), join(folder, "kctl.crt")];
    expect(execFileSync("openssl", [...verify, ...files], { encoding: "utf8" })).to.contain("OK");
    const root = firstCertificate(await readFile(join(folder, "ca.crt"), "utf8"));
    expect(root.subject).to.equal("CN=kcore-cluster-ca");
    expect(identityOf(firstCertificate(await readFile(join(folder, "kctl.crt"), "utf8")), "client")).to.deep.equal({
      cluster: "default",
      role: "operator",
      id: "ann",
    });
  });

  it("can be used by a second operator with the four files of docs/day-2.md", async () => {
    const { folder } = await createCluster(plan());
    const other = dir("other");
    await mkdir(join(other, "default"), { recursive: true, mode: 0o700 });
    await cp(join(home, "config"), join(other, "config"));
    for (const file of ["ca.crt", "kctl.crt", "kctl.key"]) await cp(join(folder, file), join(other, "default", file));
    expect((await loadContext({ home: other, codec })).name).to.equal("default");
  });

  it("S-15: have keys 0600 in folders 0700 with any umask", async () => {
    const umask = process.umask(0);
    try {
      const { folder } = await createCluster(plan());
      const modes = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
      for (const name of ["ca.key", "sub-ca.key", "kctl.key"])
        expect(await modes(join(folder, name)), name).to.equal(0o600);
      for (const path of [home, folder]) expect(await modes(path), path).to.equal(0o700);
      expect(await modes(join(home, "config"))).to.equal(0o600);
    } finally {
      process.umask(umask);
    }
  });

  it("S-15: have CA keys that openssl decrypts only with the passphrase", async () => {
    const { folder } = await createCluster(plan());
    const file = join(folder, "ca.key");
    expect(await readFile(file, "utf8")).to.match(/^-----BEGIN ENCRYPTED PRIVATE KEY-----/);
    const open = (word: string): string =>
      execFileSync("openssl", ["pkey", "-in", file, "-passin", `pass:${word}`, "-pubout"], {
        encoding: "utf8",
        stdio: "pipe",
      });
    expect(open(passphrase)).to.equal(
      firstCertificate(await readFile(join(folder, "ca.crt"), "utf8")).publicKey.export({
        type: "spki",
        format: "pem",
      }),
    );
    expect(() => open("wrong words here")).to.throw();
  });

  it("S-15: have CA keys that are refused with any changed byte", async () => {
    const { folder } = await createCluster(plan());
    const file = join(folder, "sub-ca.key");
    const pem = await readFile(file, "utf8");
    expect(pem).to.contain("-----BEGIN KCORE KEY SEAL-----");
    const lines = pem.split("\n");
    const places = lines.flatMap((line, index) => (line === "" || line.startsWith("-----") ? [] : [index]));
    for (const place of places) {
      const line = lines[place] ?? "";
      const other = line.startsWith("A") ? "B" : "A";
      await writeFile(file, lines.with(place, other + line.slice(1)).join("\n"));
      expect((await codesOf(openAuthority(folder, passphrase)))[0], `line ${place}`).to.be.oneOf([
        "PKI_PASSPHRASE_WRONG",
        "PKI_KEY_UNREADABLE",
      ]);
    }
    await writeFile(file, pem);
    expect((await openAuthority(folder, passphrase)).cluster).to.equal("default");
    expect(await readFile(file, "utf8"), "unchanged").to.equal(pem);
  });

  it("S-15: have CA keys that are refused without their authentication code", async () => {
    const { folder } = await createCluster(plan());
    const file = join(folder, "ca.key");
    const [bare = ""] = (await readFile(file, "utf8")).split("-----BEGIN KCORE KEY SEAL-----");
    await writeFile(file, bare);
    expect(await codesOf(openRoot(folder, passphrase))).to.deep.equal(["PKI_PASSPHRASE_WRONG"]);
    expect(await readFile(file, "utf8")).to.equal(bare);
  });

  it("are refused if the sub-CA's key does not belong to its certificate", async () => {
    const { folder } = await createCluster(plan());
    await writeFile(join(folder, "sub-ca.key"), encryptKey(generateKey(), passphrase, cheapCost));
    expect(await codesOf(openAuthority(folder, passphrase))).to.deep.equal(["PKI_CERT_INVALID"]);
  });

  it("are not created over an existing context, which force moves aside", async () => {
    const { folder } = await createCluster(plan());
    const before = await readFile(join(folder, "ca.crt"), "utf8");
    expect(await codesOf(createCluster(plan()))).to.deep.equal(["PKI_CONTEXT_EXISTS"]);
    await rm(join(home, "config"));
    const { problems } = await rejectionOf(createCluster(plan()));
    expect(problems[0]?.hint, "the context is not in the configuration").to.contain("move it away");
    const { aside } = await createCluster(plan({ force: true }));
    expect(await readFile(join(aside ?? "", "ca.crt"), "utf8")).to.equal(before);
    expect(await readFile(join(folder, "ca.crt"), "utf8")).not.to.equal(before);
  });

  it("are not created with invalid values, and no files are left", async () => {
    for (const wrong of [
      { passphrase: "short" },
      { context: "Bad Name" },
      { context: "config" },
      { operator: "a/b" },
    ]) {
      expect((await codesOf(createCluster(plan(wrong)))).length, JSON.stringify(wrong)).to.equal(1);
    }
    expect(await readdir(dir())).to.deep.equal([]);
  });

  it("are not created beside an unreadable configuration, which is kept", async () => {
    await createCluster(plan());
    await writeFile(join(home, "config"), "contexts: [1, 2]\n");
    expect(await codesOf(createCluster(plan({ context: "second" })))).to.deep.equal(["CONFIG_INVALID"]);
    expect((await readdir(home)).toSorted()).to.deep.equal(["config", "default"]);
  });

  it("are backed up with the loaded key and certificate of the operator, also if the context's folder has no such files", async () => {
    const { folder } = await createCluster(plan());
    const present = await loadContext({ home, codec });
    await rm(join(folder, "kctl.key"));
    const { files } = await gatherContext(present);
    expect(files).to.include({ "kctl.crt": present.cert, "kctl.key": present.key });
  });

  it("are loaded by name, the current one by default, which changes only by command", async () => {
    await createCluster(plan());
    await createCluster(plan({ context: "second", controllers: [] }));
    expect((await loadContext({ home, codec })).name, "a new context does not become current").to.equal("default");
    await useContext({ home, codec }, "second");
    await useContext({ home, codec }, "default");
    const context = await loadContext({ home, codec });
    expect(context.controllers).to.deep.equal(["192.0.2.11:9090"]);
    expect(context.key).to.contain("BEGIN PRIVATE KEY");
    expect(await codesOf(loadContext({ home, codec }, "secnd"))).to.deep.equal(["PKI_CONTEXT_UNKNOWN"]);
  });

  it("are deleted with their folder kept aside, and their names can be used again", async () => {
    await createCluster(plan({ context: "second" }));
    const { folder } = await createCluster(plan());
    const before = await readFile(join(folder, "ca.key"), "utf8");
    const place = { home, codec };
    await useContext(place, "default");
    const aside = await deleteContext(place, "default", Date.UTC(2026, 0, 2, 3, 4, 5));
    expect(aside).to.equal(`${folder}.2026-01-02T03-04-05-000Z.old`);
    expect(await readFile(join(aside ?? "", "ca.key"), "utf8")).to.equal(before);
    const config = await readConfig(place);
    expect(Object.keys(config.contexts)).to.deep.equal(["second"]);
    expect(config).not.to.have.property("current-context");
    expect(await codesOf(loadContext({ home, codec }))).to.deep.equal(["PKI_CONTEXT_UNKNOWN"]);
    expect(await codesOf(deleteContext(place, "default", Date.now()))).to.deep.equal(["PKI_CONTEXT_UNKNOWN"]);
    await createCluster(plan());
    await deleteContext(place, "second", Date.now());
    expect((await loadContext({ home, codec })).name).to.equal("default");
  });

  it("can be deleted if they have no folder", async () => {
    const place = { home, codec };
    await changeConfig(place, (config) => ({ ...config, contexts: { remote: { controllers: ["192.0.2.11:9090"] } } }));
    expect(await deleteContext(place, "remote", Date.now())).to.equal(undefined);
    expect((await readConfig(place)).contexts).to.deep.equal({});
  });

  it("S-20, S-15: are refused if other users could write files, or read keys", async () => {
    await createCluster(plan());
    const codes = (): Promise<readonly string[]> => codesOf(loadContext({ home, codec }));
    for (const [path, bad, good] of [
      [home, 0o770, 0o700],
      [join(home, "config"), 0o622, 0o600],
      [join(home, "default/ca.crt"), 0o666, 0o644],
      [join(home, "default/kctl.key"), 0o640, 0o600],
    ] as const) {
      await chmod(path, bad);
      expect(await codes(), path).to.deep.equal(["FILE_UNTRUSTED"]);
      await chmod(path, good);
    }
    expect((await loadContext({ home, codec })).name).to.equal("default");
  });

  it("record each controller once, also concurrently, and keep unknown keys of the configuration", async () => {
    await createCluster(plan({ controllers: [] }));
    await changeConfig({ home, codec }, (config) => ({ ...config, colour: "blue" }));
    const noted = ["192.0.2.1:9090", "192.0.2.2:9090", "192.0.2.1:9090"];
    const isNew = await Promise.all(noted.map((endpoint) => addController({ home, codec }, "default", endpoint)));
    expect(isNew).to.deep.equal([true, true, false]);
    const config = await readConfig({ home, codec });
    expect(config["colour"]).to.equal("blue");
    expect(config.contexts["default"]).to.include({ controller: "192.0.2.1:9090" });
    expect(config.contexts["default"]?.controllers).to.deep.equal(["192.0.2.1:9090", "192.0.2.2:9090"]);
  });

  it("have the operator's certificate renewed at 30 days left, for the same key and user", async () => {
    const now = Date.now();
    const { folder } = await createCluster(plan({ now: now - 61 * day }));
    const authority = await openAuthority(folder, passphrase);
    const before = firstCertificate(await readFile(join(folder, "kctl.crt"), "utf8"));
    expect(await renewOperatorIfNeeded(folder, authority, now)).to.equal(true);
    const after = firstCertificate(await readFile(join(folder, "kctl.crt"), "utf8"));
    expect(after.validToDate.getTime()).to.be.greaterThan(before.validToDate.getTime());
    expect(after.publicKey.equals(before.publicKey)).to.equal(true);
    expect(await renewOperatorIfNeeded(folder, authority, now)).to.equal(false);
  });

  it("leave an operator's certificate that the root issued, since controllers perhaps have no record of its key", async () => {
    const now = Date.now();
    const { folder } = await createCluster(plan({ now: now - 61 * day }));
    await replaceOperatorKey(folder, await openRoot(folder, passphrase), now - 61 * day);
    const before = await readFile(join(folder, "kctl.crt"), "utf8");
    expect(await renewOperatorIfNeeded(folder, await openAuthority(folder, passphrase), now)).to.equal(false);
    expect(await readFile(join(folder, "kctl.crt"), "utf8")).to.equal(before);
  });

  it("have their sub-CA replaced at 180 days left, and the operator's expired certificate renewed", async () => {
    const now = Date.now();
    const { folder } = await createCluster(plan({ now: now - 1700 * day }));
    const former = await openAuthority(folder, passphrase);
    expect((await openIssuer(folder, passphrase, now - 100 * day)).certificatePem).to.equal(former.certificatePem);
    const authority = await openIssuer(folder, passphrase, now);
    expect(Math.round(daysLeft(authority.certificate, now))).to.equal(1825);
    await reviveOperator(folder, { authority, passphrase, now });
    const operator = firstCertificate(await readFile(join(folder, "kctl.crt"), "utf8"));
    expect([Math.round(daysLeft(operator, now)), operator.verify(authority.certificate.publicKey)]).to.deep.equal([
      90,
      true,
    ]);
  });

  it("have an operator's certificate that the root issued renewed by the root once it has expired", async () => {
    const now = Date.now();
    const { folder } = await createCluster(plan({ now: now - 200 * day }));
    const root = await openRoot(folder, passphrase);
    await replaceOperatorKey(folder, root, now - 100 * day);
    const former = await readFile(join(folder, "kctl.crt"), "utf8");
    const authority = await openIssuer(folder, passphrase, now);
    await reviveOperator(folder, { authority, passphrase, now: now - 50 * day });
    expect(await readFile(join(folder, "kctl.crt"), "utf8"), "not expired then").to.equal(former);
    await reviveOperator(folder, { authority, passphrase, now });
    const operator = firstCertificate(await readFile(join(folder, "kctl.crt"), "utf8"));
    expect([Math.round(daysLeft(operator, now)), operator.verify(root.certificate.publicKey)]).to.deep.equal([
      90,
      true,
    ]);
  });
});
