import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import { parse, stringify } from "yaml";
import type { Lab, LabNode } from "#lab/lab.ts";
import { on, openBastion, type Bastion } from "#support/deploy.ts";
import { exampleFolder, stepsNotInOrder } from "#support/examples.ts";
import { kubePrograms, withoutKube, type KubeObject } from "#support/kube-server.ts";
import { ownLab } from "#support/own-lab.ts";

interface Roster {
  readonly defaults: object;
  readonly nodes: Readonly<Record<string, object>>;
}

const image = "docker.io/kcore/pause:1";
const standIn = readFileSync(join(import.meta.dirname, "../fixtures/metalk8s/kubelet.pl"), "utf8");
const version = "v1.20.2";
/** Without a real API server there are no masters, and no requests to Kubernetes. */
const missing = withoutKube();
const masters = missing === undefined ? ["master"] : [];

/** The lab's machines, by the example's groups. */
const parts: Readonly<Record<string, object>> = {
  n1: {
    groups: ["bootstrap"],
    roles: ["bootstrap", "etcd", "infra", ...masters],
    vars: { podSubnet: "10.233.1.0/24", volumes: [{ name: "prometheus", size: "400M" }] },
  },
  n2: { groups: ["master"], roles: ["etcd"], vars: { podSubnet: "10.233.2.0/24" } },
  n3: { groups: ["worker"], vars: { podSubnet: "10.233.3.0/24", volumes: [{ name: "data", size: "400M" }] } },
};

const sha256 = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex");

/** An image as docker save writes it, with one file. */
function imageArchive(folder: string): Buffer {
  const at = (name: string): string => join(folder, name);
  mkdirSync(at("rootfs"), { recursive: true });
  writeFileSync(at("rootfs/pause"), "nothing runs\n");
  execFileSync("tar", ["-C", at("rootfs"), "-cf", at("layer.tar"), "pause"]);
  const rootfs = { type: "layers", diff_ids: [`sha256:${sha256(readFileSync(at("layer.tar")))}`] };
  writeFileSync(at("config.json"), JSON.stringify({ architecture: "amd64", os: "linux", config: {}, rootfs }));
  const entry = { Config: "config.json", RepoTags: [image], Layers: ["layer.tar"] };
  writeFileSync(at("manifest.json"), JSON.stringify([entry]));
  execFileSync("tar", ["-C", folder, "-cf", at("image.tar"), "manifest.json", "config.json", "layer.tar"]);
  return readFileSync(at("image.tar"));
}

describe("examples/metalk8s, with a stand-in for the kubelet", () => {
  let lab: Lab;
  let bastion: Bastion;
  let server: Server;
  let nodes: readonly LabNode[];
  /** The downloads of the bootstrap machine, by name. */
  const files: Record<string, Buffer | string> = { kubelet: standIn };

  before(async () => {
    const packages = ["containerd", "containernetworking-plugins", "docker-registry", "etcd-client", "etcd-server"];
    lab = await ownLab({ packages: [...packages, "haproxy", "nginx", "runc"] });
    nodes = await lab.up(Object.keys(parts).map((name) => ({ name, kind: "debian", disks: ["1G"] })));
    bastion = await openBastion({});
    cpSync(exampleFolder("metalk8s"), bastion.project, { recursive: true });
    execFileSync("openssl", ["genrsa", "-out", join(bastion.project, "sa.key"), "2048"], { stdio: "pipe" });
    writeFileSync(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    files["pause.tar"] = imageArchive(join(bastion.project, "image"));
    if (missing === undefined) files["kube-apiserver"] = readFileSync(kubePrograms.apiserver);
    else process.stderr.write(`skipped, the stages that ask an API server: ${missing}\n`);
    server = createServer(({ url = "" }, response) => {
      const file = files[url.slice(1)];
      response.writeHead(file === undefined ? 404 : 200).end(file);
    }).listen(0, inNet(1));
    await new Promise((resolve) => server.once("listening", resolve));
  });
  after(async () => {
    server?.close();
    await bastion?.remove();
    await lab?.down();
  });

  const node = (name: string): LabNode => {
    const found = nodes.find((each) => each.name === name);
    if (!found) throw new Error(`no node ${name}`);
    return found;
  };
  /** An address of the lab's network; 1 is this machine's. */
  const inNet = (host: number): string => node("n1").address.replace(/\d+$/, String(host));

  /** The machines of the roster so far, with the lab's own fields. */
  async function keepRoster(names: readonly string[], release = version): Promise<void> {
    const there = parse(await lab.roster()) as Roster;
    const { port } = server.address() as { port: number };
    const url = `http://${inNet(1)}:${port}`;
    const [, upstream = ""] = /(http:\S+)/.exec(await on(node("n1"), "cat /etc/apt/sources.list")) ?? [];
    const hashes = Object.entries(files).map(([name, bytes]) => [name, sha256(bytes)] as const);
    const vars = {
      needs: { space: "1G" },
      release: { version: release, url, sha256: Object.fromEntries(hashes) },
      controlPlane: masters.map(() => "kube-apiserver"),
      images: [{ name: image, file: "pause.tar", url: `${url}/pause.tar`, sha256: sha256(files["pause.tar"] ?? "") }],
      pauseImage: image,
      packages: {
        upstream,
        repositories: [
          { name: "metalk8s", uris: `http://${node("n1").address}:8080/packages/`, suites: "./", trusted: true },
        ],
      },
      // The nodes have no way out of their network, and no LVM without a kernel of their own.
      apiAddress: inNet(250),
      volumesOn: "partitions",
    };
    const entries = names.map((name) => [
      name,
      { ...there.nodes[name], roles: undefined, labels: undefined, ...parts[name] },
    ]);
    const roster = { defaults: { ...there.defaults, vars }, nodes: Object.fromEntries(entries) as object };
    await bastion.write({ "roster/cluster.yaml": stringify(roster) });
  }

  const args = (what: string, more: readonly string[]): readonly string[] => [
    "orchestrate",
    what,
    "--passphrase-file",
    "passphrase",
    "--output",
    "plain",
    ...more,
  ];
  const run = (what: string, ...more: readonly string[]): Promise<string> => bastion.does(...args(what, more));
  /** Runs it twice: the second run must change nothing. */
  async function runTwice(what: string, ...more: readonly string[]): Promise<void> {
    await run(what, "--dry-run", ...more);
    await run(what, ...more);
    expect(await run(what, ...more)).to.contain("changed=0");
    expect(stepsNotInOrder(await bastion.events())).to.deep.equal([]);
  }

  const etcdctl = (words: string): Promise<string> => {
    const files = "--cacert=/etc/etcd/pki/ca.crt --cert=/etc/etcd/pki/member.crt --key=/etc/etcd/pki/member.key";
    return on(node("n1"), `ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 ${files} ${words}`);
  };
  /** A request to the API server as one of its admins, without kcore. */
  const kube = async (verb: string, path: string, body?: object): Promise<KubeObject> => {
    const pki = "/etc/kubernetes/pki/apiserver-kubelet";
    const data = body
      ? `-H 'Content-Type: application/${verb === "PATCH" ? "merge-patch+" : ""}json' -d '${JSON.stringify(body)}'`
      : "";
    const asked = `curl -sSf -X ${verb} --cacert /etc/kubernetes/pki/ca.crt --cert ${pki}.crt --key ${pki}.key ${data}`;
    return JSON.parse(await on(node("n1"), `${asked} 'https://127.0.0.1:6443${path}'`)) as KubeObject;
  };
  /** The notes of actions in the newest run. */
  const notes = async (): Promise<string> =>
    (await bastion.events()).flatMap((event) => (event.type === "action.note" ? [event.text] : [])).join("\n");
  const needsKube = function (this: Mocha.Context): void {
    if (missing !== undefined) this.skip();
  };

  it("makes the bootstrap machine, and changes nothing the second time", async () => {
    await keepRoster(["n1"]);
    await runTwice("bootstrap");
    expect(await etcdctl("endpoint health 2>&1")).to.contain("is healthy");
    expect(await on(node("n1"), "findmnt -no FSTYPE /srv/volumes/prometheus")).to.equal("xfs");
  });

  /** The grant that allows the wipe of the refused disk. */
  let grant = "";
  it("refuses a machine whose disk holds data, and leaves it unchanged", async () => {
    await keepRoster(["n1", "n2", "n3"]);
    const disk = "/dev/disk/by-id/lab-n3-disk0";
    await on(node("n3"), `mkfs.ext4 -q -L photos ${disk}`);
    const { code, stdout } = await bastion.kcore(args("expand", ["n3"]));
    expect([code, /DISK_HAS_DATA/.test(stdout)], stdout).to.deep.equal([1, true]);
    expect(await on(node("n3"), `blkid -p -o value -s LABEL ${disk}`)).to.equal("photos");
    grant = /--grant (\S+)/.exec(stdout)?.[1] ?? "";
  });

  it("adds a member of etcd, then a worker, and changes nothing the second time", async () => {
    await runTwice("expand", "n2");
    await runTwice("expand", "n3", "--grant", grant);
    expect(await etcdctl("endpoint health --cluster 2>&1 | grep -c 'is healthy'")).to.equal("2");
    for (const each of nodes) {
      const pki = "/etc/kubernetes/pki";
      const asked = `openssl verify -x509_strict -CAfile ${pki}/ca.crt ${pki}/kubelet.crt && openssl x509 -in ${pki}/kubelet.crt -noout -subject`;
      expect(await on(each, asked)).to.contain(`O = system:nodes, CN = system:node:${each.name}`);
      expect(await on(each, "curl -fsS http://127.0.0.1:10248/healthz")).to.equal("ok");
    }
    expect(await on(node("n3"), "findmnt -no FSTYPE /srv/volumes/data && getent hosts n2 && ip route")).to.contain(
      `10.233.2.0/24 via ${node("n2").address}`,
    );
  });

  it("sets the machines' labels, taints and volumes in Kubernetes", async function () {
    needsKube.call(this);
    const { items } = await kube("GET", "/api/v1/nodes");
    const taintsOf = ({ spec }: KubeObject): readonly string[] =>
      (spec.taints ?? []).map(({ key }) => key).filter((key) => key.startsWith("node-role"));
    const roles = items.map((item) => [
      item.metadata.name,
      Object.keys(item.metadata.labels ?? {}).flatMap((key) => /^node-role\.kubernetes\.io\/(.*)/.exec(key)?.[1] ?? []),
      taintsOf(item).map((key) => key.replace(/.*\//, "")),
      item.spec.unschedulable ?? false,
    ]);
    expect(roles).to.deep.equal([
      ["n1", ["bootstrap", "etcd", "infra", "master"], ["bootstrap", "infra"], false],
      ["n2", ["etcd", "master"], ["master", "etcd"], false],
      ["n3", ["node"], [], false],
    ]);
    const volumes = await kube("GET", "/api/v1/persistentvolumes");
    expect(volumes.items.map(({ metadata }) => metadata.name)).to.deep.equal(["n1-prometheus", "n3-data"]);
  });

  it("names what another program changed in Kubernetes, and corrects it", async function () {
    needsKube.call(this);
    const labels = { "node-role.kubernetes.io/node": null };
    await kube("PATCH", "/api/v1/nodes/n3", { metadata: { labels }, spec: { unschedulable: true } });
    await run("expand", "n3", "--dry-run");
    expect(await notes()).to.match(/would change n3: .*node-role\.kubernetes\.io\/node/);
    await run("expand", "n3");
    const { metadata, spec } = await kube("GET", "/api/v1/nodes/n3");
    expect([metadata.labels?.["node-role.kubernetes.io/node"], spec.unschedulable]).to.deep.equal(["", undefined]);
  });

  it("upgrades one machine after the other, each drained before and uncordoned after", async function () {
    needsKube.call(this);
    const metadata = { name: "default" };
    await kube("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata });
    await kube("POST", "/api/v1/namespaces/default/pods", {
      metadata: {
        name: "web",
        ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "u", controller: true }],
      },
      spec: {
        nodeName: "n3",
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 0,
        containers: [{ name: "c", image }],
      },
    });
    files["kubelet"] = standIn.replace(version, "v1.20.3");
    await keepRoster(["n1", "n2", "n3"], "v1.20.3");
    await run("expand", "*");
    expect(await notes()).to.contain("evicts from n3: default/web");
    const { items } = await kube("GET", "/api/v1/namespaces/default/pods");
    expect(items).to.deep.equal([]);
    for (const name of ["n1", "n2", "n3"]) {
      const { spec, status } = (await kube("GET", `/api/v1/nodes/${name}`)) as KubeObject & {
        readonly status: { readonly nodeInfo: { readonly kubeletVersion: string } };
      };
      expect([status.nodeInfo.kubeletVersion, spec.unschedulable]).to.deep.equal(["v1.20.3", undefined]);
    }
    expect(await run("expand", "*")).to.contain("changed=0");
  });
});
