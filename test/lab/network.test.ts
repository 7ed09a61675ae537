import { expect } from "chai";
import { fileAbsent } from "#engine/modules/file-absent.ts";
import { networkInterface } from "#engine/modules/network-interface.ts";
import { draftOf } from "#support/sessions.ts";
import { stepOf, type StepRun } from "#support/steps.ts";
import { LabMachine } from "#support/lab-machine.ts";
import { labSession } from "#support/lab-session.ts";

/** Interfaces of a machine with a network of its own. The interface of the SSH connection changes only on trial. */
describe("network interfaces of real machines", function () {
  this.timeout(900_000);
  const machine = new LabMachine({ kind: "debian", disks: [] });
  before(() => {
    machine.line.shell(
      "mkdir -p /var/lib/kcore-test && for n in 1 2 3 4 5 6; do ip link add k$n type veth peer name p$n && ip link set p$n up; done",
    );
  });
  const asText = (step: StepRun): string => JSON.stringify(step, undefined, 1);
  const run = (args: object): Promise<StepRun> => machine.line.run(networkInterface, args);
  const expectConvergence = async (args: object): Promise<void> => {
    await machine.line.expectAll([[networkInterface, args]], "changed");
    await machine.line.expectAll([[networkInterface, args]], "ok");
  };

  it("an interface gets addresses, gateway and MTU, loses former ones, and its drift is corrected", async () => {
    const args = { name: "k1", addresses: ["192.0.2.10/24", "2001:db8::10/64"], gateways: ["192.0.2.1"], mtu: 1400 };
    await expectConvergence(args);
    await expectConvergence({ ...args, addresses: ["192.0.2.11/24"] });
    expect(machine.line.shell("ip -4 -o addr show dev k1"))
      .to.match(/192\.0\.2\.11\/24/)
      .and.not.match(/192\.0\.2\.10\//);
    machine.line.shell("ip addr del 192.0.2.11/24 dev k1");
    const drift = await run({ ...args, addresses: ["192.0.2.11/24"] });
    expect(drift.have["address 192.0.2.11/24"], asText(drift)).to.equal("absent");
    expect(drift.outcome, asText(drift)).to.equal("changed");
    await expectConvergence({ name: "k1" });
    machine.line.shell("ip addr add 192.0.2.12/24 dev k1");
    const besides = await run({ name: "k1" });
    expect(besides.have["other addresses"], asText(besides)).to.equal("192.0.2.12/24");
    await machine.line.expectAll([[networkInterface, { name: "k1" }]], "ok");
  });

  it("a bridge gets its ports and its address", async () => {
    await expectConvergence({ name: "br9", bridge: { ports: ["k2"] }, addresses: ["198.51.100.1/24"] });
    expect(machine.line.shell("ls /sys/class/net/br9/brif")).to.equal("k2");
  });

  it("a change that cuts the connection reverts by itself, including the address of the connection", async () => {
    const own = machine.line.shell("ip -4 -o addr show dev host0 | awk '{ print $4 }'");
    const file = machine.line.shell("cat /etc/systemd/network/10-host0.network");
    const run = labSession(machine.node, "root", { runId: "cut" });
    const risk = { risk: "connectivity", confirm: 6 } as const;
    const drafts = [
      draftOf("old", stepOf(fileAbsent, { path: "/etc/systemd/network/10-host0.network" }), risk),
      draftOf("new", stepOf(networkInterface, { name: "host0", addresses: ["203.0.113.77/24"] }), risk),
    ];
    const result = await run.session.perform([{ stage: "s", drafts }]);
    await run.session.finish(result.outcome);
    expect(result.problem?.code, JSON.stringify(result)).to.equal("CONNECTIVITY_REVERTED");
    machine.line.drop();
    expect(machine.line.shell("ip -4 -o addr show dev host0 | awk '{ print $4 }'")).to.equal(own);
    expect(machine.line.shell("cat /etc/systemd/network/10-host0.network")).to.equal(file);
    expect(machine.line.shell("ls /etc/systemd/network")).not.to.contain("kcore-host0");
  });

  it("ifupdown and NetworkManager work the same", async () => {
    machine.line.shell(
      "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy ifupdown network-manager",
    );
    // NetworkManager read ifupdown's files when it started, and watches every link since.
    machine.line.shell(
      "systemctl start NetworkManager && for n in 3 4; do nmcli device set k$n managed no; done && for n in 5 6; do nmcli device set k$n managed yes; done",
    );
    const both = [
      { backend: "ifupdown", port: "k3", bridge: "br3", alone: "k4", net: "192.0.2" },
      { backend: "networkManager", port: "k5", bridge: "br5", alone: "k6", net: "198.51.100" },
    ];
    for (const { backend, port, bridge, alone, net } of both) {
      const args = { backend, name: alone, addresses: [`${net}.20/28`], mtu: 1400 };
      // The machine has a default route already, and ifupdown does not replace one.
      const gateways = backend === "ifupdown" ? [] : [`${net}.17`];
      await expectConvergence({ ...args, gateways, routes: [{ to: "203.0.113.0/24", via: `${net}.18` }] });
      expect(machine.line.shell("ip route show 203.0.113.0/24")).to.contain(`via ${net}.18 dev ${alone}`);
      await expectConvergence({ ...args, addresses: [`${net}.21/28`, "2001:db8:1::21/64"] });
      machine.line.shell(`ip addr flush dev ${alone} scope global`);
      await expectConvergence({ ...args, addresses: [`${net}.21/28`, "2001:db8:1::21/64"] });
      await expectConvergence({ backend, name: bridge, bridge: { ports: [port] }, addresses: [`${net}.65/28`] });
      expect(machine.line.shell(`ls /sys/class/net/${bridge}/brif`)).to.equal(port);
    }
    const several = await run({ name: "k1", dhcp: "ipv4" });
    expect(several.problem?.code, asText(several)).to.equal("NETWORK_UNMANAGED");
  });
});
