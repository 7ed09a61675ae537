import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { NodeView } from "#api/schemas.ts";
import type { LabNode } from "#lab/lab.ts";
import { eventually } from "#support/cluster.ts";
import { on, openBastion, outputOf, type Bastion } from "#support/deploy.ts";
import { ownLab, type OwnLab } from "#support/own-lab.ts";

describe("remove_node on real nodes", () => {
  let lab: OwnLab;
  let bastion: Bastion;
  let nodes: readonly LabNode[];
  let n2: LabNode;

  before(async () => {
    lab = await ownLab();
    nodes = await lab.up([
      { name: "n1", kind: "debian", disks: [] },
      { name: "n2", kind: "debian", disks: ["64M"] },
      { name: "n3", kind: "debian", disks: [] },
    ]);
    n2 = nodes[1] as LabNode;
    bastion = await openBastion({ "roster/lab.yaml": await lab.roster() }, { cluster: true });
    const deployed = await bastion.deploy("n1,n2");
    expect(deployed.code, outputOf(deployed)).to.equal(0);
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const remove = (...more: readonly string[]) =>
    bastion.kcore([
      "orchestrate",
      "remove_node",
      "n2",
      "--yes",
      "--set",
      "wipe=true",
      "--set",
      "without_storage_hook=true",
      ...more,
    ]);
  const names = async (): Promise<readonly string[]> =>
    (JSON.parse(await bastion.does("get", "nodes", "-o", "json")) as NodeView[]).map(({ hostname }) => hostname);

  it("leaves nothing of kcore's running or stored, wipes disks by grant, and the machine comes back", async () => {
    const refused = await remove();
    expect(refused.code, outputOf(refused)).to.equal(1);
    const [, grant = ""] = /--grant (\S+:[0-9a-f]{16})/.exec(outputOf(refused)) ?? [];
    const done = await remove("--grant", grant);
    expect(done.code, outputOf(done)).to.equal(0);
    expect(done.stdout).to.match(/on n2 stay: \/nix\/store/);
    expect(await names()).to.deep.equal(["n1"]);
    const look = `systemctl list-unit-files --no-legend 'kcore*'; ls -d /etc/kcore /nix/var/nix/profiles/kcore* 2>/dev/null
      grep kcore /etc/fstab /etc/passwd; findmnt -rn -o TARGET | grep volumes; ls /nix/store | grep -- -kcore-; true`;
    expect(await on(n2, look)).to.equal("");
    const again = await remove();
    expect(again.stdout, outputOf(again)).to.contain("changed=0");
    await bastion.does("roster", "adopt", "n2");
    const back = await bastion.deploy("n2");
    expect(back.code, outputOf(back)).to.equal(0);
    expect((await names()).toSorted()).to.deep.equal(["n1", "n2"]);
  });

  it("replaces the only controller: the new one is in step before the old one leaves, and agents follow", async () => {
    const replace = () =>
      bastion.kcore("orchestrate replace_node n3 --set old=n1 --passphrase-file passphrase --yes".split(" "));
    const refused = await replace();
    expect(outputOf(refused)).to.contain("NODE_NOT_REPLACED");
    const worker = /( {2}n3:\n(?: {4}.*\n)*? {4}roles: )\[worker\]/;
    const present = await readFile(join(bastion.project, "roster/lab.yaml"), "utf8");
    expect(present).to.match(worker);
    await bastion.write({ "roster/lab.yaml": present.replace(worker, "$1[controller]") });
    const done = await replace();
    expect(done.code, outputOf(done)).to.equal(0);
    await bastion.does("health");
    expect((await names()).toSorted()).to.deep.equal(["n2", "n3"]);
    expect(await on(nodes[0] as LabNode, "systemctl is-active kcore-controller || true")).to.equal("inactive");
    const seen = async () =>
      (JSON.parse(await bastion.does("get", "nodes", "-o", "json")) as NodeView[]).every(
        ({ status }) => status === "ready",
      );
    await eventually(seen);
  });
});
