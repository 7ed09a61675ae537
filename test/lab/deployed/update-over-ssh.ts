import { join } from "node:path";
import { expect } from "chai";
import type { LabNode } from "#lab/lab.ts";
import { on, labRoster, type Bastion, type KcoreEnd } from "#support/deploy.ts";
import { deployedLab } from "#support/deployed-lab.ts";
import { makeOtherBundle } from "#support/other-runtime.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const good = "0.2.0";
/** The agent of this version exits at once on one node. */
const bad = "0.3.0";
const badFirst = `if (process.argv[2] === "agent" && (await import("node:os")).hostname() === "n1") process.exit(3);`;

/** `kcore orchestrate update` on real nodes whose only controller is switched off. This is the last file of the shared lab. */
describe("an update of real nodes without controllers", function () {
  this.timeout(1_800_000);
  let nodes: readonly LabNode[];
  let bastion: Bastion;
  let folder: TempDir;

  before(async () => {
    folder = await makeTempDir("update-over-ssh");
    await makeOtherBundle(folder.path, { version: good });
    await makeOtherBundle(folder.path, { version: bad, first: badFirst });
    const deployed = await deployedLab();
    const { n1, n2 } = deployed;
    nodes = [n1, n2];
    bastion = deployed.bastion;
    const roster = await labRoster(deployed.lab, { n2: "user: ops" });
    // The roster has only these two nodes.
    await bastion.write({ "roster/lab.yaml": roster.replace(/^ {2}n3:[^]*/m, ""), "roster/wrong.yaml": "nodes: {}\n" });
    await on(n1, "systemctl disable --now kcore-controller");
  });
  after(() => folder?.remove());

  async function update(version: string, ...words: readonly string[]): Promise<KcoreEnd> {
    await bastion.write({
      "rollout.yaml": `kind: ClusterUpdate
metadata: { name: to-${version} }
spec:
  target: { version: ${version} }
  selector: { allNodes: true }
  rollback: { automatic: true }
  healthGates: [{ name: agent, nodeCommand: "systemctl is-active kcore-node-agent", withinSeconds: 30 }]
  timeouts: { activateSeconds: 60 }
`,
    });
    const bundle = join(folder.path, `kcore-${version}.bundle`);
    const given = ["--bundle", bundle, "--passphrase-file", "passphrase"];
    return bastion.kcore(["orchestrate", "update", "-f", "rollout.yaml", ...given, ...words]);
  }

  /** The version that the agents of both nodes run. */
  const versions = (): Promise<readonly string[]> =>
    Promise.all(
      nodes.map((node) =>
        on(
          node,
          "readlink /proc/$(systemctl show -P MainPID kcore-node-agent)/exe | sed 's,^/nix/store/[^-]*-kcore-,,; s,/.*,,'",
        ),
      ),
    );

  it("shows its changes, brings the version to all nodes, and then finds nothing to do", async () => {
    const [before] = await versions();
    const plan = await update(good, "--dry-run");
    expect(plan.code, plan.stdout + plan.stderr).to.equal(0);
    expect(await versions()).to.deep.equal([before, before]);
    const done = await update(good);
    expect(done.code, done.stdout + done.stderr).to.equal(0);
    expect(await versions()).to.deep.equal([good, good]);
    const again = await update(good);
    expect(again.code, again.stdout + again.stderr).to.equal(0);
    expect(again.stdout).to.not.contain("changed:");
  });

  it("rolls back a finished update", async () => {
    const ended = await update(good, "--rollback");
    expect(ended.code, ended.stdout + ended.stderr).to.equal(0);
    expect(await versions()).to.not.include(good);
  });

  it("rolls back all nodes when one does not come up with the version", async () => {
    const ended = await update(bad);
    expect(ended.code, ended.stdout + ended.stderr).to.equal(1);
    expect(ended.stdout, ended.stdout).to.match(
      /✖ n1 +(?:activate|hold) +failed: service: kcore-node-agent.service .*UPDATE_FAILED/,
    );
    expect(ended.stdout).to.match(/✔ n2 +back +changed/);
    const [n1, n2] = await versions();
    expect([n1, n2]).to.deep.equal([n2, n1]);
    expect(n2).to.not.equal(bad);
  });
});
