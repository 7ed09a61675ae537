import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { expect } from "chai";
import type { NodeView } from "#api/schemas.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import type { OrderStep } from "#rollout/order.ts";
import type { Report } from "#rollout/records.ts";
import type { Runtime } from "#runtime/build.ts";
import { eventually } from "#support/cluster.ts";
import { on, openBastion, labRoster, stepsThat, type Bastion } from "#support/deploy.ts";
import { OrderedNode, updates, type GivenUpdate } from "#support/ordered-node.ts";
import { makeOtherRuntime } from "#support/other-runtime.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { ownLab } from "#support/own-lab.ts";

const profile = "/nix/var/nix/profiles/kcore";

/** Code at the beginning of a version's program. */
const versions = {
  "0.2.0": "",
  "0.4.0": `if (process.argv[2] === "agent") await new Promise(() => setInterval(() => {}, 1e6));`,
  "0.5.0": "",
} as const;
type Version = keyof typeof versions;

/** kcore-updater on a real node with systemd and Nix; the test takes the agent's place. */
describe("updates of a real node", () => {
  let lab: Lab;
  let n1: LabNode;
  let bastion: Bastion;
  let folder: TempDir;
  const bundles = new Map<Version, Runtime>();
  let updater: OrderedNode;

  before(async () => {
    folder = await makeTempDir("updater");
    for (const [version, first] of Object.entries(versions))
      bundles.set(version as Version, await makeOtherRuntime(folder.path, { version, first }));
    lab = await ownLab();
    [n1] = (await lab.up([{ name: "n1", kind: "debian", nix: true, disks: ["64M"] }])) as [LabNode];
    bastion = await openBastion({ "roster/lab.yaml": await labRoster(lab) }, { cluster: true });
    updater = new OrderedNode(n1, bastion);
    const { code, stdout, stderr } = await bastion.deploy("n1");
    expect(code, stdout + stderr).to.equal(0);
    await on(n1, `mkdir -p -m 700 ${updates}/bundles`);
  });
  after(async () => {
    await bastion?.remove();
    await folder?.remove();
    await lab?.down();
  });

  async function send(file: string, path: string): Promise<void> {
    const child = spawn("ssh", [...n1.sshArguments(), `cat >${path}`], { stdio: ["pipe", "ignore", "inherit"] });
    const [, ended] = await Promise.all([pipeline(createReadStream(file), child.stdin), once(child, "close")]);
    expect(ended).to.deep.equal([0, null]);
  }

  const to = (version: Version, spec: object = {}): GivenUpdate => {
    const { storePath, narHash, sha256, size, arch } = bundles.get(version)!;
    return {
      name: `to-${version}`,
      spec: { target: { version }, selector: { allNodes: true }, ...spec },
      bundle: { storePath, narHash, sha256, size, arch, version },
    };
  };
  const carryOut = async (step: OrderStep, version: Version, spec: object = {}): Promise<Report> => {
    const { file, sha256 } = bundles.get(version)!;
    if (step === "prepare") await send(file, `${updates}/bundles/${sha256}`);
    return updater.gives(step, to(version, spec));
  };

  /** The programs of the node's daemons. */
  const running = (): Promise<string> =>
    on(
      n1,
      `for unit in kcore-controller kcore-node-agent; do readlink /proc/$(systemctl show -P MainPID $unit)/exe; done | sed 's,/lib/.*,,' | sort -u`,
    );
  const pathOf = (version: Version): string => bundles.get(version)!.storePath;
  const expectWhole = async (version: Version): Promise<void> => {
    expect(await running()).to.equal(pathOf(version));
    expect(await on(n1, `readlink -f ${profile}`)).to.equal(pathOf(version));
    // systemd no longer starts the updater.
    await eventually(async () => (await n1.exec("systemctl is-active kcore-updater")).stdout === "inactive\n");
    expect(await on(n1, `ls ${updates}`)).to.equal("bundles\njournal.json");
  };

  it("brings another runtime into use, from which a controller on the node then runs", async () => {
    // The updater itself may write to none of these folders.
    const healthGates = [
      { name: "disk", nodeCommand: "test -w /srv && test -w /root" },
      // The shell expands these words, and no program does before it.
      { name: "shell", nodeCommand: 'x=word; y=$((1 + 1)); test "${x}" = word && test "$y" = 2 && test $$ -gt 1' },
    ];
    const spec = { healthGates };
    const prepared = await carryOut("prepare", "0.2.0", spec);
    expect(prepared, JSON.stringify(prepared)).to.include({ state: "prepared", targetGeneration: 2 });
    const activated = await carryOut("activate", "0.2.0", spec);
    expect(activated, JSON.stringify(activated)).to.include({ state: "activated" });
    await expectWhole("0.2.0");
    expect(await on(n1, `readlink -f ${profile}-updater`)).to.equal(pathOf("0.2.0"));
    const [node] = JSON.parse(await bastion.does("get", "nodes", "-o", "json")) as NodeView[];
    expect(node?.version).to.equal("0.2.0");
  });

  it("reverts a runtime whose agent reaches no controller in time", async () => {
    expect((await carryOut("prepare", "0.4.0")).state).to.equal("prepared");
    const failed = await carryOut("activate", "0.4.0", { timeouts: { activateSeconds: 15 } });
    expect([failed.state, failed.failure?.kind]).to.deep.equal(["failed", "unreachable"]);
    await expectWhole("0.2.0");
  });

  it("reverts a runtime that fails a gate on the node", async () => {
    const healthGates = [
      { name: "agent", http: { url: "http://127.0.0.1:9091/healthz" } },
      { name: "file", nodeCommand: "test -e /etc/hostname && test -e /nowhere", withinSeconds: 2 },
    ];
    expect((await carryOut("prepare", "0.5.0", { healthGates })).state).to.equal("prepared");
    const failed = await carryOut("activate", "0.5.0", { healthGates });
    expect(failed.failure).to.deep.equal({ kind: "gate", message: "file: the command ended with 1" });
    await expectWhole("0.2.0");
  });

  it("continues an activation after a power cut", async () => {
    await updater.order("activate", to("0.5.0"));
    await updater.until("activating");
    await n1.powerCut();
    await n1.start();
    expect(await updater.until("activated", "failed")).to.include({ state: "activated" });
    await expectWhole("0.5.0");
  });

  it("tries a runtime until the next boot, and returns to the former one on request", async () => {
    const back = await carryOut("roll_back", "0.5.0");
    expect(back).to.include({ state: "rolled_back" });
    await expectWhole("0.2.0");
    const spec = { activation: { mode: "test" } };
    const tried = await carryOut("activate", "0.5.0", spec);
    expect(tried, JSON.stringify(tried)).to.include({ state: "activated" });
    expect([await running(), await on(n1, `readlink -f ${profile}`)]).to.deep.equal([pathOf("0.5.0"), pathOf("0.2.0")]);
    await n1.powerCut();
    await n1.start();
    await expectWhole("0.2.0");
  });

  it("is not replaced by a deployment of an older kcore unless requested", async () => {
    const refused = await bastion.deploy("n1");
    expect(refused.stdout).to.contain("NIX_DOWNGRADE");
    await expectWhole("0.2.0");
    const allowed = await bastion.deploy("n1", "--set", "allow_downgrade=true");
    expect(allowed.code, allowed.stdout + allowed.stderr).to.equal(0);
    expect(stepsThat("changed", await bastion.events(), "n1")).to.deep.equal([
      "profile",
      "updater's profile",
      "controller's service",
      "agent's service",
    ]);
    expect(await running()).to.match(/-kcore-0\.1\.0$/);
  });
});
