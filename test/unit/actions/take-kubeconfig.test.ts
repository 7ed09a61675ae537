import { readFileSync, statSync } from "node:fs";
import { expect } from "chai";
import { kubernetesTakeKubeconfig } from "#actions/kubernetes-take-kubeconfig.ts";
import { secret } from "#engine/step/secret.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { openKubeCluster } from "#kubernetes/kubeconfig.ts";
import { actionContext } from "#support/action-context.ts";
import { rejectionOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const ca = Buffer.from("-----BEGIN CERTIFICATE-----\n").toString("base64");
const kubeconfigWith = (user: string) => `apiVersion: v1
kind: Config
current-context: default
preferences: {}
clusters: [{ name: default, cluster: { server: "https://127.0.0.1:6443", certificate-authority-data: ${ca} } }]
contexts: [{ name: default, context: { cluster: default, user: default, namespace: kube-system } }]
users: [{ name: default, user: { ${user} } }]
`;

describe("kubernetes.takeKubeconfig", () => {
  const folder = folderOfEachTest("take");

  const act = (kind: "run" | "plan", content: unknown) => {
    const context = actionContext({ project: folder(), dryRun: kind === "plan" });
    const given = { file: "kept/k3s.conf", server: "https://192.0.2.31:6443", cluster: "k3s", content };
    return kubernetesTakeKubeconfig[kind](kubernetesTakeKubeconfig.args.parse(given), context);
  };
  const outputs = { kubeconfig: "kept/k3s.conf" };

  it("writes a 0600 kubeconfig of the given server and the node's CA and credentials", async () => {
    const content = secret(kubeconfigWith("token: a-token-of-k3s, as: root"));
    expect(await act("plan", content)).to.deep.equal({ changed: true, outputs });
    expect(await act("run", content)).to.deep.equal({ changed: true, outputs });
    for (const kind of ["plan", "run"] as const)
      expect(await act(kind, content)).to.deep.equal({ changed: false, outputs });
    const file = folder("kept/k3s.conf");
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(parsePlainYaml(readFileSync(file, "utf8"))).to.deep.equal({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "k3s", cluster: { server: "https://192.0.2.31:6443", "certificate-authority-data": ca } }],
      users: [{ name: "kubernetes-admin", user: { token: "a-token-of-k3s" } }],
      contexts: [{ name: "kubernetes-admin@k3s", context: { cluster: "k3s", user: "kubernetes-admin" } }],
      "current-context": "kubernetes-admin@k3s",
    });
    const cluster = await openKubeCluster({ kubeconfig: "kept/k3s.conf", project: folder(), home: "/" });
    expect(cluster).to.include({ server: "https://192.0.2.31:6443", namespace: "default" });
  });

  it("refuses a kubeconfig that names a program or a file, and writes nothing", async () => {
    for (const user of ["token: t, exec: { command: /bin/sh }", "client-certificate: /etc/hostname, client-key: /x"]) {
      const { problems } = await rejectionOf(act("run", kubeconfigWith(user)));
      expect(problems[0], user).to.include({ code: "KUBECONFIG_INVALID" });
      expect(() => statSync(folder("kept"))).to.throw("ENOENT");
    }
  });
});
