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
    const budgets = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets";
    let evicted = 0;
    beforeEach(async () => (evicted = await kube().countEvictions()));
    /** The node's cordon, or `gone`; its number of pods; the number of evictions in this test. */
    const stateOf = async (name: string): Promise<readonly unknown[]> => {
      const { items } = await kube().get(`${pods}?fieldSelector=spec.nodeName=${name}`);
      const node = await kube()
        .get(`/api/v1/nodes/${name}`)
        .catch(() => undefined);
      const evictions = (await kube().countEvictions()) - evicted;
      return [node === undefined ? "gone" : (node.spec.unschedulable ?? false), items.length, evictions];
    };
    /** A node, and a pod on it. Finalizers hold up the end of either one. */
    const enrollThere = async (name: string, { ofPod = [""], ofNode = [""] } = {}): Promise<string> => {
      await kube().create("/api/v1/nodes", { metadata: { name, finalizers: ofNode.filter(Boolean) } });
      const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "u", controller: true }];
      const metadata = { name: `pod-${name}`, labels: { app: name }, ownerReferences };
      const spec = { nodeName: name, containers: [{ name: "c", image: "i" }], terminationGracePeriodSeconds: 0 };
      await kube().create(pods, { metadata: { ...metadata, finalizers: ofPod.filter(Boolean) }, spec });
      return enroll(name);
    };
    const takeUp = async (isResumed: boolean, name: string, ...more: readonly string[]): Promise<void> => {
      if (!isResumed) await kcore("node", "unlock", name, "--yes");
      const { code, stdout, stderr } = await kcore(...(isResumed ? ["runs", "resume", "last"] : remove(name, ...more)));
      expect(code, stdout + stderr).to.equal(0);
    };
    const codeOf = (id: string): Promise<string> => refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }));
    /** Kills the removal as soon as the API server shows that it has come to a place. */
    const killOnce = async (isThere: () => Promise<boolean>, name: string): Promise<void> => {
      const killed = site.start(...remove(name));
      await eventually(isThere);
      process.kill(await site.project.driver(), "SIGKILL");
      await killed.ended;
    };
    const isLeaving = async (path: string): Promise<boolean> =>
      (await kube().get(path)).metadata.deletionTimestamp !== undefined;

    const kills = [
      { place: "storage", isResumed: true, killed: [true, 0, 1], over: ["gone", 0, 1] },
      { place: "leave", isResumed: false, killed: [true, 0, 1], over: ["gone", 0, 1] },
      { place: "stop", isResumed: true, killed: ["gone", 0, 1], over: ["gone", 0, 1] },
      { place: "machine", isResumed: false, killed: ["gone", 0, 1], over: ["gone", 0, 1] },
      // No controller of this server deletes the pods of a node that is gone.
      { part: "unreachable", place: "storage", isResumed: false, killed: [true, 1, 0], over: ["gone", 1, 0] },
      { part: "unreachable", place: "leave", isResumed: true, killed: [true, 1, 0], over: ["gone", 1, 0] },
      { part: "storage_only", place: "storage", isResumed: true, killed: [true, 1, 0], over: [true, 1, 0] },
      { part: "storage_only", place: "unmount", isResumed: false, killed: [true, 1, 0], over: [true, 1, 0] },
    ];
    for (const [index, { part = "", place, isResumed, ...states }] of kills.entries())
      it(`when a removal${part && ` with ${part}=true`} is killed at ${place} and ${isResumed ? "resumed" : "begun anew"}`, async () => {
        const name = `k${index}`;
        const more = part === "" ? [] : [`${part}=true`];
        const id = await enrollThere(name);
        if (part === "unreachable")
          writeFileSync(rosterFile(), readFileSync(rosterFile(), "utf8").replace(/port: \d+/, "port: 1"));
        await killAt(place, remove(name, ...more));
        expect(await stateOf(name)).to.deep.equal(states.killed);
        await takeUp(isResumed, name, ...more);
        expect(await stateOf(name)).to.deep.equal(states.over);
        expect(await codeOf(id)).to.equal(part === "storage_only" ? "allowed" : "NODE_REMOVED");
      });

    it("when it is killed in the drain, after a pod was evicted", async () => {
      const id = await enrollThere("k-drain", { ofPod: ["example.com/hold"] });
      const pod = `${pods}/pod-k-drain`;
      await killOnce(() => isLeaving(pod), "k-drain");
      expect(await stateOf("k-drain")).to.deep.equal([true, 1, 1]);
      await kube().patch(pod, { metadata: { finalizers: null } });
      await takeUp(true, "k-drain");
      expect([await stateOf("k-drain"), await codeOf(id)]).to.deep.equal([["gone", 0, 1], "NODE_REMOVED"]);
    });

    it("when it is killed while the node's object is being deleted", async () => {
      const id = await enrollThere("k-object", { ofNode: ["example.com/hold"] });
      await killOnce(() => isLeaving("/api/v1/nodes/k-object"), "k-object");
      expect([await stateOf("k-object"), await codeOf(id)]).to.deep.equal([[true, 0, 1], "allowed"]);
      await kube().patch("/api/v1/nodes/k-object", { metadata: { finalizers: null } });
      await takeUp(false, "k-object");
      expect([await stateOf("k-object"), await codeOf(id)]).to.deep.equal([["gone", 0, 1], "NODE_REMOVED"]);
    });

    it("when a disruption budget blocks the drain: it fails and uncordons, is killed as it waits, and goes on", async () => {
      const id = await enrollThere("k-pdb");
      await kube().patch(`${pods}/pod-k-pdb/status`, {
        status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
      });
      const selector = { matchLabels: { app: "k-pdb" } };
      await kube().create(budgets, { metadata: { name: "pdb" }, spec: { minAvailable: 1, selector } });
      const allow = (disruptionsAllowed: number) => {
        const counts = { currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 };
        return kube().patch(`${budgets}/pdb/status`, {
          status: { observedGeneration: 1, disruptionsAllowed, ...counts },
        });
      };
      await allow(0);
      const file = join(site.project.project, "kcore.yaml");
      const settings = readFileSync(file, "utf8");
      writeFileSync(file, `${settings}  timeoutSeconds: 2\n`);
      const { code, stdout } = await kcore(...remove("k-pdb"));
      expect([code, await stateOf("k-pdb"), await codeOf(id)], stdout).to.deep.equal([1, [false, 1, 0], "allowed"]);
      expect(stdout).to.contain("KUBERNETES_DRAIN_TIMEOUT").and.to.contain("The disruption budget pdb");
      expect(hooks() + log(), "nothing came after the drain").to.equal("");
      writeFileSync(file, settings);
      await killOnce(async () => (await stateOf("k-pdb"))[0] === true, "k-pdb");
      expect(await stateOf("k-pdb")).to.deep.equal([true, 1, 0]);
      await allow(1);
      await takeUp(true, "k-pdb");
      expect([await stateOf("k-pdb"), await codeOf(id)]).to.deep.equal([["gone", 0, 1], "NODE_REMOVED"]);
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

  it("node drain ends at the first failure of several nodes, and a dry run of it changes nothing", async () => {
    const id = await enroll("n17");
    expect((await kcore("node", "drain", "n17", "--dry-run")).code).to.equal(0);
    expect(hooks()).to.equal("");
    const failing = `drain: { command: 'echo tried $KCORE_NODE $KCORE_NODE_ID >>${folder}/hooks; [ $KCORE_NODE != n17 ]' }\n`;
    site.project.write({ "project/kcore.yaml": failing });
    writeFileSync(rosterFile(), readFileSync(rosterFile(), "utf8").replace(/( {2}# stays\n.*\n)(.*\n)/, "$2$1"));
    const { code, stdout } = await kcore("node", "drain", "n17", "other");
    expect([code, hooks()], stdout).to.deep.equal([1, `tried n17 ${id}\n`]);
  });

  it("node remove tells the cluster alone, without a hook", async () => {
    const id = await enroll("n18");
    const { code, stdout, stderr } = await kcore("node", "remove", id, "--yes");
    expect(code, stdout + stderr).to.equal(0);
    expect(stdout + stderr).to.contain("on its machine all stays");
    expect(log() + hooks()).to.equal("");
    expect(await refusalCodeOf(site.at(0).operator.call("getNode", {}, { id }))).to.equal("NODE_REMOVED");
  });

  it("leaves its software by the state of leave=STATE before its services stop, and keeps the reason", async () => {
    const id = await enroll("n19");
    site.project.write({ "project/states/gone.yaml": noted(folder, "gone") });
    const { code, stdout, stderr } = await kcore(...remove("n19", "leave=gone", "reason=sold"));
    expect(code, stdout + stderr).to.equal(0);
    expect(log()).to.match(/^gone\nstop\n/);
    const { certificates } = await site.at(0).operator.call("listCertificates", {});
    const own = certificates.find((one) => one.id === id && one.role === "node");
    expect(JSON.stringify(own)).to.contain("sold");
    expect(existsSync(join(site.project.project, ".kcore/applied/n19.json"))).to.equal(false);
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
