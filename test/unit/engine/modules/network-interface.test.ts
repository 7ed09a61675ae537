import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { networkInterface } from "#engine/modules/network-interface.ts";
import {
  ifupdownFiles,
  networkdFiles,
  networkManagerFiles,
  type Interface,
} from "#engine/step/fragments/network-files.ts";
import { rawSh, sh } from "#engine/step/sh.ts";
import { makeTempDir } from "#support/temp-dir.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const given = (args: object): Interface => networkInterface.args.parse({ name: "eth1", ...args }) as Interface;
const complaint = (args: object): string =>
  networkInterface.args
    .safeParse({ name: "eth1", ...args })
    .error?.issues.map(({ message }) => message)
    .join() ?? "";

describe("network.interface", () => {
  it("wants what runs, in the spelling of ip(8), and nothing besides", () => {
    const addresses = ["192.0.2.10/24", "2001:DB8:0:0::10/64"];
    const { want } = stepOf(networkInterface, { name: "eth1", addresses, gateways: ["192.0.2.1"], mtu: 9000 });
    expect(want).to.deep.equal({
      configuration: "as wanted",
      link: "up",
      mtu: "9000",
      "other addresses": "none",
      "address 192.0.2.10/24": "present",
      "address 2001:db8::10/64": "present",
      "gateway 192.0.2.1": "present",
    });
    const bond = stepOf(networkInterface, { name: "bond0", bond: { members: ["eth1"] }, dhcp: "ipv4" }).want;
    expect(bond).to.deep.equal({
      configuration: "as wanted",
      link: "up",
      kind: "bond active-backup",
      "member eth1": "of bond0",
    });
  });

  it("refuses what no kernel or no network takes", () => {
    const near = "a gateway must be in the network of one of the addresses";
    expect(complaint({ addresses: ["192.0.2.10/24"], gateways: ["198.51.100.1"] })).to.equal(near);
    expect(complaint({ addresses: ["192.0.2.10/24"], gateways: ["2001:db8::1"] })).to.equal(near);
    expect(complaint({ addresses: ["2001:db8::2/64"], gateways: ["fe80::1"] })).to.equal("");
    expect(complaint({ addresses: ["192.0.2.10/33"] })).to.contain("such as 192.0.2.10/24");
    expect(complaint({ addresses: ["192.0.2.10"] })).to.contain("such as 192.0.2.10/24");
    expect(complaint({ name: "a-name-too-long-by-1" })).to.contain("15");
    for (const name of ["lo", "../x", "a b", "-x", "$(x)"]) expect(complaint({ name }), name).not.to.equal("");
    for (const id of [0, 4095]) expect(complaint({ vlan: { link: "eth0", id } }), String(id)).not.to.equal("");
    expect(complaint({ bond: { members: [] } })).not.to.equal("");
    expect(complaint({ bond: { members: ["eth1"] } })).to.equal("is made of itself");
    expect(complaint({ vlan: { link: "eth0", id: 1 }, bridge: {} })).to.equal("is one of vlan, bond and bridge");
    expect(complaint({ mtu: 1000, addresses: ["2001:db8::2/64"] })).to.contain("1280");
    expect(complaint({ gateways: ["192.0.2.1", "192.0.2.2"], dhcp: "both" })).to.contain("one gateway for IPv4");
  });

  it("says it to each program in its own words", () => {
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

  it("lets networkd listen to routers where IPv6 is asked for, and nowhere else", () => {
    for (const [dhcp, accepts] of Object.entries({ none: "no", ipv4: "no", ipv6: "yes", both: "yes" })) {
      const text = networkdFiles(given({ dhcp }))[0]?.text;
      expect(text, dhcp).to.contain(`\nIPv6AcceptRA=${accepts}\n`);
    }
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      /** What the guard says on a node with these files below /etc, and this `networkctl status`. */
      const refusal = async (
        args: object,
        files: Readonly<Record<string, string>>,
        networkFile = "",
      ): Promise<string> => {
        const root = await makeTempDir("etc");
        try {
          for (const [name, text] of Object.entries(files)) {
            await mkdir(dirname(join(root.path, name)), { recursive: true });
            await writeFile(join(root.path, name), text);
          }
          const { want, guard } = stepOf(networkInterface, args);
          const text = String(guard).replaceAll(/\/etc\/(?=network|systemd|NetworkManager)/g, `${root.path}/`);
          const bin = {
            systemctl: 'case $* in *"is-active systemd-networkd") ;; *) exit 1 ;; esac',
            networkctl: `echo " Network File: ${networkFile && join(root.path, networkFile)}"`,
            ifup: "exit 1",
          };
          const step = { want, probe: sh`:`, guard: rawSh(text), apply: sh`exit 1` };
          const { problem } = await runStepOn(shell, step, { bin });
          return `${problem?.code ?? ""} ${problem?.message ?? ""}`.replaceAll(`${root.path}/`, "/etc/");
        } finally {
          await root.remove();
        }
      };

      it("takes for read by ifupdown only what it reads", async () => {
        const read = async (line: string, name = "none0"): Promise<boolean> => {
          const files = { "network/interfaces": `${line}\n`, "network/interfaces.d/x": "" };
          return !(await refusal({ name, backend: "ifupdown" }, files)).includes("does not read");
        };
        for (const line of ["source /etc/network/interfaces.d/*", "  source  interfaces.d/*"])
          expect(await read(line.replace("/etc/network/", "")), line).to.equal(true);
        expect(await read("source-directory interfaces.d"), "a folder").to.equal(true);
        // Such lines read no file of the name kcore-none0, or of one with a dot.
        for (const line of ["source interfaces.d/*.cfg", "source interfaces.d/eth*", "#source interfaces.d/*", ""])
          expect(await read(line), line).to.equal(false);
        expect(await read("source-directory interfaces.d", "none0.10"), "a dot").to.equal(false);
      });

      it("refuses what another file says of a member", async () => {
        const bond = { name: "bond0", bond: { members: ["none0"] } };
        const stanza = "source interfaces.d/*\niface none0 inet dhcp\n";
        expect(await refusal({ ...bond, backend: "ifupdown" }, { "network/interfaces": stanza })).to.equal(
          "NETWORK_ELSEWHERE none0 is configured by another file already: /etc/network/interfaces",
        );
        const earlier = "systemd/network/05-none0.network";
        expect(await refusal(bond, { [earlier]: "" }, earlier)).to.equal(
          `NETWORK_ELSEWHERE bond0 is configured by another file already: /etc/${earlier}`,
        );
        const later = "systemd/network/80-all.network";
        expect(await refusal(bond, { [later]: "" }, later)).to.match(
          /^NETWORK_UNMANAGED this node has no interface none0/,
        );
      });

      it("refuses a VLAN that another link's file still makes", async () => {
        const vlan = { name: "none0.10", vlan: { link: "none1", id: 10 } };
        const own = "systemd/network/10-kcore-none1.network";
        const old = "systemd/network/10-kcore-none0.network";
        const files = { [own]: "", [`${old}.d/kcore-none0.10.conf`]: "", [`${own}.d/kcore-none0.10.conf`]: "" };
        expect(await refusal(vlan, { ...files, [old]: "" }, own)).to.equal(
          `NETWORK_ELSEWHERE none0.10 is configured by another file already: /etc/${old}.d/kcore-none0.10.conf`,
        );
        // Without its file a drop-in is read by nobody.
        expect(await refusal(vlan, files, own)).to.match(/^NETWORK_UNMANAGED this node has no interface none1/);
      });
    });
});
