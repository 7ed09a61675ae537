import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { readContents } from "#controller/backup-contents.ts";
import { foundedMark } from "#pki/cluster.ts";
import { generate, lock, recipientOf } from "#engine/encrypted-values/age.ts";
import { eventually, passphrase } from "#support/cluster.ts";
import { ClusterSite } from "#support/cluster-site.ts";
import { prepareController, type TestController } from "#support/controllers.ts";
import type { CommandEnd } from "#support/kcore.ts";

describe("kcore cluster backup and restore", () => {
  let site: ClusterSite;
  let phrase: readonly string[];
  /** The flags that encrypt to an age recipient, and those that open such an archive. */
  let to: readonly string[];
  let by: readonly string[];
  /** The first archive, opened. */
  let opened: string;
  const path = (name: string): string => join(site.project.path, name);

  before(async () => {
    site = await ClusterSite.open(1);
    phrase = ["--passphrase-file", site.passphraseFile];
    for (const name of ["n1", "n2"]) await site.register(name);
    const secret = await generate({ postQuantum: false });
    to = ["--recipient", (await recipientOf(secret)) ?? ""];
    by = ["--identity", path("identity.txt")];
    await writeFile(path("identity.txt"), `${secret}\n`, { mode: 0o600 });
    await mkdir(path("backups"));
  });
  after(() => site.stop());

  async function call(code: number, ...words: readonly string[]): Promise<CommandEnd> {
    const end = await site.call(...words);
    expect(end.code, end.stdout + end.stderr).to.equal(code);
    return end;
  }
  const nodesAt = async ({ operator }: TestController): Promise<readonly string[]> =>
    (await operator.call("listNodes", {})).nodes.map(({ hostname }) => hostname).toSorted();

  it("encrypts keys and state to recipients, without a passphrase; age opens the file, too", async () => {
    const { stdout } = await call(0, "cluster", "backup", path("r.age"), ...to);
    expect(stdout).to.match(/\(keys and \d+ registers of the state\), encrypted to age1\w+ and verified/);
    opened = execFileSync("age", ["-d", "-i", path("identity.txt"), path("r.age")], { encoding: "utf8" });
    const archive = JSON.parse(opened) as { files: Record<string, string>; state: string };
    expect(Object.keys(archive.files)).to.include.members(["ca.key", "kctl.key", "sub-ca.key"]);
    const contents = await readContents(Buffer.from(archive.state, "base64"), "state");
    expect([...contents.keys()].filter((key) => /^node\/.*\/reg$/.test(key))).to.have.length(2);
    const refused = await call(2, "cluster", "backup", path("x.age"), "--recipient", "age1x");
    expect(refused.stderr).to.contain("“age1x” is no age recipient");
    expect(existsSync(path("x.age"))).to.equal(false);
  });

  it("keeps the newest backups of the cluster in a folder, and leaves other files alone", async () => {
    const kept = ["lab-20200101-000000.age", "lab-20210101-000000.age", "lab-20210101-000000.age.note", "other.age"];
    for (const name of kept) await writeFile(path(`backups/${name}`), "");
    await call(0, "cluster", "backup", path("backups"), "--keep", "2", ...to);
    const names = (await readdir(path("backups"))).toSorted();
    expect(names.filter((name) => !/^lab-20[3-9]|^lab-202[6-9]/.test(name))).to.deep.equal(kept.slice(1));
    expect(names).to.have.length(4);
    expect((await call(2, "cluster", "backup", path("y.age"), "--keep", "2", ...to)).stderr).to.contain("a folder");
    await call(0, "cluster", "backup", path("backups"), "--keep", "1", "--keys-only", ...to);
    const after = (await readdir(path("backups"))).toSorted();
    expect(
      after.filter((name) => !name.endsWith(".keys.age")),
      "backups of keys push out none with the state",
    ).to.deep.equal(names);
    expect(after).to.have.length(5);
  });

  it("the drill restores a backup into a scratch controller, which serves the same state", async () => {
    await writeFile(path("p.age"), await lock(opened, passphrase, 10));
    const { stdout } = await call(0, "cluster", "backup", "--verify", path("p.age"), ...phrase, "-o", "json");
    expect(JSON.parse(stdout)).to.deep.include({ context: "lab", keys: true, state: true, nodes: 2, controllers: 1 });
    expect(await nodesAt(site.at(0)), "the cluster has no trace of a drill").to.deep.equal(["n1", "n2"]);
    expect((await site.at(0).operator.call("listControllers", {})).controllers).to.have.length(1);
  });

  it("the drill refuses a damaged state, and restores a backup of the keys alone", async () => {
    const { state, ...keys } = JSON.parse(opened) as { state: string };
    const bytes = Buffer.from(state, "base64");
    bytes[400] = (bytes[400] ?? 0) ^ 1;
    const damaged = JSON.stringify({ ...keys, state: bytes.toString("base64") });
    await writeFile(path("bad.age"), await lock(damaged, passphrase, 10));
    const bad = await call(2, "cluster", "backup", "--verify", path("bad.age"), ...phrase);
    expect(bad.stderr).to.contain("[BACKUP_DAMAGED]").and.to.contain(path("bad.age"));
    await call(0, "cluster", "backup", path("keys.age"), "--keys-only", ...to);
    const drill = await call(0, "cluster", "backup", "--verify", path("keys.age"), ...by);
    expect(drill.stdout).to.contain("their passphrase was not tried").and.to.contain("it has no state");
    const tried = await call(0, "cluster", "backup", "--verify", path("keys.age"), ...by, ...phrase);
    expect(tried.stdout).to.contain("can be restored, and it has no state");
    await writeFile(path("wrong"), "another passphrase\n", { mode: 0o600 });
    const wrong = ["--passphrase-file", path("wrong")];
    const refused = await call(2, "cluster", "backup", "--verify", path("keys.age"), ...by, ...wrong);
    expect(refused.stderr).to.contain("[PKI_PASSPHRASE_WRONG]");
    const none = await call(2, "cluster", "restore", path("keys.age"), "--state", path("none"), ...by);
    expect(none.stderr).to.contain("[BACKUP_DAMAGED]").and.to.contain("no state of its controllers");
    await writeFile(path("other.txt"), `${await generate({ postQuantum: false })}\n`, { mode: 0o600 });
    const closed = await call(2, "cluster", "restore", path("r.age"), "--identity", path("other.txt"));
    expect(closed.stderr).to.contain("[SECRET_UNREADABLE]");
  });

  it("restores the state into an emptied cluster, and into a new controller", async () => {
    const first = site.at(0);
    await call(0, "cluster", "restore", path("r.age"), "--state", path("lab-state"), ...by);
    const restore = (config: string): Promise<CommandEnd> =>
      call(0, "controller", "restore", path("lab-state"), "--alone", "--cluster", "lab", "--config", config);
    await first.stop();
    await rm(first.dbPath, { recursive: true });
    await mkdir(first.dbPath, { mode: 0o700 });
    await restore(join(first.folder, "controller.yaml"));
    await first.start();
    expect(await nodesAt(first)).to.deep.equal(["n1", "n2"]);
    await first.stop();
    const fresh = await prepareController(site.cluster, { host: "127.0.0.19" });
    try {
      await rm(fresh.dbPath, { recursive: true });
      await mkdir(fresh.dbPath, { mode: 0o700 });
      await restore(join(fresh.folder, "controller.yaml"));
      await fresh.start();
      await eventually(async () => (await fresh.operator.call("ready", {})).ready);
      expect(await nodesAt(fresh)).to.deep.equal(["n1", "n2"]);
    } finally {
      await fresh.end();
    }
  });

  it("needs a controller once the cluster was founded, unless told to back up the keys alone", async () => {
    const unfounded = await call(0, "cluster", "backup", path("early.age"), ...to);
    expect(unfounded.stdout).to.contain("(keys)");
    await rm(join(site.cluster.home, "lab/unfounded.json"));
    await writeFile(join(site.cluster.home, "lab", foundedMark), "{}\n");
    const { stderr } = await call(3, "cluster", "backup", path("late.age"), ...to);
    expect(stderr).to.contain("[API_UNREACHABLE]");
    await call(0, "cluster", "backup", path("late.age"), "--keys-only", ...to);
  });
});
