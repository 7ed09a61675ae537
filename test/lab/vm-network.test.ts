import { expect } from "chai";
import { networkInterface } from "#engine/modules/network-interface.ts";
import type { Steps } from "#support/shared-line.ts";
import { LabMachine } from "#support/lab-machine.ts";

/** A container's kernel may lack these devices. */
describe("VLANs and bonds of machines with a kernel of their own", function () {
  this.timeout(900_000);
  const machine = new LabMachine({ kind: "vm", disks: [] });
  before(() => {
    const cards = `for n in 1 2 3; do printf '[NetDev]\\nName=k%s\\nKind=dummy\\n' $n >/etc/systemd/network/05-k$n.netdev; done`;
    machine.line.shell(`mkdir -p /var/lib/kcore-test && ${cards} && networkctl reload`);
  });

  it("are created, changed, and there again after a power cut", async () => {
    const vlan = { name: "k1.10", vlan: { link: "k1", id: 10 }, addresses: ["192.0.2.10/24"] };
    const bond = { name: "bond9", bond: { members: ["k2", "k3"] }, addresses: ["198.51.100.10/24"] };
    const steps: Steps = [
      [networkInterface, { name: "k1" }],
      [networkInterface, vlan],
      [networkInterface, bond],
    ];
    await machine.line.expectAll(steps, "changed");
    await machine.line.expectAll(steps, "ok");
    expect(machine.line.shell("ip -d link show k1.10")).to.match(/vlan protocol 802\.1Q id 10 /);
    expect(machine.line.shell("cat /sys/class/net/bond9/bonding/slaves").split(" ").toSorted()).to.deep.equal([
      "k2",
      "k3",
    ]);
    const other: Steps = [
      [networkInterface, { ...vlan, vlan: { link: "k1", id: 11 } }],
      [networkInterface, { ...bond, bond: { members: ["k2", "k3"], mode: "balance-rr" } }],
    ];
    // Twice, because the fault does not come each time: networkd learns late of a removed bond and frees the new bond's members.
    for (const turn of [other, steps.slice(1), other]) await machine.line.expectAll(turn, "changed");
    await machine.line.expectAll([...other, ...steps.slice(0, 1)], "ok");
    machine.line.shell("sync");
    machine.line.drop();
    await machine.node.powerCut();
    await machine.node.start();
    machine.line.shell("systemctl is-system-running --wait || :");
    await machine.line.expectAll([...other, ...steps.slice(0, 1)], "ok");
  });
});
