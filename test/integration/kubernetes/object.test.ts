import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { kubernetesObject } from "#actions/kubernetes-object.ts";
import { secret } from "#engine/step/secret.ts";
import { actionContext } from "#support/action-context.ts";
import { describeWithKube } from "#support/kube-server.ts";
import { rejectionOf } from "#support/rejection.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const maps = "/api/v1/namespaces/default/configmaps";

describeWithKube("kubernetes.object against a real API server", (kube) => {
  let folder: TempDir;
  before(async () => (folder = await makeTempDir("objects")));
  after(() => folder?.remove());

  let runs = 0;
  const ask = async (how: "run" | "plan", args: object, runId = `r${++runs}`) => {
    const context = actionContext({ project: folder.path, dryRun: how === "plan", runId });
    const given = kubernetesObject.args.parse({ kubeconfig: { content: kube().kubeconfig() }, ...args });
    const result = await kubernetesObject[how](given, context);
    return { changed: result === "unknown" ? result : result.changed, notes: context.notes };
  };
  const run = (args: object) => ask("run", args);
  const plan = (args: object) => ask("plan", args);
  const mapOf = (name: string, data: object, more: object = {}) => ({
    manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data },
    ...more,
  });
  const dataOf = async (name: string): Promise<unknown> => (await kube().get(`${maps}/${name}`)).data;
  const versionOf = async (name: string): Promise<unknown> =>
    (await kube().get(`${maps}/${name}`)).metadata.resourceVersion;

  it("creates an object as its dry run reports, and finds it in order the second time", async () => {
    const wanted = mapOf("fresh", { a: "1" });
    const would = { changed: true, notes: ["would create ConfigMap default/fresh"] };
    expect(await plan(wanted)).to.deep.equal(would);
    expect(await plan(wanted), "a dry run makes nothing").to.deep.equal(would);
    expect(await run(wanted)).to.deep.equal({ changed: true, notes: ["creates ConfigMap default/fresh"] });
    const version = await versionOf("fresh");
    for (const how of ["run", "plan"] as const)
      expect(await ask(how, wanted)).to.deep.equal({ changed: false, notes: [] });
    expect(await versionOf("fresh"), "nothing was written").to.equal(version);
  });

  it("reverts drift, and removes fields that it no longer names", async () => {
    await run(mapOf("drift", { a: "1", b: "2" }));
    await kube().patch(`${maps}/drift?fieldManager=kcore`, { data: { a: "9", c: "3" } });
    const wanted = mapOf("drift", { a: "1" });
    const lines = ['  data.a: "9" → "1"', '  data.b: "2" → none'];
    const planned = await plan({ ...wanted, force: true });
    expect(planned).to.deep.equal({ changed: true, notes: ["would change ConfigMap default/drift", ...lines] });
    await run({ ...wanted, force: true });
    expect(await dataOf("drift")).to.deep.equal({ a: "1", c: "3" });
    expect((await run(wanted)).changed).to.equal(false);
  });

  it("names the other manager of a field, in a dry run too, and takes the field over only with force", async () => {
    await run(mapOf("shared", { a: "1" }));
    await kube().patch(`${maps}/shared?fieldManager=somebody`, { data: { a: "2" } });
    const wanted = mapOf("shared", { a: "1" });
    for (const how of ["run", "plan"] as const) {
      const { problems } = await rejectionOf(ask(how, wanted));
      expect(problems[0]).to.deep.include({
        code: "KUBERNETES_CONFLICT",
        message: "configmaps default/shared has fields that “somebody” set otherwise",
        detail: "somebody: .data.a",
      });
    }
    expect(await dataOf("shared")).to.deep.equal({ a: "2" });
    expect((await run({ ...wanted, force: true })).changed).to.equal(true);
    expect(await dataOf("shared")).to.deep.equal({ a: "1" });
    expect((await run(wanted)).changed, "it is kcore's now").to.equal(false);
  });

  it("takes ownership of an equal object once", async () => {
    await kube().create(maps, { metadata: { name: "found" }, data: { a: "1" } });
    expect(await plan(mapOf("found", { a: "1" }))).to.deep.equal({
      changed: true,
      notes: ["would change ConfigMap default/found", "  the fields that are kcore's"],
    });
    await run(mapOf("found", { a: "1" }));
    expect((await run(mapOf("found", { a: "1" }))).changed).to.equal(false);
  });

  it("deletes an object and waits for its end, as its dry run reports", async () => {
    await run(mapOf("leaving", {}));
    const absent = mapOf("leaving", {}, { absent: true });
    expect(await plan(absent), "and leaves it there").to.deep.equal({
      changed: true,
      notes: ["would delete ConfigMap default/leaving"],
    });
    expect(await dataOf("leaving")).to.equal(undefined);
    expect((await run(absent)).changed).to.equal(true);
    expect(await rejected(kube().get(`${maps}/leaving`))).to.match(/404/);
    for (const how of ["run", "plan"] as const)
      expect(await ask(how, absent)).to.deep.equal({ changed: false, notes: [] });
  });

  it("names the finalizers that hold a deleted object", async () => {
    await kube().create(maps, { metadata: { name: "held", finalizers: ["example.com/hold"] } });
    const absent = mapOf("held", {}, { absent: true, wait: { timeout: "1500ms" } });
    const { problems } = await rejectionOf(run(absent));
    expect(problems[0]).to.include({
      code: "KUBERNETES_NOT_READY",
      message: "after 1.5 s ConfigMap default/held is still there, held by its finalizers example.com/hold",
    });
    expect((await plan(absent)).changed, "when it goes cannot be told").to.equal("unknown");
    const leaving = run({ ...absent, wait: { timeout: "120s" } });
    await kube().patch(`${maps}/held`, { metadata: { finalizers: null } });
    expect((await leaving).changed, "somebody else deleted it").to.equal(false);
  });

  it("changes a Secret without showing its value", async () => {
    const wanted = (password: string) => ({
      manifest: {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "s" },
        stringData: { password: secret(password) },
      },
    });
    await run(wanted("the-first-password"));
    const notes = ["would change Secret default/s", "  data.password: *** → ***"];
    expect(await plan(wanted("the-second-password"))).to.deep.equal({ changed: true, notes });
    await run(wanted("the-second-password"));
    const { data } = await kube().get("/api/v1/namespaces/default/secrets/s");
    expect(Buffer.from(data["password"] ?? "", "base64").toString()).to.equal("the-second-password");
    expect((await run(wanted("the-second-password"))).changed).to.equal(false);
  });

  it("applies several objects of a file or template, including a namespace and a kind of the same stage", async () => {
    const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: widgets, singular: widget, kind: Widget }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
`;
    const widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: { name: w }\nspec: { size: {{size}} }\n";
    const text = `apiVersion: v1\nkind: Namespace\nmetadata: { name: team }\n---\n${definition}---\n${widget}`;
    mkdirSync(join(folder.path, "templates"));
    writeFileSync(join(folder.path, "templates/team.yaml.hbs"), text);
    writeFileSync(join(folder.path, "team.yaml"), text.replace("{{size}}", "3"));
    const [file, template] = [{ file: "team.yaml" }, { template: "team.yaml.hbs", vars: { size: 3 } }].map((from) => ({
      ...from,
      namespace: "team",
    })) as [object, object];
    expect(await plan(file)).to.deep.equal({
      changed: true,
      notes: [
        "would create Namespace team",
        "would create CustomResourceDefinition widgets.example.com",
        "would create Widget w (after CustomResourceDefinition widgets.example.com)",
      ],
    });
    expect(await rejected(kube().get("/api/v1/namespaces/team"))).to.match(/404/);
    expect((await run(file)).changed).to.equal(true);
    expect((await kube().get("/apis/example.com/v1/namespaces/team/widgets/w")).spec).to.deep.equal({ size: 3 });
    expect(await run(template)).to.deep.equal({ changed: false, notes: [] });
    const bigger = { template: "team.yaml.hbs", vars: { size: 4 }, namespace: "team" };
    expect((await plan(bigger)).notes).to.deep.equal(["would change Widget team/w", "  spec.size: 3 → 4"]);
  });

  it("finds in a dry run what earlier stages would make, and waits for it in a run", async () => {
    const names = { plural: "gears", singular: "gear", kind: "Gear" };
    const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
    const versions = [{ name: "v1", served: true, storage: true, schema }];
    const definition = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "gears.example.org" },
      spec: { group: "example.org", scope: "Namespaced", names, versions },
    };
    const stages = [
      [{ apiVersion: "v1", kind: "Namespace", metadata: { name: "later" } }, definition],
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m", namespace: "later" } },
      { apiVersion: "example.org/v1", kind: "Gear", metadata: { name: "g", namespace: "later" } },
    ];
    const notesOf = async (how: "run" | "plan"): Promise<string[]> => {
      const notes: string[] = [];
      for (const manifest of stages) notes.push(...(await ask(how, { manifest }, how)).notes);
      return notes.filter((text) => !text.startsWith("waiting: "));
    };
    expect(await notesOf("plan")).to.deep.equal([
      "would create Namespace later",
      "would create CustomResourceDefinition gears.example.org",
      "would create ConfigMap later/m (after Namespace later)",
      "would create Gear later/g (after CustomResourceDefinition gears.example.org)",
    ]);
    expect(await notesOf("run")).to.deep.equal([
      "creates Namespace later",
      "creates CustomResourceDefinition gears.example.org",
      "creates ConfigMap later/m",
      "creates Gear later/g",
    ]);
  });

  it("gives later stages the place of each object, in a dry run too", async () => {
    const manifest = [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "own" } },
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } },
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "b", namespace: "own" } },
    ];
    const given = kubernetesObject.args.parse({ kubeconfig: { content: kube().kubeconfig() }, manifest });
    const objects = [
      { apiVersion: "v1", kind: "Namespace", name: "own" },
      { apiVersion: "v1", kind: "ConfigMap", name: "a", namespace: "default" },
      { apiVersion: "v1", kind: "ConfigMap", name: "b", namespace: "own" },
    ];
    for (const how of ["plan", "run", "run"] as const) {
      const result = await kubernetesObject[how](given, actionContext());
      expect(result).to.have.nested.property("outputs.objects").that.deep.equals(objects);
    }
  });

  it("waits for a condition or a field up to a time limit, showing the controller's message", async () => {
    const labels = { app: "web" };
    const template = { metadata: { labels }, spec: { containers: [{ name: "web", image: "web:1" }] } };
    const manifest = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web" },
      spec: { selector: { matchLabels: labels }, template },
    };
    const deployment = "/apis/apps/v1/namespaces/default/deployments/web";
    const wait = { condition: "Available", timeout: "120s" };
    await run({ manifest });
    expect((await plan({ manifest, wait })).changed).to.equal("unknown");
    const tooShort = await rejectionOf(run({ manifest, wait: { ...wait, timeout: "1s" } }));
    expect(tooShort.problems[0]?.message).to.equal(
      "after 1 s Deployment default/web: it has no condition Available yet",
    );
    const waiting = run({ manifest, wait });
    const conditions = [{ type: "Available", status: "True" }];
    await kube().patch(`${deployment}/status`, { status: { observedGeneration: 1, conditions, replicas: 1 } });
    expect((await waiting).changed).to.equal(false);
    expect((await plan({ manifest, wait })).changed).to.equal(false);
    const field = { field: "status.replicas", value: 1 };
    expect((await run({ manifest, wait: field })).changed).to.equal(false);
  });

  it("reports an unknown kind, and a manifest that the server refuses", async () => {
    const kind = await rejectionOf(
      run({ manifest: { apiVersion: "v1", kind: "ConfigMapp", metadata: { name: "x" } } }),
    );
    expect(kind.problems[0]).to.include({ code: "KUBERNETES_KIND_UNKNOWN", hint: "did you mean “ConfigMap”?" });
    const bad = await rejectionOf(plan(mapOf("UPPER", {})));
    expect(bad.problems[0]?.code).to.equal("KUBERNETES_REFUSED");
    expect(bad.problems[0]?.detail).to.include("UPPER");
  });
});

async function rejected(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "",
    (error: Error) => error.message,
  );
}
