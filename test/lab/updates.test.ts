import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { askFirst } from "#api/ask.ts";
import type { ApiClient } from "#api/client.ts";
import type { UpdateView } from "#api/update-schemas.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { loadContext } from "#pki/contexts.ts";
import { codec } from "#support/cluster.ts";
import { on, openBastion, type Bastion, type Ended } from "#support/deploy.ts";
import { makeOtherBundle, type OtherBundle } from "#support/other-runtime.ts";

const labName = "updates";
const phrase = ["--passphrase-file", "passphrase"];
const dcs: Readonly<Record<string, string>> = { a: "DC1", b: "DC2", c: "DC1", d: "DC1", e: "DC2" };
const controllers = ["a", "b", "c"];

/** Five real nodes in two datacenters, three of them controllers, whose runtime is updated by the cluster itself. */
describe("updates of a cluster on real nodes", function () {
  this.timeout(900_000);
  let lab: Lab;
  let bastion: Bastion;
  let folder: string;
  const nodes = new Map<string, LabNode>();
  const bundles = new Map<string, OtherBundle>();

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kcore-updates-"));
    lab = await openLab({ name: labName });
    await lab.down();
    const up = await lab.up(Object.keys(dcs).map((name) => ({ name, kind: "debian" as const, disks: ["64M"] })));
    for (const node of up) nodes.set(node.name, node);
    const socket = "systemctl stop nix-daemon.service nix-daemon.socket && systemctl start nix-daemon.socket";
    const packages = `apt-get -q update && apt-get -qy install gdisk nix-bin nix-setup-systemd openssl && ${socket}`;
    await Promise.all(up.map((node) => on(node, packages, 600_000)));
    bastion = await openBastion({ "roster/lab.yaml": await rosterText(lab) });
    await writeFile(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    const release = (version: string, first?: string): Promise<void> =>
      makeOtherBundle(folder, { version, ...(first === undefined ? {} : { first }) }).then(
        (bundle) => void bundles.set(version, bundle),
      );
    await Promise.all([kcore("orchestrate", "cluster", "--yes", ...phrase), release("0.2.0")]);
    await release("0.3.0");
    // Its agent ends at once, as one does that misses something.
    await release("0.4.0", `if (process.argv[2] === "agent") { console.error("no such thing"); process.exit(1); }`);
  });
  after(async () => {
    await bastion?.remove();
    await (await openLab({ name: labName })).down();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  const node = (name: string): LabNode => {
    const found = nodes.get(name);
    if (!found) throw new Error(`no node ${name}`);
    return found;
  };
  const kcore = async (...words: readonly string[]): Promise<Ended> => {
    const ended = await bastion.kcore(words, { timeout: 600_000 });
    expect(ended.code, `kcore ${words.join(" ")}\n${ended.stdout}${ended.stderr}`).to.equal(0);
    return ended;
  };
  const ask = async <Result>(work: (client: ApiClient) => Promise<Result>): Promise<Result> => {
    const { ca, cert, key } = await loadContext({ home: bastion.home, codec });
    const endpoints = controllers.map((name) => `${node(name).address}:9090`);
    return askFirst({ endpoints, credentials: { ca, cert, key }, clock: Date.now, timeoutMs: 10_000 }, work);
  };
  const get = (name: string): Promise<UpdateView> => ask((client) => client.call("getUpdate", {}, { id: name }));
  const until = async (name: string, holds: (update: UpdateView) => boolean, limit = 300_000): Promise<UpdateView> => {
    let last: UpdateView | undefined;
    for (const end = Date.now() + limit; Date.now() < end; await sleep(300)) {
      // Controllers restart on the way.
      last = await get(name).catch(() => last);
      if (last && holds(last)) return last;
    }
    throw new Error(`“${name}” did not get there: ${JSON.stringify(last, undefined, 1)}`);
  };
  const ended = (name: string, phase: string, limit?: number): Promise<UpdateView> =>
    until(name, (update) => ["succeeded", "failed", "cancelled", "rolled_back"].includes(update.phase), limit).then(
      (update) => {
        expect(update.phase, JSON.stringify(update, undefined, 1)).to.equal(phase);
        return update;
      },
    );
  const manifest = async (name: string, version: string, spec: object): Promise<string> => {
    const file = `${name}.yaml`;
    const target = { version };
    const text = printYaml({ kind: "ClusterUpdate", metadata: { name }, spec: { target, ...spec } });
    await bastion.write({ [file]: text });
    return file;
  };
  const apply = async (name: string, version: string, spec: object, ...more: readonly string[]): Promise<Ended> => {
    const file = await manifest(name, version, spec);
    const { file: bundle = "" } = bundles.get(version) ?? {};
    return kcore("update", "cluster", "apply", "-f", file, "--bundle", bundle, ...phrase, ...more);
  };
  const versions = async (): Promise<Record<string, string>> => {
    const { nodes: all } = await ask((client) => client.call("listNodes", {}));
    return Object.fromEntries(all.map(({ hostname, version }) => [hostname, version]).toSorted());
  };
  const all = (version: string): Record<string, string> =>
    Object.fromEntries(Object.keys(dcs).map((name) => [name, version]));
  const onNode = (name: string, command: string): Promise<string> =>
    on(node(name), command).then((text) => text.trim());
  const profileOf = (name: string): Promise<string> =>
    onNode(name, "readlink -f /nix/var/nix/profiles/kcore; readlink -f /nix/var/nix/profiles/kcore-updater");

  it("brings all nodes to another version, one at a time, when somebody approved it: the owner last", async () => {
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
