import { expect } from "chai";
import { kubernetesNode } from "#actions/kubernetes-node.ts";
import { actionContext } from "#support/action-context.ts";
import { describeWithKube } from "#support/kube-server.ts";
import { rejectionOf } from "#support/rejection.ts";

const pods = "/api/v1/namespaces/default/pods";
const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "u", controller: true };
const budgets = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets";

describeWithKube("kubernetes.node against a real API server", (kube) => {
  let count = 0;
  let name = "";
  let run = 0;
  beforeEach(async () => {
    name = `n${++count}`;
    await kube().create("/api/v1/nodes", { metadata: { name, labels: { zone: "a" } } });
  });

  const contextFor = (fields: Partial<Parameters<typeof actionContext>[0]> = {}) =>
    actionContext({ runId: `r${++run}`, ...fields });
  const ask = async (how: "run" | "plan", args: object, context = contextFor({ dryRun: how === "plan" })) => {
    const given = kubernetesNode.args.parse({ kubeconfig: { content: kube().kubeconfig() }, name, ...args });
    const result = await kubernetesNode[how](given, context);
    return { changed: result === "unknown" ? result : result.changed, notes: context.notes };
  };
  const node = () => kube().get(`/api/v1/nodes/${name}`);
  const inOrder = { changed: false, notes: [] };

  const pod = async (podName: string, { spec = {}, ...metadata }: { spec?: object; [field: string]: unknown } = {}) => {
    const containers = [{ name: "c", image: "i" }];
    const body = {
      metadata: { name: podName, labels: { app: name }, ownerReferences: [owner], ...metadata },
      // No kubelet would end the pod.
      spec: { nodeName: name, containers, terminationGracePeriodSeconds: 0, ...spec },
    };
    await kube().create(pods, body);
    const conditions = [{ type: "Ready", status: "True" }];
    await kube().patch(`${pods}/${podName}/status`, { status: { phase: "Running", conditions } });
  };
  const budget = async (allowed: number) => {
    const selector = { matchLabels: { app: name } };
    await kube().create(budgets, { metadata: { name: `pdb-${name}` }, spec: { minAvailable: 1, selector } });
    await allowDisruptions(allowed);
  };
  const allowDisruptions = (disruptionsAllowed: number) =>
    kube().patch(`${budgets}/pdb-${name}/status`, {
      status: { observedGeneration: 1, disruptionsAllowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
    });
  const podNames = async (): Promise<string[]> => {
    const { items } = await kube().get(`${pods}?fieldSelector=spec.nodeName=${name}`);
    return items.map(({ metadata }) => metadata.name);
  };
  const setReady = (status: string) =>
    kube().patch(`/api/v1/nodes/${name}/status`, {
      status: { conditions: [{ type: "Ready", status, reason: "KubeletNotReady", message: "no network" }] },
    });

  it("labels, annotates, taints and cordons as its dry run reports, and finds all in order the second time", async () => {
    await kube().patch(`/api/v1/nodes/${name}`, { spec: { taints: [{ key: "foreign", effect: "NoExecute" }] } });
    const wanted = {
      labels: { zone: "b", rack: "r1" },
      annotations: { "example.com/by": "kcore" },
      taints: { "dedicated:NoSchedule": "storage", "gone:NoExecute": null },
      cordoned: true,
    };
    const what = `${name}: label zone: "a" → "b"; label rack: none → "r1"; annotation example.com/by: none → "kcore"; taint dedicated:NoSchedule: none → "storage"; cordoned`;
    const before = await node();
    expect(await ask("plan", wanted)).to.deep.equal({ changed: true, notes: [`would change ${what}`] });
    expect(await node(), "a dry run changes nothing").to.deep.equal(before);
    expect(await ask("run", wanted)).to.deep.equal({ changed: true, notes: [`changed ${what}`] });
    const { metadata, spec } = await node();
    expect(metadata.labels).to.deep.include({ zone: "b", rack: "r1" });
    // The server's admission adds a taint of its own to a node, cordoned or not.
    expect(spec.taints).to.deep.include({ key: "foreign", effect: "NoExecute" });
    expect(spec.taints).to.deep.include({ key: "dedicated", value: "storage", effect: "NoSchedule" });
    for (const how of ["run", "plan"] as const) expect(await ask(how, wanted)).to.deep.equal(inOrder);
    const back = { labels: { rack: null }, taints: { dedicated: null }, cordoned: false };
    expect((await ask("run", back)).changed).to.equal(true);
    expect((await node()).spec.unschedulable).to.equal(undefined);
    expect(await ask("run", back)).to.deep.equal(inOrder);
  });

  it("keeps taints of concurrent writers", async () => {
    const wanted = Array.from({ length: 8 }, (_, i) => ({ taints: { [`t${i}:NoSchedule`]: "" } }));
    await Promise.all(wanted.map((taints) => ask("run", taints)));
    const keys = (await node()).spec.taints?.map(({ key }) => key);
    expect(keys).to.include.members(wanted.map((_, i) => `t${i}`));
  });

  it("waits in a drain while the disruption budget refuses, names the budget, and continues", async () => {
    await pod(`a-${name}`);
    await pod(`ds-${name}`, { ownerReferences: [{ ...owner, kind: "DaemonSet", name: "ds" }] });
    await budget(0);
    const context = contextFor({
      note: (text: string) => {
        context.notes.push(text);
        if (/needs 1 healthy pods/.test(text)) void allowDisruptions(1);
      },
    });
    const { changed, notes } = await ask("run", { drained: true }, context);
    expect(changed).to.equal(true);
    expect(notes).to.include(`stay on ${name}: default/ds-${name} (of the DaemonSet ds)`);
    expect(notes.filter((text) => text.startsWith("waiting: "))[0]).to.equal(
      `waiting: default/a-${name}: The disruption budget pdb-${name} needs 1 healthy pods and has 1 currently`,
    );
    expect(notes.at(-1)).to.equal(`${name} is drained`);
    expect(await podNames()).to.deep.equal([`ds-${name}`]);
    expect((await node()).spec.unschedulable).to.equal(true);
    const again = await ask("run", { drained: true });
    expect(again.changed).to.equal(false);
  });

  it("reports in a dry run what it would evict and what would wait, and evicts nothing", async () => {
    await pod(`a-${name}`);
    await budget(0);
    const { changed, notes } = await ask("plan", { drained: true });
    expect(changed).to.equal(true);
    expect(notes).to.deep.equal([
      `would change ${name}: cordoned`,
      `would evict from ${name}: default/a-${name}`,
      `default/a-${name} would have to wait: The disruption budget pdb-${name} needs 1 healthy pods and has 1 currently`,
    ]);
    expect(await podNames()).to.deep.equal([`a-${name}`]);
    expect((await node()).spec.unschedulable).to.equal(undefined);
  });

  it("gives up a drain after its time limit, naming each remaining pod with the reason", async () => {
    await pod(`a-${name}`);
    await pod(`slow-${name}`, { labels: {}, spec: { terminationGracePeriodSeconds: 600 } });
    await budget(0);
    const { problems } = await rejectionOf(ask("run", { drained: true, drainTimeout: "2s" }));
    expect(problems[0]).to.include({
      code: "KUBERNETES_DRAIN_TIMEOUT",
      message: `${name} is not drained after 2 s: 2 pods are left`,
    });
    expect(problems[0]?.detail).to.match(
      new RegExp(`^default/a-${name}: .*pdb-${name}.*\ndefault/slow-${name}: is being deleted since .*kubelet`),
    );
    expect(problems[0]?.hint).to.include(`${name} stays cordoned`);
    expect((await node()).spec.unschedulable).to.equal(true);
  });

  it("evicts nothing when a pod may not go, until the options allow it", async () => {
    await pod(`alone-${name}`, { ownerReferences: [] });
    await pod(`dir-${name}`, { spec: { volumes: [{ name: "tmp", emptyDir: {} }] } });
    for (const how of ["run", "plan"] as const) {
      const { problems } = await rejectionOf(ask(how, { drained: true }));
      expect(problems[0]).to.include({ code: "KUBERNETES_DRAIN_REFUSED" });
      expect(problems[0]?.detail).to.include(`default/alone-${name}: no controller`).and.include("emptyDir (tmp)");
      expect(problems[0]?.hint).to.include("force: true").and.include("deleteEmptyDirData: true");
    }
    expect((await node()).spec.unschedulable).to.equal(undefined);
    await ask("run", { drained: true, force: true, deleteEmptyDirData: true });
    expect(await podNames()).to.deep.equal([]);
  });

  it("uncordons the node only when it is Ready", async () => {
    await ask("run", { cordoned: true });
    await setReady("False");
    const back = { ready: true, cordoned: false };
    const late = await rejectionOf(ask("run", { ...back, readyTimeout: "1s" }));
    expect(late.problems[0]).to.include({
      code: "KUBERNETES_NOT_READY",
      message: `after 1 s ${name}: Ready is False (KubeletNotReady: no network)`,
    });
    expect((await node()).spec.unschedulable).to.equal(true);
    expect((await ask("plan", { ready: true })).changed).to.equal("unknown");
    const waiting = ask("run", back);
    await setReady("True");
    expect((await waiting).changed).to.equal(true);
    expect((await node()).spec.unschedulable).to.equal(undefined);
    expect(await ask("run", back)).to.deep.equal(inOrder);
  });

  it("waits for a joining node; otherwise a missing node is an error", async () => {
    name = `late${count}`;
    const missing = await rejectionOf(ask("run", { cordoned: true }));
    expect(missing.problems[0]?.code).to.equal("KUBERNETES_NODE_UNKNOWN");
    expect(await ask("run", { cordoned: true, mayBeMissing: true })).to.deep.equal(inOrder);
    expect((await ask("plan", { ready: true })).changed).to.equal("unknown");
    const joining = ask("run", { ready: true, labels: { role: "x" } });
    await kube().create("/api/v1/nodes", { metadata: { name } });
    await setReady("True");
    expect((await joining).changed).to.equal(true);
  });

  it("finds a node without work where only a DaemonSet's pod runs, or the others have ended", async () => {
    const asked = { hasWork: true };
    await pod(`ds-${name}`, { ownerReferences: [{ ...owner, kind: "DaemonSet", name: "ds" }] });
    await pod(`a-${name}`);
    expect(await ask("plan", asked)).to.deep.equal(inOrder);
    await kube().patch(`${pods}/a-${name}/status`, { status: { phase: "Succeeded" } });
    for (const how of ["run", "plan"] as const)
      expect((await rejectionOf(ask(how, asked))).problems[0]?.code).to.equal("KUBERNETES_NODE_IDLE");
  });

  it("deletes the node's object, after a drain if requested", async () => {
    await pod(`a-${name}`);
    const leave = { drained: true, absent: true };
    expect((await ask("plan", leave)).notes.at(-1)).to.equal(`would delete the node ${name}`);
    expect((await ask("run", leave)).changed).to.equal(true);
    expect(await podNames()).to.deep.equal([]);
    for (const how of ["run", "plan"] as const) expect(await ask(how, leave)).to.deep.equal(inOrder);
  });

  it("continues in a dry run from what earlier stages would leave", async () => {
    const context = contextFor({ dryRun: true });
    await ask("plan", { drained: true, labels: { a: "1" } }, context);
    expect((await ask("plan", { cordoned: false, labels: { a: "1" } }, context)).notes.at(-1)).to.equal(
      `would change ${name}: uncordoned`,
    );
    expect(await ask("plan", { cordoned: false })).to.deep.equal(inOrder);
  });
});
