import { execFileSync } from "node:child_process";
import { expect } from "chai";
import { kubernetesNode } from "#actions/kubernetes-node.ts";
import { kubernetesObject } from "#actions/kubernetes-object.ts";
import type { Problem } from "#errors/problem.ts";
import { actionContext } from "#support/action-context.ts";
import { describeWithKube } from "#support/kube-server.ts";
import { rejectionOf } from "#support/rejection.ts";

const roles = "/apis/rbac.authorization.k8s.io/v1";
describeWithKube("access to a real API server", (kube) => {
  before(() => kube().create("/api/v1/nodes", { metadata: { name: "n1" } }));

  const node = async (kubeconfig: string, args: object, context = actionContext()) => {
    const given = kubernetesNode.args.parse({ kubeconfig: { content: kubeconfig }, name: "n1", ...args });
    return kubernetesNode.run(given, context);
  };
  const problemOf = async (work: Promise<unknown>): Promise<Problem | undefined> =>
    (await rejectionOf(work)).problems[0];

  it("reports verb, resource and the missing rule for a user without the right", async () => {
    const nobody = kube().kubeconfig({ user: "nobody" });
    expect(await problemOf(node(nobody, { cordoned: true }))).to.deep.include({
      code: "KUBERNETES_FORBIDDEN",
      message: "the kubeconfig's user may not get nodes n1",
      detail: 'nodes "n1" is forbidden: User "nobody" cannot get resource "nodes" in API group "" at the cluster scope',
      hint: 'its role needs: apiGroups: [""], resources: [nodes], verbs: [get]',
    });
    const rules = [{ apiGroups: [""], resources: ["nodes"], verbs: ["get"] }];
    const subjects = [{ kind: "User", name: "nobody" }];
    await kube().create(`${roles}/clusterroles`, { metadata: { name: "reader" }, rules });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "reader" };
    await kube().create(`${roles}/clusterrolebindings`, { metadata: { name: "reader" }, roleRef, subjects });
    // The authorizer learns of a new role a moment later.
    while ((await problemOf(node(nobody, { cordoned: true })))?.message.includes("get") === true);
    const planned = kubernetesNode.args.parse({ kubeconfig: { content: nobody }, name: "n1", cordoned: true });
    const may = [node(nobody, { cordoned: true }), kubernetesNode.plan(planned, actionContext({ dryRun: true }))];
    for (const work of may)
      expect(await problemOf(work)).to.include({ message: "the kubeconfig's user may not patch nodes n1" });
    const manifest = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" } };
    const given = kubernetesObject.args.parse({ kubeconfig: { content: nobody }, manifest });
    expect(await problemOf(kubernetesObject.run(given, actionContext()))).to.include({
      message: "the kubeconfig's user may not get deployments.apps default/web",
      hint: "its role needs: apiGroups: [apps], resources: [deployments], verbs: [get]",
    });
  });

  it("reports an unknown token without showing it", async () => {
    const problem = await problemOf(node(kube().kubeconfig({ token: "expired-long-ago" }), {}));
    expect(problem).to.include({ code: "KUBERNETES_UNAUTHORIZED" });
    expect(JSON.stringify(problem)).not.to.include("expired-long-ago");
  });

  it("reports a server of another CA as untrusted, and sends it nothing", async () => {
    const problem = await problemOf(node(kube().kubeconfig({ ca: otherCa() }), {}));
    expect(problem?.code).to.equal("KUBERNETES_UNTRUSTED");
    expect(problem?.message).to.include(kube().url);
  });

  it("waits during a drain for a server that goes away, and continues the drain", async () => {
    const containers = [{ name: "c", image: "i" }];
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "u", controller: true }];
    const pods = "/api/v1/namespaces/default/pods";
    const metadata = { name: "p", ownerReferences, finalizers: ["example.com/hold"] };
    await kube().create(pods, { metadata, spec: { nodeName: "n1", containers, terminationGracePeriodSeconds: 0 } });
    let away: Promise<void> | undefined;
    const context = actionContext({
      note: (text: string) => {
        context.notes.push(text);
        if (text.includes("default/p to end")) away ??= kube().pause();
        if (text.includes("does not answer")) away = away?.then(() => comeBack());
      },
    });
    let isBack = false;
    const comeBack = async (): Promise<void> => {
      if (isBack) return;
      isBack = true;
      await kube().resume();
      await kube().patch(`${pods}/p`, { metadata: { finalizers: null } });
    };
    const result = await node(kube().kubeconfig(), { drained: true, drainTimeout: "120s" }, context);
    await away;
    expect(result.changed).to.equal(true);
    expect(context.notes.some((text) => /^waiting: the API server .* does not answer: /.test(text))).to.equal(true);
    expect(context.notes.at(-1)).to.equal("n1 is drained");
  });

  it("reports an unreachable server at once", async () => {
    await kube().pause();
    try {
      const problem = await problemOf(node(kube().kubeconfig(), { cordoned: true }));
      expect(problem).to.include({ code: "KUBERNETES_UNREACHABLE" });
      expect(problem?.message).to.match(/^the API server https:.* does not answer: connect ECONNREFUSED/);
    } finally {
      await kube().resume();
    }
  });
});

/** The certificate of an unrelated CA. */
function otherCa(): string {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null"];
  return execFileSync("openssl", ["req", "-x509", ...key, "-subj", "/CN=other", "-days", "1"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
}
