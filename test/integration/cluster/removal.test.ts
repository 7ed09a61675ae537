import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { ClusterSite } from "#support/cluster-site.ts";
import { eventually } from "#support/cluster.ts";
import { refusalCodeOf } from "#support/controllers.ts";
import type { CommandEnd } from "#support/kcore.ts";
import { describeWithKube } from "#support/kube-server.ts";
import { KubeStandIn } from "#support/kube-stand-in.ts";
import { startTargets, type Targets } from "#support/targets.ts";

/** A state that waits while the file `block-NAME` exists, and then notes its name; nothing of this machine is changed. */
const noted = (folder: string, name: string, params = ""): string => `description: A stand-in that notes ${name}
${params}steps:
  - id: wait
    command.run: { cmd: "touch ${folder}/at-${name}; while [ -e ${folder}/block-${name} ]; do sleep 0.02; done", changed: never }
  - id: note
    unless: grep -qx ${name} ${folder}/log
    command.run: { cmd: "echo ${name} >>${folder}/log" }
`;
const left = (folder: string): string => `description: A stand-in for the list of things that stay
steps:
  - id: left
    command.run: { cmd: "touch ${folder}/at-left; while [ -e ${folder}/block-left ]; do sleep 0.02; done; echo /nix/store", check: true }
    register: left
`;
const command = (folder: string, name: string): string =>
  `touch ${folder}/at-${name}; while [ -e ${folder}/block-${name} ]; do sleep 0.02; done; echo ${name} $KCORE_NODE >>${folder}/hooks`;

describe("a node is taken out", () => {
  let site: ClusterSite;
  let targets: Targets;
  let folder: string;
  const hooks = (): string => (existsSync(`${folder}/hooks`) ? readFileSync(`${folder}/hooks`, "utf8") : "");
  const log = (): string => (existsSync(`${folder}/log`) ? readFileSync(`${folder}/log`, "utf8") : "");
  const rosterFile = (): string => join(site.project.project, "roster/nodes.yaml");
  const drainOf = (more = ""): string => `drain:
  command: '${command(folder, "drain")}'
  cordon: { command: '${command(folder, "cordon")}' }
  uncordon: { command: '${command(folder, "uncordon")}' }
  after: { command: '${command(folder, "undrain")}' }
  storage: { command: '${command(folder, "storage")}' }
  leave: { command: '${command(folder, "leave")}' }
${more}`;
  const remove = (name: string, ...more: readonly string[]) => [
    "orchestrate",
    "remove_node",
    name,
    "--yes",
    ...more.flatMap((value) => ["--set", value]),
  ];
  const kcore = (...words: readonly string[]): Promise<CommandEnd> => site.start(...words).ended;

  before(async () => {
    site = await ClusterSite.open(3);
    targets = await startTargets(1);
    folder = site.project.path;
    const close = "params: { close: { type: boolean, default: false, description: Close. } }\n";
    site.project.write({
      "project/states/kcore/stopped.yaml": noted(folder, "stop"),
      "project/states/kcore/unmounted.yaml": noted(folder, "unmount", close),
      "project/states/kcore/removed.yaml": noted(folder, "machine"),
      "project/states/kcore/disks-wiped.yaml": noted(folder, "wipe"),
      "project/states/kcore/left.yaml": left(folder),
      "project/kcore.yaml": drainOf(),
    });
  });
  after(async () => {
    await targets?.stop();
    await site?.stop();
  });
  beforeEach(() => {
    for (const name of ["log", "hooks"]) rmSync(join(folder, name), { force: true });
    site.project.write({ "project/kcore.yaml": drainOf() });
  });

  /** Registers a node, and makes it the only one of the roster beside one that stays. */
  async function enroll(name: string, fields = "roles: [worker]", given?: string): Promise<string> {
    const { id } = given === undefined ? await site.register(name) : { id: given };
    const { port, identityFile, hostKey, addresses } = targets;
    const reach = `address: ${addresses[0]}, port: ${port}, user: root, identityFile: ${identityFile}, hostKeys: ["${hostKey}"]`;
    writeFileSync(
      rosterFile(),
      `nodes:\n  # stays\n  other: { address: 192.0.2.9 }\n  ${name}: { id: ${id}, ${reach}, stateDir: ${folder}/${name}, ${fields} }\n`,
    );
    return id;
  }

  /** Starts a run, kills its process while it is at a place, and lets the place go on. */
  async function killAt(place: string, words: readonly string[]): Promise<void> {
    rmSync(join(folder, `at-${place}`), { force: true });
    writeFileSync(join(folder, `block-${place}`), "");
    const killed = site.start(...words);
    await eventually(() => existsSync(join(folder, `at-${place}`)));
    process.kill(await site.project.driver(), "SIGKILL");
    await killed.ended;
    rmSync(join(folder, `block-${place}`));
  }

  async function expectGone(id: string, name: string): Promise<void> {
    const { operator } = site.at(0);
    expect(await refusalCodeOf(operator.call("getNode", {}, { id }))).to.equal("NODE_REMOVED");
    const { certificates } = await operator.call("listCertificates", {});
    const own = certificates.filter((one) => one.id === id && one.role === "node");
    expect(own.map(({ status }) => status)).to.deep.equal(["revoked"]);
    expect(log().trim().split("\n")).to.deep.equal(["stop", "unmount", "machine"]);
    for (const hook of ["drain", "storage", "leave"]) expect(hooks()).to.contain(`${hook} ${name}\n`);
    expect(readFileSync(rosterFile(), "utf8")).to.equal("nodes:\n  # stays\n  other: { address: 192.0.2.9 }\n");
  }

  const places = ["drain", "storage", "leave", "stop", "unmount", "machine", "left"];
  for (const [index, place] of places.entries())
    for (const way of ["resumed", "begun anew"] as const)
      it(`killed at ${place} and ${way}, the removal comes to the same end`, async () => {
        const name = `n${index}${way === "resumed" ? "r" : "a"}`;
        const id = await enroll(name);
        await killAt(place, remove(name, "from_roster=true"));
        const isForgotten = ["unmount", "machine", "left"].includes(place);
        const code = await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }));
        expect(code, "the cluster forgets the node before its keys go").to.equal(
          isForgotten ? "NODE_REMOVED" : "allowed",
        );
        if (way === "begun anew") await kcore("node", "unlock", name, "--yes");
        const words = way === "resumed" ? ["runs", "resume", "last"] : remove(name, "from_roster=true");
        const { code: exit, stdout, stderr } = await kcore(...words);
        expect(exit, stdout + stderr).to.equal(0);
        expect(stdout).to.contain(`on ${name} stay: /nix/store`);
        await expectGone(id, name);
      });

  describeWithKube("Kubernetes agrees", (kube) => {
    const pods = "/api/v1/namespaces/default/pods";
    const settings = "  kubernetes: { kubeconfig: kubeconfig }\n  onFailure: uncordon\n";
    beforeEach(() =>
      site.project.write({
        "project/kubeconfig": kube().kubeconfig(),
        "project/kcore.yaml": drainOf(settings).replace(/^ {2}(command|cordon|uncordon|after): .*\n/gm, ""),
      }),
    );
    afterEach(() => kube().call("DELETE", pods));
    const stateOf = async (name: string): Promise<readonly unknown[]> => {
      const { items } = await kube().get(`${pods}?fieldSelector=spec.nodeName=${name}`);
      const node = await kube()
        .get(`/api/v1/nodes/${name}`)
        .catch(() => undefined);
      return [node === undefined ? "gone" : (node.spec.unschedulable ?? false), items.length];
    };
    /** A node with a pod that ends only without this finalizer. */
    const enrollThere = async (name: string, finalizers: readonly string[] = []): Promise<string> => {
      await kube().create("/api/v1/nodes", { metadata: { name } });
      const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "u", controller: true }];
      const spec = { nodeName: name, containers: [{ name: "c", image: "i" }], terminationGracePeriodSeconds: 0 };
      await kube().create(pods, { metadata: { name: `pod-${name}`, ownerReferences, finalizers }, spec });
      return enroll(name);
    };
    const expectOver = async (id: string, name: string, words: readonly string[]): Promise<void> => {
      const { code, stdout, stderr } = await kcore(...words);
      expect(code, stdout + stderr).to.equal(0);
      expect(await stateOf(name)).to.deep.equal(["gone", 0]);
      expect(await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }))).to.equal("NODE_REMOVED");
    };

    for (const [place, isObjectThere] of Object.entries({ storage: true, leave: true, stop: false, machine: false }))
      it(`when a removal is killed at ${place} and taken up again`, async () => {
        const name = `k-${place}`;
        const id = await enrollThere(name);
        await killAt(place, remove(name));
        expect(await stateOf(name)).to.deep.equal([isObjectThere ? true : "gone", 0]);
        const isResumed = place === "storage" || place === "stop";
        if (!isResumed) await kcore("node", "unlock", name, "--yes");
        await expectOver(id, name, isResumed ? ["runs", "resume", "last"] : remove(name));
      });

    it("when it is killed in the drain, after a pod was evicted", async () => {
      const id = await enrollThere("k-drain", ["example.com/hold"]);
      const killed = site.start(...remove("k-drain"));
      const pod = `${pods}/pod-k-drain`;
      await eventually(async () => (await kube().get(pod)).metadata.deletionTimestamp !== undefined);
      process.kill(await site.project.driver(), "SIGKILL");
      await killed.ended;
      expect(await stateOf("k-drain")).to.deep.equal([true, 1]);
      await kube().patch(pod, { metadata: { finalizers: null } });
      await expectOver(id, "k-drain", ["runs", "resume", "last"]);
    });

    it("when the storage alone is taken out, and when the machine is gone", async () => {
      const id = await enrollThere("k-part");
      expect((await kcore(...remove("k-part", "storage_only=true"))).code).to.equal(0);
      expect(await stateOf("k-part"), "cordoned, with its pods").to.deep.equal([true, 1]);
      const roster = readFileSync(rosterFile(), "utf8").replace(/port: \d+/, "port: 1");
      writeFileSync(rosterFile(), roster);
      expect((await kcore(...remove("k-part", "unreachable=true"))).code).to.equal(0);
      expect((await stateOf("k-part"))[0]).to.equal("gone");
      expect(await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }))).to.equal("NODE_REMOVED");
    });
  });

  it("a removal that is over is left alone, and its last words lead back", async () => {
    const id = await enroll("n7");
    const dry = await kcore(...remove("n7", "from_roster=true"), "--dry-run");
    expect(dry.code, dry.stdout + dry.stderr).to.equal(0);
    expect(log() + hooks()).to.equal("");
    expect(readFileSync(rosterFile(), "utf8")).to.contain("n7:");
    expect(await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }))).to.equal("allowed");
    expect((await kcore(...remove("n7"))).code).to.equal(0);
    const { code, stdout } = await kcore(...remove("n7", "from_roster=true"), "--verbose");
    expect(code, stdout).to.equal(0);
    expect(stdout).to.contain("kcore roster adopt n7");
    await expectGone(id, "n7");
    const unknown = await kcore(...remove("n7"));
    expect(unknown.stderr).to.contain("n7");
    expect(unknown.code).to.equal(2);
  });

  it("an unreachable machine is removed from the cluster alone, and the run says what stays there", async () => {
    const id = await enroll("n8", "roles: [worker], disks: [{ serial: S8, use: volumes }]");
    const roster = readFileSync(rosterFile(), "utf8").replace(/port: \d+/, "port: 1");
    writeFileSync(rosterFile(), roster);
    const { code, stdout, stderr } = await kcore(...remove("n8", "unreachable=true"));
    expect(code, stdout + stderr).to.equal(0);
    expect(stdout).to.match(/on n8 stay: the agent, units, runtime.*the data on disk S8/);
    expect(hooks()).to.equal("cordon n8\nstorage n8\nleave n8\n");
    expect(log()).to.equal("");
    expect(await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }))).to.equal("NODE_REMOVED");
  });

  it("the storage alone is taken out: cordoned, awaited, unmounted; the node stays", async () => {
    const id = await enroll("n9", "roles: [worker], disks: [{ serial: S9, use: volumes }]");
    const { code, stdout } = await kcore(...remove("n9", "storage_only=true"), "--verbose");
    expect(code, stdout).to.equal(0);
    expect(hooks()).to.equal("cordon n9\nstorage n9\n");
    expect(log()).to.equal("unmount\n");
    expect(stdout).to.contain("take the disks of n9 out of the roster");
    expect(await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }))).to.equal("allowed");
  });

  it("a part of a removal that leaves out the check or the revocation is refused", async () => {
    const id = await enroll("n12");
    const refused = async (left: string, ...flags: readonly string[]) => {
      const { code, stdout, stderr } = await kcore(...remove("n12", "wipe=true"), ...flags);
      expect(code, stdout + stderr).to.equal(2);
      expect(stdout + stderr)
        .to.contain("PART_INCOMPLETE")
        .and.to.contain(`stage “${left}”`);
    };
    await refused("forget", "--only", "machine");
    await refused("forget", "--only", "wipe");
    await refused("controller", "--from", "forget");
    await refused("check", "--only", "controller", "--only", "forget", "--only", "machine");
    expect(log() + hooks()).to.equal("");
    expect(await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }))).to.equal("allowed");
    const stored = await kcore(...remove("n12", "storage_only=true"), "--only", "unmount");
    expect(stored.code, stored.stdout + stored.stderr).to.equal(0);
    expect(log()).to.equal("unmount\n");
  });

  it("missing hooks are named, and disks are wiped without the storage hook only if the operator says so", async () => {
    const id = await enroll("n16");
    site.project.write({ "project/kcore.yaml": "cluster: lab\n" });
    const refused = await kcore(...remove("n16", "wipe=true"));
    expect(refused.code, refused.stdout + refused.stderr).to.equal(1);
    expect(refused.stdout + refused.stderr)
      .to.contain("HOOK_MISSING")
      .and.to.contain("without_storage_hook=true");
    expect(log() + hooks()).to.equal("");
    expect(await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }))).to.equal("allowed");
    const stored = await kcore(...remove("n16", "storage_only=true"));
    expect(stored.code, stored.stdout + stored.stderr).to.equal(0);
    expect(stored.stdout).to.contain("no hook cordon, storage under drain");
    const done = await kcore(...remove("n16", "wipe=true", "without_storage_hook=true"));
    expect(done.code, done.stdout + done.stderr).to.equal(0);
    expect(done.stdout).to.contain("no hook drain under drain");
    expect(log()).to.match(/wipe\n$/);
  });

  it("no part of a replacement removes the old node without the new node's deployment", async () => {
    const id = await enroll("n13");
    writeFileSync(rosterFile(), readFileSync(rosterFile(), "utf8").replace("192.0.2.9", "192.0.2.9, roles: [worker]"));
    const refused = async (code: string, ...flags: readonly string[]) => {
      const end = await kcore("orchestrate", "replace_node", "other", "--yes", "--set", "old=n13", ...flags);
      expect(end.code, end.stdout + end.stderr).to.equal(2);
      expect(end.stdout + end.stderr).to.contain(code);
    };
    await refused("PART_EMPTY", "--limit", "n13");
    await refused("needs the outputs of stage “joined”", "--from", "check");
    await refused("needs the outputs of stage “join”", "--from", "joined");
    expect(log() + hooks()).to.equal("");
    expect(await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }))).to.equal("allowed");
  });

  it("a jump host and a node behind it leave the roster in one run", async () => {
    await enroll("n14");
    const { id } = await site.register("n15");
    const entry = /n14: (\{.*\})\n/.exec(readFileSync(rosterFile(), "utf8"))?.[1] ?? "";
    const behind = entry.replace(/id: [^,]+/, `id: ${id}`).replace("/n14,", "/n15, jump: [n14],");
    writeFileSync(rosterFile(), `${readFileSync(rosterFile(), "utf8")}  n15: ${behind}\n`);
    const alone = await kcore(...remove("n14", "from_roster=true"), "--dry-run");
    expect(alone.stdout + alone.stderr).to.contain("n15 is reached through it");
    const { code, stdout, stderr } = await kcore(...remove("n14,n15", "from_roster=true", "unreachable=true"));
    expect(code, stdout + stderr).to.equal(0);
    expect(readFileSync(rosterFile(), "utf8")).to.equal("nodes:\n  # stays\n  other: { address: 192.0.2.9 }\n");
  });

  it("node drain, cordon and their like run the project's hooks; a failed drain uncordons", async () => {
    await enroll("n10");
    expect((await kcore("node", "drain", "n10")).code).to.equal(0);
    for (const to of ["cordon", "uncordon", "undrain"]) expect((await kcore("node", to, "n10")).code).to.equal(0);
    expect(hooks()).to.equal("drain n10\ncordon n10\nuncordon n10\nundrain n10\n");
    const failing = drainOf("  onFailure: uncordon\n").replace(/ {2}command: '.*'/, "  command: 'false'");
    site.project.write({ "project/kcore.yaml": failing });
    expect((await kcore("node", "drain", "n10")).code).to.equal(1);
    expect(hooks()).to.match(/undrain n10\nuncordon n10\n$/);
    site.project.write({ "project/kcore.yaml": "drain: { state: kcore/stopped }\n" });
    expect((await kcore("node", "drain", "n10")).code).to.equal(0);
    expect(log()).to.equal("stop\n");
    const missing = await kcore("node", "cordon", "n10");
    expect(missing.stderr).to.contain("HOOK_MISSING");
  });

  it("node drain and cordon ask Kubernetes where kcore.yaml names a kubeconfig", async () => {
    await enroll("n11");
    const kube = await KubeStandIn.start();
    try {
      const conditions = [{ type: "Ready", status: "True" }];
      const node = { metadata: { name: "n11" }, spec: { unschedulable: true }, status: { conditions } };
      kube.answer = ({ path }) => ({ body: path.includes("/pods") ? { items: [] } : node });
      site.project.write({
        "project/kubeconfig": kube.kubeconfig(),
        "project/kcore.yaml": "drain: { kubernetes: { kubeconfig: kubeconfig }, onFailure: uncordon }\n",
      });
      expect((await kcore("node", "cordon", "n11")).code).to.equal(0);
      expect(kube.asked.map(({ method }) => method)).to.deep.equal(["GET", "GET"]);
      expect((await kcore("node", "drain", "n11")).code).to.equal(0);
      expect(kube.asked.some(({ path }) => path.includes("fieldSelector=spec.nodeName"))).to.equal(true);
      expect((await kcore("node", "undrain", "n11")).code).to.equal(0);
      const { body = "" } = kube.asked.find(({ method }) => method === "PATCH") ?? {};
      expect(JSON.parse(body)).to.deep.include({ spec: { unschedulable: null } });
    } finally {
      await kube.stop();
    }
  });

  it("a controller leaves when another one is in step, a dead one is removed, and the last one stays", async () => {
    const removedAt = async (index: number, ...more: readonly string[]): Promise<CommandEnd> => {
      await enroll(`c${index}`, "roles: [controller]", site.at(index).id);
      return kcore(...remove(`c${index}`, ...more));
    };
    const members = async () => {
      const { controllers } = await site.at(0).operator.call("listControllers", {});
      return controllers.map(({ controllerId }) => controllerId).sort();
    };
    await enroll("c1", "roles: [controller]", site.at(1).id);
    const swapped = await kcore("orchestrate", "replace_node", "other", "--set", "old=c1", "--dry-run");
    expect(swapped.stdout + swapped.stderr).to.contain("NODE_NOT_REPLACED");
    await killAt("stop", remove("c1"));
    expect((await members()).length, "it has left before it stops").to.equal(2);
    await kcore("node", "unlock", "c1", "--yes");
    const leaving = await removedAt(1);
    expect(leaving.code, leaving.stdout + leaving.stderr).to.equal(0);
    await eventually(async () => (await members()).length === 2);
    await site.at(2).stop();
    const silent = await removedAt(2);
    expect(silent.stdout).to.contain("cannot hand over").and.to.contain("kcore controller remove");
    expect((await members()).length).to.equal(2);
    expect((await removedAt(2, "unreachable=true")).code).to.equal(0);
    expect(await members()).to.deep.equal([site.at(0).id]);
    const last = await removedAt(0);
    expect(last.code).to.equal(1);
    expect(last.stdout).to.contain("is the cluster's only controller");
    expect(hooks()).not.to.contain("c0");
    const config = readFileSync(join(site.cluster.home, "config"), "utf8");
    expect([0, 1, 2].filter((index) => config.includes(site.at(index).endpoint))).to.deep.equal([0]);
  });
});
