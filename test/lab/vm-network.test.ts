import { expect } from "chai";
import { networkInterface } from "#engine/modules/network-interface.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { ownLab } from "#support/own-lab.ts";
import { SharedLine, type Steps } from "#support/shared-line.ts";

/** The kernel below a container may lack these devices. */
describe("VLANs and bonds of machines with a kernel of their own", function () {
  this.timeout(900_000);
  let lab: Lab;
  let v1: LabNode;
  let line: SharedLine;

  before(async () => {
    lab = await ownLab();
    [v1] = (await lab.up([{ name: "v1", kind: "vm", disks: [] }])) as [LabNode];
    line = new SharedLine(v1);
    const cards = `for n in 1 2 3; do printf '[NetDev]\\nName=k%s\\nKind=dummy\\n' $n >/etc/systemd/network/05-k$n.netdev; done`;
    line.shell(`mkdir -p /var/lib/kcore-test && ${cards} && networkctl reload`);
  });
  after(async () => {
    line?.close();
    await lab?.down();
  });

  it("come up, change, and are there again after a power cut", async () => {
    const vlan = { name: "k1.10", vlan: { link: "k1", id: 10 }, addresses: ["192.0.2.10/24"] };
    const bond = { name: "bond9", bond: { members: ["k2", "k3"] }, addresses: ["198.51.100.10/24"] };
    const steps: Steps = [
      [networkInterface, { name: "k1" }],
      [networkInterface, vlan],
      [networkInterface, bond],
    ];
    await line.expectAll(steps, "changed");
    await line.expectAll(steps, "ok");
    expect(line.shell("ip -d link show k1.10")).to.match(/vlan protocol 802\.1Q id 10 /);
    expect(line.shell("cat /sys/class/net/bond9/bonding/slaves").split(" ").toSorted()).to.deep.equal(["k2", "k3"]);
    const other: Steps = [
      [networkInterface, { ...vlan, vlan: { link: "k1", id: 11 } }],
      [networkInterface, { ...bond, bond: { members: ["k2", "k3"], mode: "balance-rr" } }],
    ];
    // To and fro: a networkd that hears late of the bond that went leaves the members of the new one free, but not each time.
    for (const turn of [other, steps.slice(1), other]) await line.expectAll(turn, "changed");
    await line.expectAll([...other, ...steps.slice(0, 1)], "ok");
    line.shell("sync");
    line.drop();
    await v1.powerCut();
    await v1.start();
    line.shell("systemctl is-system-running --wait || :");
    await line.expectAll([...other, ...steps.slice(0, 1)], "ok");
  });
});
