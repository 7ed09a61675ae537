import { createHash } from "node:crypto";
import { cpSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { parse, stringify } from "yaml";
import type { Lab, LabNode } from "#lab/lab.ts";
import { contradictions, filesBelow, on, openBastion, stepsThat, type Bastion } from "#support/deploy.ts";
import { exampleFolder, stepsNotInOrder } from "#support/examples.ts";
import { ownLab } from "#support/own-lab.ts";

interface Roster {
  readonly defaults: { readonly vars: { readonly k3s: object } };
  readonly groups: object;
  readonly nodes: Readonly<Record<string, object>>;
}

/** A stand-in for k3s, which cannot be downloaded here, with only the parts that the example needs. */
const standIn = readFileSync(join(import.meta.dirname, "../fixtures/k3s/stand-in.sh"));
const sha256 = createHash("sha256").update(standIn).digest("hex");

/** The roles of the lab's machines in the cluster. */
const parts: Readonly<Record<string, object>> = {
  s1: { groups: ["servers"], roles: ["server", "first"] },
  s2: { groups: ["servers"], roles: ["server"] },
  a1: { groups: ["workers"] },
  a2: { groups: ["workers"] },
};

describe("examples/k3s, with a stand-in for k3s", () => {
  let lab: Lab;
  let bastion: Bastion;
  let server: Server;
  let nodes: Readonly<Record<string, LabNode>>;
  let url: string;

  before(async () => {
    lab = await ownLab({ packages: ["open-iscsi", "nfs-common", "socat"] });
    const made = await lab.up(
      Object.keys(parts).map((name) => ({ name, kind: "debian", disks: name === "a1" ? ["256M"] : [] })),
    );
    nodes = Object.fromEntries(made.map((node) => [node.name, node]));
    // The stand-in needs a TLS server for a shell.
    await Promise.all(made.map((node) => on(node, "apt-get -q update && apt-get -q -y install socat")));
    // A container has no file with the built-in modules of its host's kernel.
    const builtIn =
      "mkdir -p /lib/modules/$(uname -r) && echo kernel/fs/overlayfs/overlay.ko >/lib/modules/$(uname -r)/modules.builtin";
    await Promise.all(made.map((node) => on(node, builtIn)));
    const gateway = made[0]?.address.replace(/\d+$/, "1");
    server = createServer((_, response) => response.end(standIn)).listen(0, gateway);
    await new Promise((resolve) => server.once("listening", resolve));
    url = `http://${gateway}:${(server.address() as AddressInfo).port}/k3s`;
    bastion = await openBastion({});
    cpSync(exampleFolder("k3s"), bastion.project, { recursive: true });
    await bastion.does("pack", "add", join(import.meta.dirname, "../../packs/k3s"));
    await keepRoster(["s1", "s2", "a1"]);
  });
  after(async () => {
    server?.close();
    await bastion?.remove();
    await lab?.down();
  });

  /** The example's roster with the lab's machines, and the figures of the lab. */
  async function keepRoster(names: readonly string[], k3s: object = { sha256 }): Promise<void> {
    const own = parse(readFileSync(join(exampleFolder("k3s"), "roster/k3s.yaml"), "utf8")) as Roster;
    const there = parse(await lab.roster()) as Roster;
    const vars = {
      ...own.defaults.vars,
      k3s: { ...own.defaults.vars.k3s, url, ...k3s },
      // A container has its host's kernel, whose settings cannot be changed, for the most part.
      machine: { cpus: 1, memory: "512M", space: "1G" },
      kernel: { modules: ["overlay"], settings: { "net.ipv4.ip_forward": 1 } },
    };
    const roster = {
      defaults: { ...there.defaults, ...own.defaults, vars },
      groups: own.groups,
      nodes: Object.fromEntries(
        names.map((name) => [name, { ...there.nodes[name], roles: undefined, ...parts[name] }]),
      ),
    };
    await bastion.write({ "roster/k3s.yaml": stringify(roster) });
  }

  const cluster = (...more: readonly string[]): Promise<string> =>
    bastion.does("orchestrate", "k3s", "--output", "plain", ...more);

  it("makes a cluster of bare machines, and changes nothing the second time", async () => {
    await cluster("--dry-run");
    const plan = await bastion.events();
    await cluster();
    expect(contradictions(plan, await bastion.events())).to.deep.equal([]);
    expect(await members()).to.deep.equal(["a1 Ready", "s1 Ready", "s2 Ready"]);
    expect(await cluster()).to.contain("changed=0");
    expect(stepsNotInOrder(await bastion.events())).to.deep.equal([]);
  });

  it("tells the milestones of the guide on each machine, in their order", async () => {
    const guide = ["packages_installed", "k3s_installed", "cluster_joined", "node_labeled", "health_check_ready"];
    for (const name of ["s1", "s2", "a1"]) {
      const log = await on(nodes[name] as LabNode, "cat /var/lib/kcore/onboarding.log");
      expect([...new Set(log.match(new RegExp(guide.join("|"), "g")))], name).to.deep.equal(guide);
    }
  });

  it("finds a machine that is not Ready, and verifies a healthy cluster without a change", async () => {
    expect(await bastion.does("orchestrate", "k3s/verify", "--output", "plain")).to.contain("changed=0");
    await on(nodes["a1"] as LabNode, "systemctl stop k3s-agent");
    const { code } = await bastion.kcore(["orchestrate", "k3s/verify", "--only", "cluster", "--output", "plain"]);
    expect(code).to.equal(1);
    expect(JSON.stringify(await bastion.events())).to.contain("notReady");
    await on(nodes["a1"] as LabNode, "systemctl start k3s-agent");
  });

  it("brings the kubeconfig to the bastion, and records neither it nor the token", async () => {
    const token = await on(nodes["s1"] as LabNode, "cat /var/lib/rancher/k3s/server/token");
    expect(token).to.contain("::server:");
    expect(await on(nodes["a1"] as LabNode, "cat /etc/rancher/k3s/token")).to.equal(token);
    const kubeconfig = readFileSync(join(bastion.project, "kubeconfig"), "utf8");
    expect(kubeconfig).to.contain(`https://${nodes["s1"]?.address}:6443`);
    const [, key = ""] = /client-key-data: ([\w+/=]+)/.exec(kubeconfig) ?? [];
    expect(key.length).to.be.greaterThan(100);
    const records = (await filesBelow(bastion.project)).filter((path) => !path.endsWith("/kubeconfig"));
    expect(records.length).to.be.greaterThan(5);
    for (const record of records)
      for (const secret of [key, token]) expect(readFileSync(record, "latin1"), record).not.to.contain(secret);
  });

  it("adds a machine that the roster has more", async () => {
    await keepRoster(["s1", "s2", "a1", "a2"]);
    await cluster();
    const events = await bastion.events();
    expect(stepsThat("changed", events, "s2")).to.deep.equal(["neighbours[a2]", "firewall of a server"]);
    expect(stepsThat("changed", events, "a1")).to.deep.equal(["neighbours[a2]", "firewall of an agent"]);
    expect(await members()).to.deep.equal(["a1 Ready", "a2 Ready", "s1 Ready", "s2 Ready"]);
    await cluster();
    expect(stepsNotInOrder(await bastion.events())).to.deep.equal([]);
  });

  it("removes a machine, and leaves nothing of k3s on it", async () => {
    await bastion.does("orchestrate", "k3s/remove", "a2", "--output", "plain");
    expect(await members()).to.deep.equal(["a1 Ready", "s1 Ready", "s2 Ready"]);
    const left = "ls -d /etc/rancher /var/lib/rancher /usr/local/bin/k3s /etc/systemd/system/k3s* 2>/dev/null || :";
    expect(await on(nodes["a2"] as LabNode, left)).to.equal("");
    await bastion.does("orchestrate", "k3s/remove", "a2", "--output", "plain");
    expect(stepsNotInOrder(await bastion.events())).to.deep.equal([]);
    await bastion.does("orchestrate", "k3s/remove", "a1", "--set", "unreachable=true", "--output", "plain");
    expect(await members()).to.deep.equal(["s1 Ready", "s2 Ready"]);
  });

  it("takes k3s from all machines", async () => {
    await keepRoster(["s1", "s2", "a1"]);
    await bastion.does("orchestrate", "k3s/uninstall", "--yes", "--output", "plain");
    for (const name of ["s1", "s2", "a1"])
      expect(await on(nodes[name] as LabNode, "ls -d /etc/rancher /usr/local/bin/k3s 2>/dev/null || :")).to.equal("");
  });

  /** The members as the first server lists them: name and status. */
  async function members(): Promise<readonly string[]> {
    const lines = (await on(nodes["s1"] as LabNode, "k3s kubectl get nodes")).split("\n");
    return lines.map((line) => line.split(/ +/).slice(0, 2).join(" "));
  }
});
