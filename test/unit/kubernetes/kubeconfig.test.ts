import { chmodSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { knownSecrets, secret } from "#engine/step/secret.ts";
import { kubernetesNode } from "#actions/kubernetes-node.ts";
import { formatProblem, KcoreError } from "#errors/problem.ts";
import { openKubeCluster, readNodeAccess } from "#kubernetes/kubeconfig.ts";
import { rejectionOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const kubeconfig = `apiVersion: v1
kind: Config
current-context: prod
clusters:
  - name: prod
    cluster: { server: "https://192.0.2.1:6443/" }
contexts:
  - name: prod
    context: { cluster: prod, user: admin, namespace: web }
  - name: lost
    context: { cluster: prodd, user: admin }
  - name: nobody
    context: { cluster: prod, user: bob }
users:
  - name: admin
    user: { token: a-secret-token-of-admin }
`;

describe("a kubeconfig", () => {
  const folder = folderOfEachTest("kubeconfig");

  const open = (text: string, context?: string) => {
    writeFileSync(folder("config.yaml"), text);
    return openKubeCluster({ kubeconfig: "config.yaml", context, project: folder(), home: folder() });
  };
  const wrong = async (text: string, context?: string): Promise<string[]> => {
    const { problems } = await rejectionOf(open(text, context));
    for (const { conceal } of problems) expect(conceal, "its lines may hold secrets").to.equal(true);
    return problems.map(formatProblem);
  };

  it("gives server, namespace and credentials", async () => {
    const cluster = await open(kubeconfig);
    expect(cluster).to.deep.include({ server: "https://192.0.2.1:6443", namespace: "web" });
    const { headers } = await cluster.requestOptions();
    expect(headers).to.deep.include({ Authorization: "Bearer a-secret-token-of-admin" });
    expect(knownSecrets()).to.include("a-secret-token-of-admin");
  });

  it("can be a text, a secret text, or a path below the home", async () => {
    const place = { project: folder(), home: folder() };
    writeFileSync(folder("config.yaml"), kubeconfig);
    for (const given of [{ content: kubeconfig }, { content: secret(kubeconfig) }, secret(kubeconfig), "~/config.yaml"])
      expect((await openKubeCluster({ ...place, kubeconfig: given })).namespace).to.equal("web");
  });

  it("as a text, which can come from a node, must name neither programs nor files of the bastion", async () => {
    for (const user of [
      "{ exec: { command: /bin/true } }",
      "{ auth-provider: { name: gcp, config: { cmd-path: /bin/true } } }",
      "{ client-certificate: /etc/hostname, client-key: /etc/hostname }",
      "{ tokenFile: /etc/hostname }",
      "{ token-file: /etc/hostname }",
    ]) {
      const text = kubeconfig.replace("{ token: a-secret-token-of-admin }", user);
      for (const given of [{ content: text }, secret(text)]) {
        const { problems } = await rejectionOf(openKubeCluster({ kubeconfig: given, project: folder(), home: "/" }));
        expect(problems.map(formatProblem)[0], user).to.match(
          /^the given kubeconfig:16:\d+ {2}the given kubeconfig has “[\w-]+”, which only one in a file may have {2}\[KUBECONFIG_INVALID\]$/,
        );
      }
    }
    const text = kubeconfig.replace('6443/" }', '6443/", certificate-authority: /etc/hostname }');
    expect(
      (await rejectionOf(openKubeCluster({ kubeconfig: secret(text), project: "/", home: "/" }))).message,
    ).to.include("“certificate-authority”");
  });

  it("is a text or a path by its type, not by its content", async () => {
    writeFileSync(folder("config.yaml"), kubeconfig);
    const place = { project: folder(), home: folder() };
    for (const given of [secret("config.yaml"), { content: "config.yaml" }, { content: folder("config.yaml") }]) {
      const { problems } = await rejectionOf(openKubeCluster({ ...place, kubeconfig: given }));
      expect(problems[0], JSON.stringify(given)).to.deep.include({ code: "KUBECONFIG_INVALID", conceal: true });
    }
    const flow = JSON.stringify({
      "current-context": "a",
      clusters: [{ name: "a", cluster: { server: "https://192.0.2.9" } }],
      contexts: [{ name: "a", context: { cluster: "a" } }],
    });
    expect((await openKubeCluster({ ...place, kubeconfig: { content: flow } })).server).to.equal("https://192.0.2.9");
    for (const text of [kubeconfig, ` ${flow}`, flow])
      expect(kubernetesNode.args.safeParse({ kubeconfig: text, name: "n1" }).success, text.slice(0, 20)).to.equal(
        false,
      );
  });

  it("of a node gives only CA and credentials", () => {
    const ca = Buffer.from("-----BEGIN CERTIFICATE-----").toString("base64");
    const kubeconfigOf = (
      user: string,
      cluster = `certificate-authority-data: ${ca}, server: "https://127.0.0.1:6443"`,
    ) => `
current-context: default
clusters: [{ name: default, cluster: { ${cluster} } }]
contexts: [{ name: default, context: { cluster: default, user: default } }]
users: [{ name: default, user: { ${user} } }]
`;
    expect(
      readNodeAccess(kubeconfigOf("client-certificate-data: aa, client-key-data: bb, as: root, extra: x")),
    ).to.deep.equal({
      ca,
      credentials: { "client-certificate-data": "aa", "client-key-data": "bb" },
    });
    expect(readNodeAccess(secret(kubeconfigOf("token: a-token-of-k3s"))).credentials).to.deep.equal({
      token: "a-token-of-k3s",
    });
    for (const text of [
      kubeconfigOf("token: t, exec: { command: /bin/true }"),
      kubeconfigOf("token: t, auth-provider: { name: gcp }"),
      kubeconfigOf("client-certificate: /etc/hostname, client-key: /etc/hostname"),
      kubeconfigOf("tokenFile: /etc/shadow"),
      kubeconfigOf("token: t", `certificate-authority: /etc/shadow, server: "https://192.0.2.1"`),
      kubeconfigOf(
        "token: t",
        `certificate-authority-data: ${ca}, server: "https://192.0.2.1", proxy-url: "http://192.0.2.6"`,
      ),
      kubeconfigOf("token: t", `server: "https://192.0.2.1", insecure-skip-tls-verify: true`),
      kubeconfigOf("as: nobody"),
    ])
      expect(() => readNodeAccess(text), text).to.throw(KcoreError);
  });

  it("is refused at the place of a missing context, cluster, user or file", async () => {
    expect(await wrong(kubeconfig, "prodd")).to.deep.equal([
      "config.yaml:3:18  config.yaml has no context “prodd”  [KUBECONFIG_INVALID]",
    ]);
    expect(await wrong(kubeconfig, "lost")).to.deep.equal([
      "config.yaml:11:25  the context “lost” names the cluster “prodd”, which is not there  [KUBECONFIG_INVALID]",
    ]);
    expect(await wrong(kubeconfig, "nobody")).to.deep.equal([
      "config.yaml:13:37  the context “nobody” names the user “bob”, which is not there  [KUBECONFIG_INVALID]",
    ]);
    expect(await wrong(kubeconfig.replace("token: a-", "client-key: admin.key, token: a-"))).to.deep.equal([
      "config.yaml:16:25  the file admin.key is not there  [KUBECONFIG_INVALID]",
    ]);
    const { problems } = await rejectionOf(openKubeCluster({ kubeconfig: "none", project: folder(), home: "/" }));
    expect(problems[0]).to.include({ code: "FILE_UNREADABLE", message: "cannot read none: it does not exist" });
  });

  it("is refused at the place of a malformed value", async () => {
    expect((await wrong(kubeconfig.replace("contexts:", "contexts: ]")))[0]).to.match(/^config.yaml:7:11 /);
    expect((await wrong(kubeconfig.replace('"https://192.0.2.1:6443/"', "192.0.2.1")))[0]).to.match(
      /^config.yaml:6:24 /,
    );
    const data = kubeconfig.replace('6443/" }', '6443/", certificate-authority-data: Zm9v }');
    expect((await wrong(data))[0]).to.match(/^config.yaml:6:79 .*is no PEM in base64/);
    expect(await wrong(kubeconfig.replace("current-context: prod\n", ""))).to.deep.equal([
      "config.yaml:1:1  config.yaml has no current-context  [KUBECONFIG_INVALID]",
    ]);
  });

  it("passes the trust check before it is read, because it can name programs", async () => {
    writeFileSync(folder("config.yaml"), kubeconfig);
    const seen: string[] = [];
    const check = (name: string): void => void seen.push(name);
    await openKubeCluster({ kubeconfig: "config.yaml", project: folder(), home: "/", check });
    expect(seen).to.deep.equal(["config.yaml"]);
  });

  it("reads a token from a file beside it", async () => {
    writeFileSync(folder("token"), "from-a-file");
    const cluster = await open(kubeconfig.replace("token: a-secret-token-of-admin", "tokenFile: token"));
    expect((await cluster.requestOptions()).headers).to.deep.include({ Authorization: "Bearer from-a-file" });
    expect(knownSecrets()).to.include("from-a-file");
  });

  it("reads no files of other users", async () => {
    const cluster = await open(`${kubeconfig}  - name: bob\n    user: { token-file: /not/there }\n`);
    expect((await cluster.requestOptions()).headers).to.include({ Authorization: "Bearer a-secret-token-of-admin" });
  });

  it("has its password masked also as basic authentication sends it", async () => {
    const cluster = await open(
      kubeconfig.replace("token: a-secret-token-of-admin", "username: ops, password: opensesame"),
    );
    await cluster.requestOptions();
    expect(knownSecrets()).to.include("opensesame").and.include(Buffer.from("ops:opensesame").toString("base64"));
  });

  describe("with a credential plugin", () => {
    const withProgram = (command: string): string =>
      kubeconfig.replace(
        "{ token: a-secret-token-of-admin }",
        `{ exec: { apiVersion: client.authentication.k8s.io/v1, command: ${command}, installHint: apt-get install it } }`,
      );
    const script = (text: string): string => {
      const path = folder("give");
      writeFileSync(path, `#!/bin/sh\n${text}\n`);
      chmodSync(path, 0o755);
      return path;
    };

    it("runs the plugin with the wanted API version", async () => {
      const say = `printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' "$(printf %s "$KUBERNETES_EXEC_INFO" | cksum | cut -c1-4)x"`;
      const cluster = await open(withProgram(script(say)));
      const { headers } = await cluster.requestOptions();
      const { Authorization = "" } = headers as Record<string, string>;
      expect(Authorization).to.match(/^Bearer \d{4}x$/);
      expect(knownSecrets()).to.include(Authorization.replace("Bearer ", ""));
    });

    it("finds a relative path from the kubeconfig's folder, as kubectl does", async () => {
      script(`printf '{"status":{"token":"beside-it"}}'`);
      const cluster = await open(withProgram("./give"));
      expect((await cluster.requestOptions()).headers).to.deep.include({ Authorization: "Bearer beside-it" });
    });

    it("fails for a missing plugin at its place, with the kubeconfig's installHint", async () => {
      const cluster = await open(withProgram("no-such-program-here"));
      const { problems } = await rejectionOf(cluster.requestOptions());
      expect(problems[0]).to.include({ code: "KUBECONFIG_PLUGIN_MISSING", hint: "apt-get install it" });
      expect(problems[0]?.at).to.include({ line: 16 });
    });

    it("fails with the stderr of a plugin that failed", async () => {
      const cluster = await open(withProgram(script("echo log in first >&2; exit 1")));
      const { problems } = await rejectionOf(cluster.requestOptions());
      expect(problems[0]).to.include({ code: "KUBECONFIG_PLUGIN_FAILED", detail: "log in first" });
    });
  });
});
