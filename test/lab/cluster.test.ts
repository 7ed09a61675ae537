import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { askOnce } from "#api/ask.ts";
import type { ApiClient } from "#api/client.ts";
import type { NodeView } from "#api/schemas.ts";
import { parseHostKey } from "#engine/transport/host-key.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { loadContext } from "#pki/contexts.ts";
import { codec } from "#support/cluster.ts";
import {
  filesBelow,
  kcoreProgram,
  on,
  openBastion,
  outputOf,
  stepsThat,
  type Bastion,
  type KcoreEnd,
} from "#support/deploy.ts";
import { privateKeysIn, secretsOf, type Secret } from "#support/private-keys.ts";
import { openShell } from "#support/terminal.ts";
import { ownLab } from "#support/own-lab.ts";

const certs = "/etc/kcore/certs";
const os = ["--os-disk", "/dev/sda", "--os-installed"];
const phrase = ["--passphrase-file", "passphrase"];

/** The walkthrough of the add-node page on real nodes, command by command, and then the faults that a cluster must survive. */
describe("a cluster of several controllers on real nodes", function () {
  this.timeout(1_800_000);
  let lab: Lab;
  let bastion: Bastion;
  let a: LabNode;
  let b: LabNode;
  let c: LabNode;
  let d: LabNode;
  let e: LabNode;
  const at = ({ address }: LabNode): string => `${address}:9090`;
  const ids = new Map<string, string>();
  const idOf = ({ address }: LabNode): string => ids.get(address) ?? "";

  before(async () => {
    lab = await ownLab();
    const names = ["a", "b", "c", "d", "e"];
    [a, b, c, d, e] = (await lab.up(
      names.map((name) => ({ name, kind: "debian" as const, nix: true, disks: ["64M"] })),
    )) as [LabNode, LabNode, LabNode, LabNode, LabNode];
    bastion = await openBastion({
      "roster/nodes.yaml": `defaults: { identityFile: ${a.identityFile} }\nnodes: {}\n`,
    });
    await writeFile(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const kcore = async (...words: readonly string[]): Promise<KcoreEnd> => {
    const ended = await bastion.kcore(words, { timeout: 600_000 });
    expect(ended.code, `kcore ${words.join(" ")}\n${outputOf(ended)}`).to.equal(0);
    return ended;
  };
  const install = (node: LabNode, ...words: readonly string[]): Promise<KcoreEnd> =>
    kcore("node", "install", "--node", `${node.address}:9091`, ...os, ...words, "-k", ...named(node));
  const nodesAt = async (...flags: readonly string[]): Promise<readonly NodeView[]> =>
    JSON.parse((await kcore(...flags, "get", "nodes", "-o", "json")).stdout) as NodeView[];
  const ask = async <Result>(node: LabNode, work: (client: ApiClient) => Promise<Result>): Promise<Result> => {
    const { ca, cert, key } = await loadContext({ home: bastion.home, codec });
    return askOnce({ endpoints: [at(node)], credentials: { ca, cert, key }, clock: Date.now, timeoutMs: 10_000 }, work);
  };
  /** The replicated state, on which all controllers must agree; contacts and reports of nodes may differ for a moment. */
  const viewOf = async (node: LabNode): Promise<unknown> => {
    const { nodes } = await ask(node, (client) => client.call("listNodes", {}));
    return nodes
      .map((node) => ({ ...node, lastSeen: "", reason: "", status: "", usage: {} }))
      .toSorted((one, other) => one.id.localeCompare(other.id));
  };
  /** Waits until every controller calls these nodes ready. */
  const allReady = async (controllers: readonly LabNode[], nodes: readonly LabNode[]): Promise<void> => {
    const wanted = nodes.map(({ address }) => address);
    let seen: unknown;
    const hold = async (): Promise<boolean> => {
      const lists = await Promise.all(
        controllers.map(
          async (node) => [node.name, (await ask(node, (client) => client.call("listNodes", {}))).nodes] as const,
        ),
      );
      const others = lists.flatMap(([at, list]) =>
        list.flatMap(({ address, hostname, status, reason }) =>
          wanted.includes(address) && status !== "ready" ? [`${at}: ${hostname} is ${status}, ${reason ?? ""}`] : [],
        ),
      );
      seen = others;
      return others.length === 0;
    };
    await until(hold, "every controller calls every node ready").catch((error: unknown) => {
      throw new Error(`${String(error)}: ${JSON.stringify(seen)}`);
    });
  };
  /** Waits until the controllers show the same state; gives the milliseconds. */
  const agree = async (controllers: readonly LabNode[], limit = 600_000): Promise<number> => {
    const began = performance.now();
    for (;;) {
      const [first, ...others] = await Promise.all(controllers.map(viewOf));
      const texts = others.map((view) => JSON.stringify(view));
      if (texts.every((text) => text === JSON.stringify(first))) return performance.now() - began;
      if (performance.now() - began > limit) expect(others[0]).to.deep.equal(first);
      await sleep(100);
    }
  };

  it("installs three controllers in two datacenters and a worker, command by command", async () => {
    await kcore("create", "cluster", "--controller", at(a), "--context", "prod", ...phrase);
    const again = await bastion.kcore(["create", "cluster", "--controller", at(a), "--context", "prod", ...phrase]);
    expect(again.code).to.equal(2);
    expect(again.stderr).to.contain("PKI_CONTEXT_EXISTS").and.to.contain("change cluster: in it");
    await installAtTerminal();
    await install(b, "--run-controller", "--join-controller", at(a), "--dc-id", "DC1");
    await install(c, "--join-controller", at(a), "--join-controller", at(b), "--dc-id", "DC1");
    await install(d, "--run-controller", "--join-controller", at(a), "--dc-id", "DC2");
    for (const { address, id } of await nodesAt()) ids.set(address, id);
    const seen = (await nodesAt()).map(
      ({ hostname, dc, roles, status }) => `${hostname} ${dc} ${roles.join()} ${status}`,
    );
    expect(seen.toSorted()).to.deep.equal([
      "a DC1 controller ready",
      "b DC1 controller ready",
      "c DC1 worker ready",
      "d DC2 controller ready",
    ]);
  });

  /** Without a fingerprint, `-k` asks the operator: here for the first machine, at a terminal. */
  async function installAtTerminal(): Promise<void> {
    const words = ["node", "install", "--node", `${a.address}:9091`, ...os, "--run-controller", "--dc-id", "DC1", "-k"];
    const unattended = await bastion.kcore([...words, ...phrase]);
    expect(unattended.code).to.equal(2);
    expect(unattended.stderr).to.contain("QUESTION_UNANSWERED").and.to.contain("--host-key SHA256:");
    const terminal = await openShell({ cwd: bastion.project, columns: 160, rows: 50 }, { KCORE_HOME: bastion.home });
    try {
      await terminal.enter([kcoreProgram, ...words, "-o", "plain", ...phrase, "--hostname", "a"].join(" "));
      const question = await terminal.shows(/Is this the machine's key\?/);
      expect(question).to.contain(parseHostKey(a.hostKey)?.fingerprint);
      await terminal.enter("yes");
      await bastion.until(
        (events) => events.some(({ type }) => type === "run.finished"),
        "the end of the run",
        600_000,
      );
      const finished = (await bastion.events()).find((event) => event.type === "run.finished");
      expect(finished, JSON.stringify(finished)).to.deep.include({ outcome: "done" });
    } finally {
      await terminal.close();
    }
  }

  it("keeps every private key on its own machine, and detects a misplaced key (S-1, S-15)", async () => {
    const machines = [a, b, c, d];
    const secrets: Secret[] = [];
    for (const node of machines) secrets.push(...(await secretsOf(node)));
    expect(secrets.length).to.equal(3 * 3 + 1);
    const misplaced = async (): Promise<readonly string[]> => {
      const found: string[] = [];
      for (const node of machines)
        for (const { secret, file } of await privateKeysIn(node, secrets))
          if (secret.machine !== node.name || secret.file !== file)
            found.push(`${secret.name} in ${node.name}:${file}`);
      for (const file of await filesBelow(bastion.project)) {
        const text = await readFile(file, "latin1");
        for (const { name, fragment } of secrets) if (text.includes(fragment)) found.push(`${name} in ${file}`);
      }
      return found;
    };
    expect(await misplaced()).to.deep.equal([]);
    const planted = await on(c, `cat ${certs}/node.key`);
    await a.exec("cat >/var/tmp/planted", { input: planted });
    await writeFile(join(bastion.project, "planted"), planted);
    try {
      expect(await misplaced()).to.deep.equal([
        "c:node.key in a:/var/tmp/planted",
        `c:node.key in ${join(bastion.project, "planted")}`,
      ]);
    } finally {
      await on(a, "rm /var/tmp/planted");
      await rm(join(bastion.project, "planted"));
    }
  });

  it("keeps a new node pending until its approval, and the same deployment then completes", async () => {
    await bastion.write({ "roster/defaults.yaml": "defaults: { vars: { requireManualApproval: true } }\n" });
    await kcore("orchestrate", "deploy_node", "--on", "role:controller", "--yes", ...phrase);
    const words = [
      "node",
      "install",
      "--node",
      `${e.address}:9091`,
      ...os,
      "--join-controller",
      at(a),
      ...named(e),
      "--disable-vxlan",
    ];
    const began = await bastion.begin(words);
    const events = await bastion.until(
      (found) => found.some((event) => event.type === "action.note" && event.text.includes("kcore node approve")),
      "that it says how to approve the node",
    );
    const note = events.flatMap((event) => (event.type === "action.note" ? [event.text] : [])).at(-1) ?? "";
    const [, id = ""] = /kcore node approve ([0-9a-f-]{36})/.exec(note) ?? [];
    expect((await nodesAt()).find((node) => node.id === id)).to.include({ hostname: "e", approval: "pending" });
    await kcore("node", "approve", id);
    const ended = await began.ended;
    expect(ended.code, outputOf(ended)).to.equal(0);
    expect((await nodesAt()).find((node) => node.id === id)).to.include({ approval: "approved", status: "ready" });
    const registered = await ask(d, (client) => client.call("getNode", {}, { id }));
    expect([registered.net?.disableVxlan, registered.storage?.backend]).to.deep.equal([true, "filesystem"]);
    expect(await on(e, "ls /etc/kcore/disable-vxlan; cat /etc/kcore/bootstrap-controller-endpoint")).to.equal(
      `/etc/kcore/disable-vxlan\n${at(a)}`,
    );
  });

  it("rejoins a founder that lost its state's disk, and founds no second cluster", async () => {
    const words = ["orchestrate", "deploy_node", "a", "--yes", ...phrase];
    const keysAt = async (node: LabNode): Promise<ReadonlyMap<string, string>> => {
      const { controllers } = await ask(node, (client) => client.call("listControllers", {}));
      return new Map(controllers.map(({ controllerId, key }) => [controllerId, key]));
    };
    const loses = async (value: string): Promise<void> => {
      await agree([a, b, d]);
      await on(a, "systemctl stop kcore-controller && rm -r /var/lib/kcore/controller");
      await ask(b, (client) => client.call("setLabels", { set: { missed: value } }, { id: idOf(c) }));
    };
    const comesBack = async (value: string): Promise<void> => {
      await kcore(...words);
      expect(stepsThat("changed", await bastion.events(), "a")).not.to.include("new cluster's state");
      await agree([a, b, d]);
      await allReady([a, b, d], [a, b, c, d]);
      const keys = await keysAt(b);
      expect([...keys.keys()]).to.have.members([a, b, d].map(idOf));
      for (const node of [a, d]) expect(await keysAt(node), node.name).to.deep.equal(keys);
      expect((await ask(a, (client) => client.call("getNode", {}, { id: idOf(c) }))).labels).to.include({
        missed: value,
      });
      await kcore(...words);
      expect(stepsThat("changed", await bastion.events())).to.deep.equal([]);
    };
    await loses("once");
    await comesBack("once");
  });
});

/** The words that name a machine and its host key, and unlock the CA. */
const named = ({ name, hostKey }: LabNode): readonly string[] => {
  const { fingerprint = "" } = parseHostKey(hostKey) ?? {};
  return ["--hostname", name, "--host-key", fingerprint, ...phrase];
};

async function until(holds: () => Promise<boolean>, what: string, limit = 600_000): Promise<void> {
  for (const end = Date.now() + limit; Date.now() < end; await sleep(250)) if (await holds()) return;
  throw new Error(`waited ${limit / 1000} s in vain for: ${what}`);
}
