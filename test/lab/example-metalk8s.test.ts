import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import { parse, stringify } from "yaml";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { on, openBastion, stepsThat, type Bastion } from "#support/deploy.ts";
import { exampleFolder, moved, statesOf } from "#support/examples.ts";
import { freePort } from "#support/ports.ts";

interface Roster {
  readonly defaults: object;
  readonly nodes: Readonly<Record<string, object>>;
}

const image = "docker.io/kcore/pause:1";

/** An image as docker save writes it, with one file. */
function imageArchive(folder: string): Buffer {
  const at = (name: string): string => join(folder, name);
  mkdirSync(at("rootfs"), { recursive: true });
  writeFileSync(at("rootfs/pause"), "nothing runs\n");
  execFileSync("tar", ["-C", at("rootfs"), "-cf", at("layer.tar"), "pause"]);
  const layer = createHash("sha256").update(readFileSync(at("layer.tar"))).digest("hex");
  const config = {
    architecture: "amd64",
    os: "linux",
    config: { Entrypoint: ["/pause"] },
    rootfs: { type: "layers", diff_ids: [`sha256:${layer}`] },
  };
  writeFileSync(at("config.json"), JSON.stringify(config));
  writeFileSync(
    at("manifest.json"),
    JSON.stringify([{ Config: "config.json", RepoTags: [image], Layers: ["layer.tar"] }]),
  );
  execFileSync("tar", ["-C", folder, "-cf", at("image.tar"), "manifest.json", "config.json", "layer.tar"]);
  return readFileSync(at("image.tar"));
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

describe("examples/metalk8s, with a stand-in for the kubelet", function () {
  this.timeout(600_000);
  let lab: Lab;
  let bastion: Bastion;
  let server: Server;
  let nodes: readonly LabNode[];
  let defaults: object;

  before(async () => {
    const packages = ["containerd", "containernetworking-plugins", "docker-registry", "etcd-client", "etcd-server"];
    lab = await openLab({ name: "metalk8s", packages: [...packages, "haproxy", "nginx", "runc"] });
    await lab.down();
    nodes = await lab.up(["n1", "n2", "n3"].map((name) => ({ name, kind: "debian", disks: ["1G"] })));
    bastion = await openBastion({});
    cpSync(exampleFolder("metalk8s"), bastion.project, { recursive: true });
    execFileSync("openssl", ["genrsa", "-out", join(bastion.project, "sa.key"), "2048"], { stdio: "pipe" });
    writeFileSync(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    const files: Readonly<Record<string, Buffer>> = {
      kubelet: readFileSync(join(import.meta.dirname, "../fixtures/metalk8s/kubelet.pl")),
      "pause.tar": imageArchive(join(bastion.project, "image")),
    };
    const gateway = addressOf("n1").replace(/\d+$/, "1");
    const port = await freePort(gateway);
    server = createServer(({ url = "" }, response) => {
      const file = files[url.slice(1)];
      response.writeHead(file ? 200 : 404).end(file);
    }).listen(port, gateway);
    const url = `http://${gateway}:${port}`;
    const [, upstream = ""] = /(http:\S+)/.exec(await on(node("n1"), "cat /etc/apt/sources.list")) ?? [];
    defaults = {
      vars: {
        release: { version: "v1.20.2", url, sha256: { kubelet: sha256(files["kubelet"] as Buffer) } },
        images: [{ name: image, file: "pause.tar", url: `${url}/pause.tar`, sha256: sha256(files["pause.tar"] as Buffer) }],
        pauseImage: image,
        packages: { upstream, suites: "./", trusted: true },
        controlPlane: [],
        // The nodes have no way out of their network; and LVM needs a kernel of one's own.
        apiAddress: addressOf("n1").replace(/\d+$/, "250"),
        volumesOn: "partitions",
      },
    };
    await keepRoster(["n1"]);
  });
  after(async () => {
    server?.close();
    await bastion?.remove();
    await lab.down();
  });

  const node = (name: string): LabNode => {
    const found = nodes.find((each) => each.name === name);
    if (!found) throw new Error(`no node ${name}`);
    return found;
  };
  const addressOf = (name: string): string => node(name).address;

  /** Machines by the example's groups; without an API server nobody is a master. */
  const parts: Readonly<Record<string, object>> = {
    n1: {
      groups: ["bootstrap"],
      roles: ["bootstrap", "etcd", "infra"],
      vars: { podSubnet: "10.233.1.0/24", volumes: [{ name: "prometheus", size: "400M" }] },
    },
    n2: { groups: ["master"], roles: ["etcd"], vars: { podSubnet: "10.233.2.0/24" } },
    n3: { groups: ["worker"], vars: { podSubnet: "10.233.3.0/24", volumes: [{ name: "data", size: "400M" }] } },
  };

  /** The machines that stand in the roster so far. */
  async function keepRoster(names: readonly string[]): Promise<void> {
    const there = parse(await lab.roster()) as Roster;
    const entries = names.map((name) => [name, { ...there.nodes[name], roles: undefined, labels: undefined, ...parts[name] }]);
    const roster = { defaults: { ...there.defaults, ...defaults }, nodes: Object.fromEntries(entries) as object };
    await bastion.write({ "roster/cluster.yaml": stringify(roster) });
  }

  const run = (what: string, ...more: readonly string[]): Promise<string> =>
    bastion.does("orchestrate", what, "--passphrase-file", "passphrase", "--output", "plain", ...more);

  it("is in order as files", async () => {
    expect(await bastion.does("check")).to.contain("in order");
  });

  it("makes the bootstrap machine of a bare one, and changes nothing the second time", async () => {
    await run("bootstrap", "--dry-run");
    await run("bootstrap");
    expect(moved(await (await run("bootstrap"), bastion.events()))).to.deep.equal([]);
  });

  it("needs no command but etcd's own", () => {
    for (const text of statesOf("metalk8s")) expect(text).not.to.match(/command\.run/);
  });
});
