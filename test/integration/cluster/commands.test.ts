import { randomUUID } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { ClusterSite } from "#support/cluster-site.ts";
import type { WatchLine } from "#api/controller-schemas.ts";
import type { CertificateView, NodeDetail, NodeView } from "#api/schemas.ts";
import { eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { areAllInStep, nodeCredentials, spkiOf } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { kcoreProgram } from "#support/deploy.ts";
import type { TestProject, CommandEnd } from "#support/kcore.ts";

describe("commands against a cluster of three controllers", () => {
  let site: ClusterSite;
  let cluster: TestCluster;
  let controllers: readonly TestController[];
  let project: TestProject;
  /** The id of the node “alpha”. */
  let alpha: string;
  const at = (index: number): TestController => site.at(index);

  const kcore = (...words: readonly string[]): Promise<CommandEnd> => site.call(...words);
  const succeed = async (...words: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await kcore(...words);
    expect(stderr.replaceAll(/^.*; the next one is asked\n/gm, ""), words.join(" ")).to.equal("");
    expect(code, words.join(" ")).to.equal(0);
    return stdout;
  };
  const json = async <Value>(...words: readonly string[]): Promise<Value> =>
    JSON.parse(await succeed(...words, "-o", "json")) as Value;
  const register = (name: string, changes: object = {}) => site.register(name, changes);

  before(async () => {
    site = await ClusterSite.open(3, { dcs: ["DC1", "DC1", "DC2"] });
    ({ cluster, controllers, project } = site);
    alpha = (await register("alpha", { dc: "DC1", labels: { tier: "ssd" } })).id;
    await register("beta", { dc: "DC2" });
  });
  after(() => site?.stop());

  it("health lists each controller, then the verdict", async () => {
    const text = await succeed("health");
    for (const { endpoint } of controllers) expect(text).to.match(new RegExp(`^${endpoint} +ok +DC[12] `, "m"));
    expect(text).to.match(/^cluster is healthy\n$/m);
    const sick = await kcore("health", "-s", at(0).endpoint, "-s", "127.0.0.1:1");
    expect(sick.code).to.equal(1);
    expect(sick.stdout).to.contain("1 of 2 controllers are not healthy");
  });

  it("get nodes is the same from each controller, and selects by name, label and datacenter", async () => {
    await eventually(() => areAllInStep(controllers));
    const table = await succeed("get", "nodes", "-s", at(0).endpoint);
    expect(table.split("\n")[0]).to.match(
      /^NAME +STATUS +APPROVAL +ROLES +DC +ADDRESS +VERSION +AGE +SEEN +CERT-EXPIRY +CONFLICTS$/,
    );
    expect(table, table).to.match(/^alpha +Ready +approved +worker +DC1 +192\.0\.2\.1 +1 +\d+s +\d+s +89d +0$/m);
    const views = await Promise.all(
      controllers.map(({ endpoint }) => json<NodeView[]>("-s", endpoint, "get", "nodes")),
    );
    const stable = views.map((nodes) => nodes.map((node) => ({ ...node, lastSeen: "" })));
    expect(stable[1]).to.deep.equal(stable[0]);
    expect(stable[2]).to.deep.equal(stable[0]);
    const names = async (...words: string[]) =>
      (await json<NodeView[]>("get", "nodes", ...words)).map(({ hostname }) => hostname);
    expect(await names("-l", "tier=ssd")).to.deep.equal(["alpha"]);
    expect(await names("--dc", "DC2")).to.deep.equal(["beta"]);
    expect(await names("beta", alpha.slice(0, 8))).to.deep.equal(["alpha", "beta"]);
    const page = await kcore("get", "nodes", "--limit", "1", "-o", "json");
    expect((JSON.parse(page.stdout) as NodeView[]).map(({ hostname }) => hostname)).to.deep.equal(["alpha"]);
    expect(page.stderr).to.contain(`more nodes: --limit 1 --after alpha/${alpha}\n`);
    expect(await names("--limit", "1", "--after", `alpha/${alpha}`)).to.deep.equal(["beta"]);
    expect(await names("--limit", "1", "--after", "alpha")).to.deep.equal(["beta"]);
    expect(await names("--limit", "1", "--dc", "DC2")).to.deep.equal(["beta"]);
    expect(await names("--limit", "1", "--after", "beta")).to.deep.equal([]);
    expect((await kcore("get", "nodes", "gamma")).stderr).to.contain("[NODE_UNKNOWN]");
    const detail = await json<NodeDetail>("get", "node", "alpha");
    expect(detail).to.include({ id: alpha, approval: "approved" });
    expect(detail.registers.map(({ key }) => key)).to.include(`node/${alpha}/reg`);
    expect(await succeed("get", "node", "alpha", "-o", "yaml")).to.match(/^id: /);
    expect(await succeed("describe", "node", "alpha")).to.match(/^Name: +alpha\n/);
  });

  it("-s -s asks the next controller when one is unreachable, and names each when none answers", async () => {
    const some = await kcore("-s", "127.0.0.1:1", "get", "nodes", "-s", at(1).endpoint);
    expect(some.code).to.equal(0);
    expect(some.stderr).to.match(/^controller 127\.0\.0\.1:1 cannot be reached: .*; the next one is asked\n$/);
    expect(some.stdout).to.contain("alpha");
    const none = await kcore("get", "nodes", "-s", "127.0.0.1:1", "-s", "127.0.0.1:2");
    expect(none.code).to.equal(3);
    expect(none.stderr).to.contain("controller 127.0.0.1:1").and.to.contain("controller 127.0.0.1:2");
  });

  it("get replication-status --require-healthy exits 1 with an unhealthy controller", async () => {
    const status = await succeed("get", "replication-status", "--require-healthy");
    expect(status.match(/: healthy: /g)).to.have.length(3);
    const sick = await kcore("get", "replication-status", "--require-healthy", "-s", "127.0.0.1:1");
    expect(sick.code).to.equal(1);
    expect((await kcore("get", "replication-status", "-s", "127.0.0.1:1")).code).to.equal(0);
  });

  it("get nodes -w prints a line per change, also after its controller is gone", async () => {
    const words = ["get", "nodes", "-w", "-o", "json", "-s", at(2).endpoint, "-s", at(0).endpoint];
    const { child, ended } = site.start(...words);
    let text = "";
    child.stdout?.on("data", (chunk: string) => (text += chunk));
    const prints = (what: RegExp) => eventually(() => what.test(text));
    await prints(/"alpha"/);
    await succeed("node", "label", "alpha", "watched=yes");
    await prints(/"watched":"yes"/);
    await at(2).stop();
    await succeed("node", "label", "alpha", "watched=still", "-s", at(0).endpoint);
    await prints(/"watched":"still"/);
    child.kill("SIGTERM");
    await ended;
    await at(2).start();
    await eventually(() => areAllInStep(controllers));
    const lines = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as NodeView | WatchLine);
    expect(lines.length).to.be.lessThan(20);
  });

  it("on a terminal, -w redraws the table in place, and questions take yes and no", async () => {
    const { id } = await register("theta");
    const shell = await site.openShell(160, 30);
    try {
      await shell.enter(`${kcoreProgram} get nodes -w theta`);
      await shell.shows(/^theta +Ready /m);
      await succeed("node", "reject", "theta");
      const screen = await shell.shows(/^theta +Rejected /m);
      expect(screen.match(/^NAME /gm)).to.have.length(1);
      expect(screen).not.to.match(/^theta +Ready/m);
      await shell.press("C-c");
      await shell.enter(`clear; ${kcoreProgram} node remove theta; echo code $?`);
      await shell.shows(/Remove them for ever\?.*\[yes\/no\]/);
      await shell.enter("no");
      expect(await shell.shows(/code 1/)).to.contain("[CONFIRM_DENIED]");
      await shell.enter(`clear; ${kcoreProgram} node remove theta; echo code $?`);
      await shell.shows(/Remove them for ever/);
      await shell.enter("yes");
      expect(await shell.shows(/code 0/)).to.contain(`theta (${id}) removed`);
    } finally {
      await shell.close();
    }
  });

  it("S-11: revoke cert revokes by serial, node or key, and the key is refused at once", async () => {
    const { id, client } = await register("epsilon");
    const spki = spkiOf(nodeCredentials(cluster, randomUUID()));
    expect((await kcore("revoke", "cert")).code).to.equal(2);
    expect((await kcore("revoke", "cert", "--node", "epsilon")).stderr).to.contain("[QUESTION_UNANSWERED]");
    const byNode = await kcore("revoke", "cert", "--node", "epsilon", "--yes", "--reason", "copied");
    expect(byNode.stdout, byNode.stderr).to.match(/^revoked: /);
    const answer = await client.call("heartbeat", { nodeId: id }).then(String, String);
    expect(answer).to.match(/refused|cannot be reached/);
    expect((await kcore("revoke", "cert", "--spki", spki, "--yes")).stdout).to.match(/^revoked: no certificate known/);
    expect((await kcore("revoke", "cert", "--spki", spki, "--yes")).stdout).to.match(/^revoked already/);
    const found = await json<CertificateView[]>("get", "certificates", "--status", "revoked");
    expect(found.map((certificate) => certificate.id)).to.include(id);
    expect((await kcore("revoke", "cert", "ffffffff", "--yes")).stderr).to.contain("[CERTIFICATE_UNKNOWN]");
  });

  it("rotate sub-ca lists an unreachable controller as not done", async () => {
    const file = site.passphraseFile;
    const own = () => readFileSync(join(cluster.home, "lab/sub-ca.crt"), "utf8");
    const before = own();
    await at(1).stop();
    try {
      const missed = await kcore("rotate", "sub-ca", "--passphrase-file", file);
      expect(missed.code).to.equal(1);
      expect(missed.stdout.match(/new sub-CA [0-9a-f]+, until /g)).to.have.length(2);
      expect(missed.stderr).to.contain(`not done: `).and.to.contain(at(1).endpoint);
      expect(own()).not.to.equal(before);
    } finally {
      await at(1).start();
    }
    await eventually(() => areAllInStep(controllers));
  });

  it("controller backup writes a new file that only the owner may read", async () => {
    const file = join(project.path, "backup");
    const { code, stdout, stderr } = await kcore("controller", "backup", "-o", file);
    expect([code, stdout.replace(/\d+ bytes/, "N bytes")]).to.deep.equal([
      0,
      `${file}: N bytes, for you alone; it holds no private key\n`,
    ]);
    expect(stderr).to.match(/^❯ (copying the state of the cluster “lab”)\n✔ \1.*\n$/);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(statSync(file).size).to.be.greaterThan(500);
    const again = await kcore("controller", "backup", "-o", file);
    expect(again.stderr).to.contain("[FILE_IN_THE_WAY]");
  });

  it("apply records an existing cluster once", async () => {
    const file = join(project.path, "cluster.yaml");
    writeFileSync(file, `kind: Cluster\nmetadata: { name: lab }\nspec: { controller: "${at(1).endpoint}" }\n`);
    expect(await succeed("apply", "-f", file)).to.equal("cluster/lab updated\n");
    expect(await succeed("apply", "-f", file)).to.equal("cluster/lab unchanged\n");
    // Replication brings the object to the other controllers a moment later.
    const kinds = async () => (await at(2).operator.call("listObjects", {})).objects.map(({ kind }) => kind);
    await eventually(async () => (await kinds()).includes("Cluster"));
  });

  it("controller leave and controller remove take a controller out of the cluster and the context", async () => {
    expect((await kcore("controller", "leave", "127.0.0.99", "--yes")).stderr).to.contain("[CONTROLLER_UNKNOWN]");
    const left = await kcore("controller", "leave", at(2).endpoint, "--yes");
    expect(left.stdout, left.stderr).to.contain("left");
    await at(2).stop();
    await eventually(async () => (await at(0).operator.call("listControllers", {})).controllers.length === 2);
    await at(1).stop();
    const removed = await kcore("controller", "remove", at(1).id.slice(0, 8), "--yes");
    expect(removed.stdout, removed.stderr).to.contain("removed");
    const contexts = await json<{ controllers: string[] }[]>("config", "get-contexts");
    expect(contexts[0]?.controllers).to.deep.equal([at(0).endpoint]);
    expect(await succeed("health")).to.contain("cluster is healthy");
  });
});
