import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { askOnce } from "#api/ask.ts";
import type { ApiClient } from "#api/client.ts";
import type { UpdateView } from "#api/update-schemas.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { loadContext } from "#pki/contexts.ts";
import { codec, eventually } from "#support/cluster.ts";
import { on, openBastion, type Bastion, type KcoreEnd } from "#support/deploy.ts";
import { completeOtherKcore, makeOtherBundle, type OtherBundle } from "#support/other-runtime.ts";
import { ownLab } from "#support/own-lab.ts";

const phrase = ["--passphrase-file", "passphrase"];
const dcs: Readonly<Record<string, string>> = { a: "DC1", b: "DC2", c: "DC1", d: "DC1", e: "DC2" };
const controllers = ["a", "b", "c"];

/** Five real nodes in two datacenters, three of them controllers; the cluster itself updates their runtime. */
describe("updates of a cluster on real nodes", function () {
  this.timeout(1_800_000);
  let lab: Lab;
  let bastion: Bastion;
  let folder: string;
  const nodes = new Map<string, LabNode>();
  const bundles = new Map<string, OtherBundle>();

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kcore-updates-"));
    lab = await ownLab();
    const up = await lab.up(
      Object.keys(dcs).map((name) => ({ name, kind: "debian" as const, nix: true, disks: ["64M"] })),
    );
    for (const node of up) nodes.set(node.name, node);
    bastion = await openBastion({ "roster/lab.yaml": await rosterText(lab) });
    await writeFile(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    const release = (version: string): Promise<void> =>
      makeOtherBundle(folder, { version }).then((bundle) => void bundles.set(version, bundle));
    await Promise.all([kcore("orchestrate", "cluster", "--yes", ...phrase), release("0.2.0")]);
    await release("0.3.0");
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  const node = (name: string): LabNode => {
    const found = nodes.get(name);
    if (!found) throw new Error(`no node ${name}`);
    return found;
  };
  const kcore = async (...words: readonly string[]): Promise<KcoreEnd> => {
    const ended = await bastion.kcore(words, { timeout: 600_000 });
    expect(ended.code, `kcore ${words.join(" ")}\n${ended.stdout}${ended.stderr}`).to.equal(0);
    return ended;
  };
  const ask = async <Result>(work: (client: ApiClient) => Promise<Result>): Promise<Result> => {
    const { ca, cert, key } = await loadContext({ home: bastion.home, codec });
    const endpoints = controllers.map((name) => `${node(name).address}:9090`);
    return askOnce({ endpoints, credentials: { ca, cert, key }, clock: Date.now, timeoutMs: 10_000 }, work);
  };
  const get = (name: string): Promise<UpdateView> => ask((client) => client.call("getUpdate", {}, { id: name }));
  const until = async (name: string, holds: (update: UpdateView) => boolean, limit = 300_000): Promise<UpdateView> => {
    let last: UpdateView | undefined;
    for (const end = Date.now() + limit; Date.now() < end; await sleep(300)) {
      // Controllers restart in between.
      last = await get(name).catch(() => last);
      if (last && holds(last)) return last;
    }
    throw new Error(`“${name}” did not get there: ${JSON.stringify(last, undefined, 1)}`);
  };
  const ended = (name: string, phase: string, limit?: number): Promise<UpdateView> =>
    until(name, (update) => update.phase === phase, limit);
  const manifest = async (name: string, version: string, spec: object): Promise<string> => {
    const file = `${name}.yaml`;
    const target = { version };
    const text = printYaml({ kind: "ClusterUpdate", metadata: { name }, spec: { target, ...spec } });
    await bastion.write({ [file]: text });
    return file;
  };
  const apply = async (name: string, version: string, spec: object, ...more: readonly string[]): Promise<KcoreEnd> => {
    const file = await manifest(name, version, spec);
    const { file: bundle = "" } = bundles.get(version) ?? {};
    return kcore("update", "cluster", "apply", "-f", file, "--bundle", bundle, ...phrase, ...more);
  };
  const versions = async (): Promise<Readonly<Record<string, string>>> => {
    const { nodes: all } = await ask((client) => client.call("listNodes", {}));
    const told: Record<string, string> = {};
    for (const { hostname, version } of all) told[hostname] = version;
    return told;
  };
  const all = (version: string): Readonly<Record<string, string>> => {
    const wanted: Record<string, string> = {};
    for (const name of Object.keys(dcs)) wanted[name] = version;
    return wanted;
  };
  const onNode = (name: string, command: string): Promise<string> =>
    on(node(name), command).then((text) => text.trim());
  const profileOf = (name: string): Promise<string> =>
    onNode(name, "readlink -f /nix/var/nix/profiles/kcore; readlink -f /nix/var/nix/profiles/kcore-updater");

  it("brings all nodes to another version after approval, one at a time, the owner last", async () => {
    const spec = { selector: { allNodes: true } };
    const { stdout } = await apply("first", "0.2.0", spec);
    expect(stdout).to.contain("kcore update cluster approve first");
    expect((await get("first")).phase).to.equal("pending");
    await kcore("update", "cluster", "approve", "first", "--yes");
    const done = await ended("first", "succeeded");
    expect(await versions()).to.deep.equal(all("0.2.0"));
    const order = done.waves.flat().map((id) => done.nodeStatus.find((one) => one.id === id)?.hostname);
    expect(order.slice(0, 2)).to.have.members(["d", "e"]);
    expect(done.waves.flat().at(-1)).to.equal(done.owner.id);
    for (const name of Object.keys(dcs))
      expect((await profileOf(name)).split("\n"), name).to.deep.equal([
        bundles.get("0.2.0")?.bundle.storePath,
        bundles.get("0.2.0")?.bundle.storePath,
      ]);
  });

  it("leaves the new version's deploy_node nothing to change, after rotations and renewals too", async () => {
    const program = await completeOtherKcore(folder, "0.2.0");
    const newer = async (...words: readonly string[]): Promise<void> => {
      const { code, stdout, stderr } = await bastion.kcore([...words, ...phrase], { program, timeout: 600_000 });
      expect(code, `kcore ${words.join(" ")}\n${stdout}${stderr}`).to.equal(0);
    };
    const keys = async (): Promise<readonly string[]> =>
      (await ask((client) => client.call("listNodes", {}))).nodes.map(({ key }) => key);
    await kcore("node", "label", "d", "in=order");
    await kcore("node", "taint", "d", "in=order:NoSchedule");
    await kcore("node", "reject", "e");
    await kcore("node", "approve", "e");
    const former = await keys();
    await newer("rotate", "sub-ca");
    await newer("rotate", "certs");
    // Each agent renews at its next heartbeat.
    await eventually(async () => (await keys()).every((key) => !former.includes(key)));
    await newer("orchestrate", "deploy_node", "*", "--dry-run", "--fail-on-change");
    await newer("orchestrate", "deploy_node", "*", "--yes");
    const events = await bastion.events();
    const isChange = (event: RunEvent): boolean =>
      (event.type === "step.finished" || event.type === "action.finished") && event.outcome === "changed";
    expect(events.filter(isChange)).to.deep.equal([]);
  });

  it("continues with two nodes at a time after the canary's promotion, without the bastion", async () => {
    const spec = {
      selector: { allNodes: true },
      strategy: { type: "canary", maxUnavailable: 2, canary: { nodeIds: ["d"] } },
      approvalPolicy: "auto",
    };
    const file = await manifest("promoted", "0.3.0", spec);
    const { file: bundle = "" } = bundles.get("0.3.0") ?? {};
    // The laptop is closed once the update is known.
    const laptop = new AbortController();
    const watched = bastion.kcore(["update", "cluster", "apply", "-w", "-f", file, "--bundle", bundle, ...phrase], {
      signal: laptop.signal,
    });
    await until("promoted", () => true);
    laptop.abort();
    expect((await watched).code).not.to.equal(0);
    const waiting = await until("promoted", ({ waits = "" }) => waits.includes("promotion"));
    expect(
      waiting.nodeStatus.filter(({ phase }) => phase === "succeeded").map(({ hostname }) => hostname),
    ).to.deep.equal(["d"]);
    await kcore("update", "cluster", "promote", "promoted");
    await ended("promoted", "succeeded");
    expect(await versions()).to.deep.equal(all("0.3.0"));
  });

  it("rolls back a finished rollout to every node's former generation", async () => {
    const bundle = bundles.get("0.2.0")?.bundle.storePath;
    await kcore("update", "cluster", "rollback", "promoted", "--yes");
    await ended("promoted", "rolled_back");
    expect(await versions()).to.deep.equal(all("0.2.0"));
    for (const name of Object.keys(dcs))
      expect((await profileOf(name)).split("\n"), name).to.deep.equal([bundle, bundle]);
  });
});

/** Three controllers, two workers, two datacenters. */
async function rosterText(lab: Lab): Promise<string> {
  let text = await lab.roster();
  for (const [name, dc] of Object.entries(dcs)) {
    const role = controllers.includes(name) ? "controller" : "worker";
    text = text.replace(
      new RegExp(`(  ${name}:\\n(?:    .*\\n)*?    roles: )\\[\\w+\\]\\n`),
      `$1[${role}]\n    dc: ${dc}\n`,
    );
  }
  return text;
}
