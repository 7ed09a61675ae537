import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";
import { describeWithKube } from "#support/kube-server.ts";

const names = ["n1", "n2"];

const roll = `params:
  nodes: { type: target, required: true }
stages:
  - { id: drain, run: kubernetes.node, kubeconfig: kubeconfig, each: "{{params.nodes}}", drained: true, batch: 1 }
  - { id: work, on: "{{params.nodes}}", apply: [work], batch: 1 }
  - { id: back, run: kubernetes.node, kubeconfig: kubeconfig, each: "{{params.nodes}}", labels: { rolled: "yes" }, cordoned: false, batch: 1 }
`;
const hold = `params:
  nodes: { type: target, required: true }
stages:
  - { id: drain, run: kubernetes.node, kubeconfig: kubeconfig, each: "{{params.nodes}}", drained: true }
`;
const secrets = `stages:
  - id: keys
    run: kubernetes.object
    kubeconfig: kubeconfig
    manifest:
      apiVersion: v1
      kind: Secret
      metadata: { name: keys }
      stringData: { password: "{{params.password}}" }
params: { password: { type: secret, required: true } }
`;

describeWithKube("a rolling deployment of a Kubernetes cluster's nodes", (kube) => {
  let project: TestProject;
  beforeEach(async () => {
    project = new TestProject();
    const roster = names.map(
      (name) =>
        `  ${name}: { address: 127.0.0.1, transport: local, stateDir: ${project.path}/${name}, vars: { log: ${project.path}/log } }\n`,
    );
    project.write({
      "project/roster/nodes.yaml": `nodes:\n${roster.join("")}`,
      "project/orchestrate/roll.yaml": roll,
      "project/orchestrate/hold.yaml": hold,
      "project/orchestrate/secrets.yaml": secrets,
      "project/states/work.yaml": `steps:\n  - { id: work, command.run: { cmd: "echo {{node.name}} >>{{vars.log}}" } }\n`,
      "project/kubeconfig": kube().kubeconfig(),
      log: "",
    });
    for (const name of names) await kube().create("/api/v1/nodes", { metadata: { name } });
  });
  afterEach(async () => {
    await kube().call("DELETE", "/api/v1/namespaces/default/pods");
    for (const name of names) await kube().call("DELETE", `/api/v1/nodes/${name}`);
    await project.remove();
  });

  const pod = (name: string, node: string, more: object = {}) => {
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "u", controller: true }];
    const spec = { nodeName: node, containers: [{ name: "c", image: "i" }], terminationGracePeriodSeconds: 0 };
    return kube().create("/api/v1/namespaces/default/pods", { metadata: { name, ownerReferences, ...more }, spec });
  };
  const isCordoned = async (name: string): Promise<boolean> =>
    (await kube().get(`/api/v1/nodes/${name}`)).spec.unschedulable === true;
  const records = (): string =>
    readdirSync(join(project.project, ".kcore/runs"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))
      .join("\n");

  it("kcore node drain and its like ask Kubernetes as kcore.yaml says; a drain that fails uncordons", async () => {
    project.write({
      "project/kcore.yaml":
        "drain: { kubernetes: { kubeconfig: kubeconfig }, timeoutSeconds: 30, onFailure: uncordon }\n",
    });
    await pod("a", "n1");
    const does = async (...words: readonly string[]): Promise<number | null> =>
      (await project.kcore("node", ...words)).code;
    expect(await does("drain", "n1")).to.equal(0);
    expect((await kube().get("/api/v1/namespaces/default/pods")).items).to.deep.equal([]);
    expect([await isCordoned("n1"), await isCordoned("n2")]).to.deep.equal([true, false]);
    expect(await does("uncordon", "n1")).to.equal(0);
    expect(await does("cordon", "n2")).to.equal(0);
    expect([await isCordoned("n1"), await isCordoned("n2")]).to.deep.equal([false, true]);
    // No controller would start this pod elsewhere.
    await pod("b", "n2", { ownerReferences: [] });
    expect(await does("drain", "n2")).to.equal(1);
    expect(await isCordoned("n2")).to.equal(false);
  });

  it("verify_node names what Kubernetes lacks of the roster, and a node without work", async () => {
    const roster = join(project.project, "roster/nodes.yaml");
    const marks = "labels: { tier: hdd }, taints: [dedicated=storage:NoSchedule], transport: local";
    writeFileSync(roster, readFileSync(roster, "utf8").replace("transport: local", marks));
    const verify = async () => {
      const only = ["kubernetes", "spread"].flatMap((stage) => ["--only", stage]);
      const words = ["orchestrate", "verify_node", "n1", "--set", "kubeconfig=kubeconfig", ...only, "--verbose"];
      const { code, stdout } = await project.kcore(...words);
      return { code, stdout };
    };
    const ready = { conditions: [{ type: "Ready", status: "True", reason: "k", message: "m" }] };
    await kube().patch("/api/v1/nodes/n1", { metadata: { labels: { tier: "hdd" } }, spec: { taints: null } });
    await kube().patch("/api/v1/nodes/n1/status", { status: ready });
    const lacking = await verify();
    expect(lacking.code, lacking.stdout).to.equal(1);
    expect(lacking.stdout)
      .to.contain('would change n1: taint dedicated:NoSchedule: none → "storage"')
      .and.to.contain("no pod runs on n1");
    const taints = [{ key: "dedicated", value: "storage", effect: "NoSchedule" }];
    await kube().patch("/api/v1/nodes/n1", { spec: { taints } });
    await pod("a", "n1");
    await kube().patch("/api/v1/namespaces/default/pods/a/status", { status: { phase: "Running" } });
    const { code, stdout } = await verify();
    expect(code, stdout).to.equal(0);
    expect(stdout).not.to.contain("no pod runs");
  });

  it("drains, configures and uncordons each node before the next, in the order of its dry run", async () => {
    await pod("a", "n1");
    await pod("b", "n2");
    const words = ["orchestrate", "roll", "n1,n2", "--output", "json"];
    const stages = (text: string): string[] =>
      text
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line) as { type: string; stage?: string; item?: string; outcome?: string })
        .filter(({ type }) => type === "action.finished")
        .map(({ stage, item, outcome }) => `${item} ${stage} ${outcome}`);
    const planned = await project.kcore(...words, "--dry-run");
    expect(planned.code, planned.stdout).to.equal(0);
    const order = ["n1 drain", "n1 back", "n2 drain", "n2 back"];
    expect(stages(planned.stdout)).to.deep.equal(order.map((stage) => `${stage} would-change`));
    expect(await isCordoned("n1")).to.equal(false);
    const run = await project.kcore(...words);
    expect(run.code, run.stderr).to.equal(0);
    expect(stages(run.stdout)).to.deep.equal(order.map((stage) => `${stage} changed`));
    expect(readFileSync(join(project.path, "log"), "utf8")).to.equal("n1\nn2\n");
    for (const name of names) expect(await isCordoned(name)).to.equal(false);
    expect((await kube().get("/api/v1/namespaces/default/pods")).items).to.deep.equal([]);
  });

  it("reports that a node stays cordoned after a stop during its drain, and continues in the next run", async () => {
    await pod("stuck", "n1", { finalizers: ["example.com/hold"] });
    const { child, ended } = project.start(["orchestrate", "hold", "n1", "--output", "plain"]);
    const stuck = "/api/v1/namespaces/default/pods/stuck";
    while ((await kube().get(stuck)).metadata.deletionTimestamp === undefined) await sleep(50);
    // The first signal waits for the running steps; the second aborts them.
    let shown = "";
    child.stderr?.on("data", (text: string) => (shown += text));
    child.kill("SIGINT");
    while (!shown.includes("A second signal aborts it")) await sleep(20);
    child.kill("SIGINT");
    const { code, stdout } = await ended;
    expect(code, stdout).to.equal(130);
    expect(stdout).to.contain("n1 stays cordoned: its drain was stopped with these pods left: default/stuck");
    expect(await isCordoned("n1")).to.equal(true);
    await kube().patch(stuck, { metadata: { finalizers: null } });
    const again = await project.kcore("orchestrate", "hold", "n1", "--output", "plain");
    expect(again.code, again.stderr).to.equal(0);
  });

  it("S-7: shows and records no value of a Secret in any form", async () => {
    for (const password of ["first-secret-value", "other-secret-value"]) {
      writeFileSync(join(project.path, "password"), password, { mode: 0o600 });
      const words = ["orchestrate", "secrets", "--set", `password=file:${project.path}/password`];
      for (const more of [["--dry-run"], []]) {
        const { code, stdout, stderr } = await project.kcore(...words, ...more);
        expect(code, stderr).to.equal(0);
        const all = `${stdout}${stderr}${records()}`;
        expect(all).not.to.contain(password).and.not.to.contain(Buffer.from(password).toString("base64"));
        expect(all).not.to.contain("first-secret-value");
      }
    }
    expect(records()).to.contain("data.password: *** → ***");
    const { data } = await kube().get("/api/v1/namespaces/default/secrets/keys");
    expect(Buffer.from(data["password"] ?? "", "base64").toString()).to.equal("other-secret-value");
  });
});
