import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createServer } from "node:tls";
import { expect } from "chai";
import { wasFounded } from "#actions/cluster-context.ts";
import { pkiCreateCluster } from "#actions/pki-create-cluster.ts";
import { changeControllers } from "#pki/contexts.ts";
import { keepSealedKeys, makeEscrowKey } from "#pki/escrow.ts";
import { actionContext } from "#support/action-context.ts";
import { codec, createTestCluster, issueTo, passphrase } from "#support/cluster.ts";
import { ClusterSite } from "#support/cluster-site.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import { codeOf } from "#support/rejection.ts";
import { nodeEntry } from "#support/runs.ts";

describe("a bastion that lost its ~/.kcore", () => {
  let site: ClusterSite;
  let home: string;
  let file: string;
  before(async () => {
    site = await ClusterSite.open(1);
    home = join(site.project.path, "new-home");
    const [, port] = site.at(0).endpoint.split(":");
    site.project.write({
      "project/roster/controllers.yaml": `nodes:\n  n1: { address: 127.0.0.11, roles: [worker], vars: { joinControllers: ["127.0.0.11:${port}"] } }\n`,
    });
    file = join(site.project.path, "lab.age");
    await mkdir(home);
  });
  after(() => site.stop());

  const call = (...words: readonly string[]): Promise<CommandEnd> => site.project.call(words, { KCORE_HOME: home });
  const create = (context: string, ...more: readonly string[]): Promise<CommandEnd> =>
    call("create", "cluster", "--context", context, "--passphrase-file", site.passphraseFile, ...more);

  it("makes no second CA while a controller of the roster answers, whatever the new cluster's name", async () => {
    for (const context of ["lab", "prod"]) {
      const refused = await create(context);
      expect(refused.code, refused.stderr).to.equal(2);
      expect(refused.stderr)
        .to.contain(`${site.at(0).endpoint} answers as a controller of the cluster “lab”`)
        .and.to.contain("kcore cluster restore FILE")
        .and.to.contain("[CLUSTER_EXISTS]");
    }
    site.project.write({ "project/cluster.yaml": "kind: Cluster\nmetadata: { name: lab }\n" });
    const applied = await call("apply", "-f", "cluster.yaml", "--passphrase-file", site.passphraseFile);
    expect(applied.stderr).to.contain("[CLUSTER_EXISTS]");
    expect(await readdir(home)).to.deep.equal([]);
    expect((await create("prod", "--force")).code).to.equal(0);
    await rm(join(site.project.project, "kcore.yaml"));
  });

  it("restores its cluster from a backup that was verified", async () => {
    const phrase = ["--passphrase-file", site.passphraseFile];
    const folder = join(site.cluster.home, "lab");
    await makeEscrowKey(folder, passphrase);
    await keepSealedKeys(
      folder,
      { node: "n1", id: "4b" },
      { keys: [{ uuid: randomUUID(), disks: [], sealed: "", at: 0 }] },
    );
    await rm(join(folder, "backup.json"));
    const reminder = "the CA's keys lie on this machine alone: kcore cluster backup FILE";
    expect((await site.call("health")).stderr).to.contain(reminder);
    const nowhere = await site.call("cluster", "backup", join(folder, "none", "x.age"));
    expect([nowhere.code, nowhere.stderr], "no passphrase is asked for before").to.deep.equal([
      2,
      `${join(folder, "none/x.age")} cannot be written: there is no folder ${join(folder, "none")}  [USAGE]\n  hint: mkdir -p ${join(folder, "none")}\n`,
    ]);
    const made = await site.call("cluster", "backup", file, ...phrase, "-o", "json");
    expect(made.code, made.stderr).to.equal(0);
    expect(JSON.parse(made.stdout)).to.deep.include({ context: "lab", verified: true });
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    expect(await readFile(file, "utf8")).to.match(/^-----BEGIN AGE ENCRYPTED FILE-----/);
    expect((await site.call("health")).stderr).not.to.contain(reminder);
    const twice = await site.call("cluster", "backup", file, ...phrase);
    expect(twice.stderr).to.contain("[FILE_IN_THE_WAY]");

    const back = await call("cluster", "restore", file, ...phrase);
    expect(back.stdout + back.stderr).to.contain(`restored the cluster “lab” in ${join(home, "lab")}`);
    const health = await call("--context", "lab", "health");
    expect(health.stdout, health.stderr).to.contain("cluster is healthy");
    expect(health.stderr).to.equal("");
    for (const name of ["ca.key", "sub-ca.key", "kctl.key", "escrow.key", "escrow.pub", "escrow/4b.json"])
      expect(await readFile(join(home, "lab", name)), name).to.deep.equal(await readFile(join(folder, name)));
    expect((await stat(join(home, "lab/kctl.key"))).mode & 0o777).to.equal(0o600);
    // Even a first backup must not let an empty controller found the cluster again.
    expect(await wasFounded({ folder: join(home, "lab"), controllers: [] })).to.equal(true);
  });

  it("refuses a file that is no backup, was forged, or has another passphrase, and restores nothing", async () => {
    const phrase = join(site.project.path, "other");
    await writeFile(phrase, "another passphrase\n", { mode: 0o600 });
    const none = await call("cluster", "restore", phrase, "--passphrase-file", site.passphraseFile);
    expect(none.stderr).to.contain("[BACKUP_DAMAGED]");
    const unopened = await site.call("cluster", "backup", `${file}.new`, "--passphrase-file", phrase);
    expect(unopened.stderr).to.contain("[PKI_PASSPHRASE_WRONG]");
    expect((await readdir(site.project.path)).includes("lab.age.new")).to.equal(false);
    const { lock } = await import("#engine/encrypted-values/age.ts");
    const crafted = async (backup: object, by = site.passphraseFile): Promise<string> => {
      const text = JSON.stringify({ kind: "kcore-context", controllers: [], files: {}, ...backup });
      await writeFile(`${file}.crafted`, await lock(text, passphrase, 10));
      return (await call("cluster", "restore", `${file}.crafted`, "--passphrase-file", by)).stderr;
    };
    expect(await crafted({ context: "evil", files: { "../config": "" } })).to.contain("[BACKUP_DAMAGED]");
    expect(await crafted({ context: "../evil" })).to.contain("[BACKUP_DAMAGED]");
    expect(await crafted({ context: "fourth" }, phrase)).to.contain("[PKI_PASSPHRASE_WRONG]");
    expect(await crafted({ context: "lab" })).to.contain("[PKI_CONTEXT_EXISTS]");
    expect((await readdir(home)).toSorted()).to.deep.equal(["config", "lab", "prod"]);
  });

  it("does not count a server without a controller's certificate", async () => {
    const { cert, key } = issueTo(site.cluster.authority, "node", "6f1c2a52-0000-4000-8000-000000000000");
    const server = createServer({ cert, key }).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const context = actionContext({ home, context: "third", givenPassphrase: "", nodes: new Map() });
      const endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`;
      const { changed } = (await pkiCreateCluster.plan({ controller: endpoint }, context)) as { changed: boolean };
      expect(changed).to.equal(true);
    } finally {
      server.close();
    }
  });

  it("makes no second CA in an orchestration either", async () => {
    const n1 = { ...nodeEntry("n1"), vars: { joinControllers: [site.at(0).endpoint] } };
    const context = actionContext({ home, context: "third", nodes: new Map([["n1", n1]]) });
    expect(await codeOf(pkiCreateCluster.plan({}, context))).to.equal("CLUSTER_EXISTS");
    expect(await codeOf(pkiCreateCluster.run({}, context))).to.equal("CLUSTER_EXISTS");
  });
});

describe("a context whose endpoints do not answer", () => {
  it("names the roster's controllers, and the command that repairs the context", async () => {
    const cluster = await createTestCluster();
    const roster = "nodes:\n  n1: { address: 127.0.0.22, roles: [controller] }\n";
    const project = new TestProject({ "roster/nodes.yaml": roster });
    try {
      await changeControllers({ home: cluster.home, codec }, "lab", () => ["127.0.0.21:1"]);
      const env = { KCORE_HOME: cluster.home };
      const lost = await project.call(["get", "nodes"], env);
      expect(lost.stderr)
        .to.contain("; the roster says n1 at 127.0.0.22:9090")
        .and.to.contain("kcore orchestrate deploy_node n1")
        .and.to.contain("[API_UNREACHABLE]");
      expect(lost.code).to.equal(3);
      expect((await project.call(["health"], env)).stdout).to.contain("the roster says n1 at 127.0.0.22:9090");
      const asked = await project.call(["-s", "127.0.0.21:1", "get", "nodes"], env);
      expect(asked.stderr, "the operator chose").not.to.contain("roster");
      await changeControllers({ home: cluster.home, codec }, "lab", () => ["127.0.0.22:1"]);
      expect((await project.call(["get", "nodes"], env)).stderr, "a known one is down").not.to.contain("roster");
    } finally {
      await project.remove();
      await cluster.remove();
    }
  });
});
