import { once } from "node:events";
import { createServer } from "node:http";
import { writeFile } from "node:fs/promises";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { expect } from "chai";
import { kubernetesNode } from "#actions/kubernetes-node.ts";
import { kubernetesObject } from "#actions/kubernetes-object.ts";
import type { KcoreError, Problem } from "#errors/problem.ts";
import { actionContext } from "#support/action-context.ts";
import { KubeStandIn, type KubeRequest, type PreparedAnswer } from "#support/kube-stand-in.ts";
import { rejectionOf } from "#support/rejection.ts";
import { makeTempDir } from "#support/temp-dir.ts";

/** Faults that no API server of one version has by itself: proxies, other versions, broken connections. */
describe("the Kubernetes client with a faulty server or proxy", () => {
  let server: KubeStandIn;
  beforeEach(async () => (server = await KubeStandIn.start()));
  afterEach(() => server.stop());

  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n1" } };
  const run = (args: object, given = server.kubeconfig(), context = actionContext()) => {
    const kubeconfig = given.startsWith("/") ? given : { content: given };
    return kubernetesNode.run(kubernetesNode.args.parse({ kubeconfig, name: "n1", ...args }), context);
  };
  /** Applies the ConfigMap m. */
  const apply = () => {
    const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" } };
    const given = kubernetesObject.args.parse({ kubeconfig: { content: server.kubeconfig() }, manifest });
    return kubernetesObject.run(given, actionContext());
  };
  const resources = [{ name: "configmaps", kind: "ConfigMap", namespaced: true }];
  const ownerReferences = [{ kind: "ReplicaSet", name: "r", controller: true }];
  const podOf = (name: string) => ({ metadata: { name, namespace: "web", uid: name, ownerReferences } });
  const problemOf = async (outputs: PreparedAnswer): Promise<Problem | undefined> => {
    server.answer = () => outputs;
    return (await rejectionOf(run({ cordoned: true }))).problems[0];
  };

  it("sends credentials, a base path, and the length of a body, also for DELETE", async () => {
    server.answer = ({ method }) => (method === "GET" && server.asked.length > 2 ? notFound : { body: node });
    await run({ absent: true }, server.kubeconfig({ path: "/k8s/clusters/c1" }));
    const [get, ...others] = server.asked as [KubeRequest, ...KubeRequest[]];
    const remove = others.find(({ method }) => method === "DELETE") as KubeRequest;
    expect(get).to.include({ method: "GET", path: "/k8s/clusters/c1/api/v1/nodes/n1" });
    expect(get.headers).to.include({ authorization: "Bearer stand-in-token", "user-agent": "kcore" });
    expect(remove.headers["content-length"]).to.equal(String(remove.body.length));
    expect(JSON.parse(remove.body)).to.deep.include({ propagationPolicy: "Background" });
  });

  const notFound: PreparedAnswer = { status: 404, body: { kind: "Status", code: 404, message: "not found" } };

  it("reports a proxy's message", async () => {
    expect(await problemOf({ status: 502, body: "<html>Bad Gateway</html>" })).to.deep.equal({
      code: "KUBERNETES_REFUSED",
      message: `${server.url} did not get nodes n1`,
      detail: "<html>Bad Gateway</html>",
    });
    expect(await problemOf({ status: 503, body: "" })).to.include({ detail: "HTTP 503" });
  });

  it("treats an answer that is no JSON, or is cut off, as no answer", async () => {
    expect(await problemOf({ body: "welcome" })).to.include({ code: "KUBERNETES_UNREACHABLE" });
    const cut = await problemOf((response) => {
      response.writeHead(200, { "content-length": 1000 });
      response.write('{"kind":', () => response.destroy());
    });
    expect(cut).to.include({ code: "KUBERNETES_UNREACHABLE" });
    expect(cut?.message).to.include("aborted");
  });

  it("follows no redirect", async () => {
    const led = await problemOf((response) => response.writeHead(302, { location: "https://192.0.2.1/" }).end());
    expect(led).to.include({ code: "KUBERNETES_REFUSED" });
    expect(server.asked).to.have.length(1);
  });

  it("sends nothing to a server whose certificate has another name", async () => {
    const other = await KubeStandIn.start("DNS:elsewhere.example");
    try {
      const { problems } = await rejectionOf(run({ cordoned: true }, other.kubeconfig()));
      expect(problems[0]).to.include({ code: "KUBERNETES_UNTRUSTED" });
      expect(other.asked).to.deep.equal([]);
    } finally {
      await other.stop();
    }
  });

  it("refuses names that would form another path", () => {
    const kubeconfig = { content: server.kubeconfig() };
    for (const name of [".", "..", "a/b", "a%2f"]) {
      expect(kubernetesNode.args.safeParse({ kubeconfig, name, absent: true }).success, name).to.equal(false);
      for (const manifest of [
        { apiVersion: "v1", kind: "ConfigMap", metadata: { name } },
        { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m", namespace: name } },
        { apiVersion: name, kind: "ConfigMap", metadata: { name: "m" } },
      ]) {
        const given = { kubeconfig, manifest, absent: true };
        // A group's version has a slash.
        if (manifest.apiVersion !== "a/b") expect(kubernetesObject.args.safeParse(given).success).to.equal(false);
      }
      const given = { kubeconfig, namespace: name, file: "m.yaml" };
      expect(kubernetesObject.args.safeParse(given).success, name).to.equal(false);
    }
  });

  it("limits the size of an answer and of a list, and reads no further", async () => {
    let sent = 0;
    const pad = "x".repeat(1 << 20);
    const pod = { metadata: { name: "p", annotations: { pad } } };
    server.answer = ({ path }) => {
      if (!path.startsWith("/api/v1/pods")) return { body: node };
      sent += 1;
      return { body: { items: Array.from({ length: 6 }, () => pod), metadata: { continue: "more" } } };
    };
    const { problems } = await rejectionOf(run({ drained: true }));
    expect(problems[0]?.message).to.include("a list of more than 100 pages or 32 MiB");
    expect(sent).to.equal(6);
    const large = await problemOf({ body: { ...node, pad: pad.repeat(9) } });
    expect(large).to.include({ code: "KUBERNETES_OVERFLOW" });
    expect(large?.message).to.include("an answer of more than 8 MiB");
  });

  it("rejects answers of a wrong shape, and a list without an end", async () => {
    for (const body of [
      "null",
      "7",
      "[]",
      '"node"',
      { kind: "Node" },
      { ...node, metadata: null },
      { ...node, metadata: { name: "n1", labels: ["a"] } },
      { ...node, spec: { taints: {} } },
      { ...node, status: { conditions: "Ready" } },
    ])
      expect(await problemOf({ body }), JSON.stringify(body)).to.include({ code: "KUBERNETES_UNREACHABLE" });
    const pods = async (body: unknown): Promise<Problem | undefined> => {
      server.answer = ({ path }) => ({ body: path.startsWith("/api/v1/pods") ? body : node });
      return (await rejectionOf(run({ drained: true }))).problems[0];
    };
    for (const body of [
      { items: {} },
      { items: [null] },
      { items: [{ metadata: { name: "p" }, spec: { volumes: 1 } }] },
    ])
      expect(await pods(body), JSON.stringify(body)).to.include({ code: "KUBERNETES_UNREACHABLE" });
    const endless = await pods({ items: [], metadata: { continue: "more" } });
    expect(endless).to.include({ code: "KUBERNETES_OVERFLOW" });
    expect(endless?.message).to.include("a list of more than 100 pages");
    const crowded = await pods(`{"items":[${"{},".repeat(1_000_000)}{}]}`);
    expect(crowded?.message).to.include("Too big: expected array to have <=250 items");
    server.answer = () => ({ body: { resources: [{ name: 1 }] } });
    const { problems } = await rejectionOf(apply());
    expect(problems[0]).to.include({ code: "KUBERNETES_UNREACHABLE" });
  });

  it("limits messages and values of a server in its own output", async () => {
    const flood = "x".repeat(4 << 20);
    const causes = Array.from({ length: 5000 }, () => ({
      reason: "FieldManagerConflict",
      message: flood.slice(0, 900),
      field: flood.slice(0, 900),
    }));
    const pods = Array.from({ length: 20_000 }, (_, i) => ({
      metadata: { name: `pod-${i}`, namespace: "x".repeat(200) },
    }));
    const answers: readonly PreparedAnswer[] = [
      { status: 500, body: { code: 500, message: flood } },
      { status: 409, body: { code: 409, message: flood, details: { causes } } },
      { body: { ...node, metadata: { name: "n1", labels: { [flood]: 1 } } } },
      { body: { ...node, metadata: { name: flood } } },
      { body: { ...node, status: { conditions: [{ type: "Ready", status: "False", message: flood }] } } },
      { body: { ...node, metadata: { name: "n1", annotations: { a: flood } } } },
    ];
    const said: string[] = [];
    const requestAndCollect = async (answer: KubeStandIn["answer"], args: object): Promise<void> => {
      server.answer = answer;
      const context = actionContext();
      const result: unknown = await run(args, server.kubeconfig(), context).catch((error: unknown) => error);
      said.push(JSON.stringify([context.notes, (result as Partial<KcoreError>).problems]));
    };
    for (const answer of answers)
      await requestAndCollect(() => answer, { ready: true, readyTimeout: "1s", annotations: { a: "b" } });
    const withPods =
      (items: unknown) =>
      ({ path }: KubeRequest) => ({ body: path.startsWith("/api/v1/pods") ? { items } : node });
    await requestAndCollect(withPods(pods), { drained: true });
    for (const text of said) expect(text.length, text.slice(0, 200)).to.be.below(64 << 10);
  });

  it("evicts a pod that came between listing and cordoning", async () => {
    let pods: string[] = [];
    server.answer = ({ method, path }) => {
      if (path === "/api/v1") return { body: { resources: [] } };
      if (path.startsWith("/api/v1/pods")) return { body: { items: pods.map(podOf) } };
      if (method === "PATCH") pods = ["late"];
      if (method === "POST") pods = [];
      return { body: node };
    };
    const context = actionContext();
    await run({ drained: true }, server.kubeconfig(), context);
    expect(context.notes).to.include("evicts from n1: web/late");
  });

  it("gives up an eviction at once that the server refuses for good", async () => {
    server.answer = ({ method, path }) => {
      if (path === "/api/v1") return { body: { resources: [] } };
      if (path.startsWith("/api/v1/pods")) return { body: { items: [podOf("a")] } };
      if (method !== "POST") return { body: { ...node, spec: { unschedulable: true } } };
      return { status: 422, body: { code: 422, message: "gracePeriodSeconds: must not be negative" } };
    };
    const { problems } = await rejectionOf(run({ drained: true, drainTimeout: "3s" }));
    expect(problems[0]).to.include({ code: "KUBERNETES_REFUSED", detail: "gracePeriodSeconds: must not be negative" });
  });

  it("plans a stage's taints against the node's present version", async () => {
    let version = 1;
    server.answer = ({ method, body }) => {
      const { metadata = {} } = (method === "PATCH" ? JSON.parse(body) : {}) as {
        metadata?: { resourceVersion?: string };
      };
      if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== String(version))
        return { status: 409, body: { code: 409, message: "the object has been modified" } };
      return { body: { ...node, metadata: { name: "n1", resourceVersion: String(version) } } };
    };
    const context = actionContext({ dryRun: true, runId: "taints" });
    const plan = (args: object) =>
      kubernetesNode.plan(
        kubernetesNode.args.parse({ kubeconfig: { content: server.kubeconfig() }, name: "n1", ...args }),
        context,
      );
    await plan({ taints: { "a:NoSchedule": "" } });
    // The kubelet renews its lease.
    version++;
    expect(await plan({ taints: { "a:NoSchedule": "", "b:NoSchedule": "" } })).to.include({ changed: true });
    expect(context.notes.at(-1)).to.equal('would change n1: taint b:NoSchedule: none → ""');
    expect(await plan({ absent: true })).to.include({ changed: true });
    expect(await plan({ absent: true })).to.include({ changed: false });
    expect(await plan({ ready: true })).to.equal("unknown");
  });

  it("names every manager that owns a field, with its fields", async () => {
    const cause = (manager: string, field: string) => ({
      reason: "FieldManagerConflict",
      message: `conflict with "${manager}" using apps/v1`,
      field,
    });
    const causes = [
      cause("helm", ".spec.replicas"),
      cause("hpa", ".spec.replicas"),
      cause("helm", ".metadata.labels.a"),
    ];
    server.answer = ({ method, path }) => {
      if (path === "/api/v1") return { body: { resources } };
      return method === "GET"
        ? notFound
        : { status: 409, body: { code: 409, message: "conflicts", details: { causes } } };
    };
    const { problems } = await rejectionOf(apply());
    expect(problems[0]).to.include({
      message: "configmaps default/m has fields that “helm” and “hpa” set otherwise",
      detail: "helm: .spec.replicas\nhelm: .metadata.labels.a\nhpa: .spec.replicas",
    });
  });

  it("keeps waiting while a proxy reports the server as unavailable", async () => {
    const ready = { ...node, status: { conditions: [{ type: "Ready", status: "True" }] } };
    const answers: PreparedAnswer[] = [
      { body: node },
      { status: 503, body: "no endpoints" },
      { body: ready },
      { body: ready },
    ];
    server.answer = () => answers.shift();
    const context = actionContext();
    expect(await run({ ready: true }, server.kubeconfig(), context)).to.deep.include({ changed: false });
    expect(context.notes).to.deep.equal([`waiting: ${server.url} did not get nodes n1: no endpoints`]);
  });

  it("ends when it is stopped, even while a credentials program hangs", async () => {
    const folder = await makeTempDir("endless");
    try {
      const path = join(folder.path, "config");
      const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "sleep", args: ["5"] };
      await writeFile(path, server.kubeconfig().replace('{"token":"stand-in-token"}', JSON.stringify({ exec })));
      const signal = AbortSignal.timeout(200);
      const stopped: unknown = await run({ cordoned: true }, path, actionContext({ signal })).catch((e: unknown) => e);
      expect(stopped).to.equal(signal.reason);
    } finally {
      await folder.remove();
    }
  });

  it("uses the proxy that the kubeconfig names", async () => {
    const asked: string[] = [];
    const proxy = createServer();
    proxy.on("connect", ({ url = "" }, socket: Duplex) => {
      asked.push(url);
      const onward = connect(Number(url.split(":")[1]), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        onward.pipe(socket).pipe(onward);
      });
      for (const end of [onward, socket]) end.on("error", () => undefined);
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const folder = await makeTempDir("proxy");
    try {
      server.answer = () => ({ body: node });
      const { port } = proxy.address() as AddressInfo;
      const proxyUrl = `"server":"${server.url}","proxy-url":"http://127.0.0.1:${port}"`;
      const path = join(folder.path, "config");
      await writeFile(path, server.kubeconfig().replace(`"server":"${server.url}"`, proxyUrl));
      await run({ cordoned: false }, path);
      expect(asked[0]).to.equal(server.url.replace("https://", ""));
    } finally {
      proxy.close();
      await folder.remove();
    }
  });

  it("does not report another writer's change as its own", async () => {
    const versions = ["1", "2", "2", "2"];
    const map = () => {
      const resourceVersion = versions.shift() ?? "";
      const metadata = { name: "m", resourceVersion };
      return { apiVersion: "v1", kind: "ConfigMap", metadata, data: { at: resourceVersion } };
    };
    server.answer = ({ path }) => ({ body: path === "/api/v1" ? { resources } : map() });
    expect(await apply()).to.include({ changed: false });
    expect(versions).to.deep.equal([]);
  });

  it("reads all pages of a list, evicts by the server's API version, and waits when the server is busy", async () => {
    const evictions = { name: "pods/eviction", kind: "Eviction", namespaced: true };
    let pods = ["a", "b"];
    let isBusy = true;
    server.answer = ({ method, path, body }) => {
      const url = new URL(path, server.url);
      if (url.pathname === "/api/v1/nodes/n1") return { body: { ...node, spec: { unschedulable: true } } };
      if (url.pathname === "/api/v1")
        return { body: { resources: [{ ...evictions, group: "policy", version: "v1" }] } };
      if (url.pathname === "/api/v1/pods") {
        const second = url.searchParams.get("continue") === "next";
        const items = pods.slice(second ? 1 : 0, second ? undefined : 1).map(podOf);
        return { body: { items, metadata: second || pods.length < 2 ? {} : { continue: "next" } } };
      }
      if (method !== "POST") return undefined;
      expect(JSON.parse(body)).to.deep.include({ apiVersion: "policy/v1", kind: "Eviction" });
      if (isBusy) {
        isBusy = false;
        return { status: 429, body: { code: 429, message: "too many requests" } };
      }
      pods = pods.filter((name) => !path.includes(`/pods/${name}/`));
      return { status: 201, body: {} };
    };
    const context = actionContext();
    await run({ drained: true }, server.kubeconfig(), context);
    expect(context.notes).to.deep.equal([
      "evicts from n1: web/a, web/b",
      "waiting: web/a: too many requests; web/b to end",
      "waiting: web/a to end",
      "n1 is drained",
    ]);
  });
});
