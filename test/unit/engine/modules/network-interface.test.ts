import { expect } from "chai";
import { networkInterface } from "#engine/modules/network-interface.ts";
import {
  ifupdownFiles,
  networkdFiles,
  networkManagerFiles,
  type WantedInterface,
} from "#engine/step/fragments/network-files.ts";

const given = (args: object): WantedInterface =>
  networkInterface.args.parse({ name: "eth1", ...args }) as WantedInterface;
describe("network.interface", () => {
  it("writes files for networkd, ifupdown and NetworkManager", () => {
    const vlan = given({ name: "eth1.10", vlan: { link: "eth1", id: 10 }, addresses: ["192.0.2.10/24"], mtu: 1400 });
    expect(networkdFiles(vlan)).to.deep.equal([
      {
        path: "/etc/systemd/network/10-kcore-eth1.10.netdev",
        mode: "0644",
        text: "[NetDev]\nName=eth1.10\nKind=vlan\nMTUBytes=1400\n\n[VLAN]\nId=10\n\n",
      },
      {
        path: "/etc/systemd/network/10-kcore-eth1.10.network",
        mode: "0644",
        text: "[Match]\nName=eth1.10\n\n[Link]\nMTUBytes=1400\n\n[Network]\nDHCP=no\nIPv6AcceptRA=no\nConfigureWithoutCarrier=yes\nAddress=192.0.2.10/24\n\n",
      },
    ]);
    expect(ifupdownFiles(vlan)).to.deep.equal([
      {
        path: "/etc/network/interfaces.d/kcore-eth1.10",
        mode: "0644",
        text: `auto eth1.10
iface eth1.10 inet static
  address 192.0.2.10/24
  pre-up ip link show dev eth1.10 >/dev/null 2>&1 || ip link add link eth1 name eth1.10 type vlan id 10
  pre-up ip link set eth1.10 mtu 1400
  pre-up ip link set eth1.10 up
  post-down ip link delete eth1.10
`,
      },
    ]);
    const bridge = given({ name: "br0", bridge: { ports: ["eth1"] }, dhcp: "ipv4", dns: ["192.0.2.53"] });
    expect(networkManagerFiles(bridge).map(({ path, mode }) => `${path} ${mode}`)).to.deep.equal([
      "/etc/NetworkManager/system-connections/kcore-br0.nmconnection 0600",
      "/etc/NetworkManager/system-connections/kcore-eth1.nmconnection 0600",
    ]);
    const [own, port] = networkManagerFiles(bridge).map(({ text }) => text);
    expect(own).to.contain("[bridge]\nstp=false\n").and.contain("[ipv4]\nmethod=auto\ndns=192.0.2.53;\n");
    expect(own).to.contain("[ipv6]\nmethod=link-local\n");
    expect(port).to.contain("master=br0\nslave-type=bridge\n");
  });

  it("accepts router advertisements in networkd only with DHCP for IPv6", () => {
    for (const [dhcp, accepts] of Object.entries({ none: "no", ipv4: "no", ipv6: "yes", both: "yes" })) {
      expect(networkdFiles(given({ dhcp }))[0]?.text, dhcp).to.contain(`\nIPv6AcceptRA=${accepts}\n`);
    }
  });
});
