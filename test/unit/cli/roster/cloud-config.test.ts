import { expect } from "chai";
import { seedFilesOf } from "#cli/roster/cloud-config.ts";
import { makeKeyPair } from "#engine/transport/key-pair.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { problemsIn } from "#support/problems.ts";
import { nodeEntry } from "#support/runs.ts";

const hostKey = makeKeyPair("n4");
const keys = ["ssh-ed25519 AAAA ops"];
const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";

function filesOf(changes: Partial<NodeEntry> = {}): Readonly<Record<string, unknown>> {
  const files = seedFilesOf(nodeEntry("n4", { id, user: "ops", ...changes }), keys, hostKey);
  expect(files["user-data"]).to.match(/^#cloud-config\n/);
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [name, parsePlainYaml(text as string)]));
}

describe("the files of a first boot", () => {
  it("make the roster's user with its keys, the host key and the names, and leave the network to DHCP", () => {
    const { "user-data": userData, "meta-data": metaData, ...others } = filesOf();
    expect(userData).to.deep.equal({
      hostname: "n4",
      users: [{ name: "ops", sudo: "ALL=(ALL) NOPASSWD:ALL", lock_passwd: true, ssh_authorized_keys: keys }],
      disable_root: true,
      ssh_pwauth: false,
      ssh_deletekeys: true,
      ssh_keys: { ed25519_private: hostKey.secret, ed25519_public: hostKey.line },
    });
    expect(metaData).to.have.property("local-hostname", "n4");
    expect(others).to.deep.equal({});
  });

  it("let root in by the key where the roster logs in as root, and write a name with dots whole", () => {
    expect(filesOf({ user: "root", name: "n4.example.net" })["user-data"]).to.deep.include({
      hostname: "n4",
      fqdn: "n4.example.net",
      users: [{ name: "root", ssh_authorized_keys: keys }],
      disable_root: false,
    });
  });

  it("are those of another instance when the host key is another, and of the same one else", () => {
    const instance = (pair = hostKey): unknown => {
      const text = seedFilesOf(nodeEntry("n4", { id }), keys, pair)["meta-data"];
      return (parsePlainYaml(text) as Record<string, unknown>)["instance-id"];
    };
    expect(instance())
      .to.equal(instance())
      .and.match(new RegExp(`^${id}-[0-9a-f]{8}$`));
    expect(instance(makeKeyPair("n4"))).not.to.equal(instance());
  });

  it("set the interface of bootNetwork up, by the words of network.interface", () => {
    const bootNetwork = {
      name: "eth0",
      addresses: ["192.0.2.11/24", "2001:db8::11/64"],
      gateways: ["192.0.2.1", "2001:db8::1"],
      routes: [{ to: "198.51.100.0/24", via: "192.0.2.2" }],
      dns: ["192.0.2.53"],
      domains: ["example.net"],
      mtu: 1400,
    };
    expect(filesOf({ vars: { bootNetwork } })["network-config"]).to.deep.equal({
      version: 2,
      ethernets: {
        eth0: {
          dhcp4: false,
          dhcp6: false,
          addresses: ["192.0.2.11/24", "2001:db8::11/64"],
          routes: [
            { to: "0.0.0.0/0", via: "192.0.2.1" },
            { to: "::/0", via: "2001:db8::1" },
            { to: "198.51.100.0/24", via: "192.0.2.2" },
          ],
          nameservers: { addresses: ["192.0.2.53"], search: ["example.net"] },
          mtu: 1400,
        },
      },
    });
    expect(filesOf({ vars: { bootNetwork: { name: "eth0", dhcp: "both" } } })["network-config"]).to.deep.equal({
      version: 2,
      ethernets: { eth0: { dhcp4: true, dhcp6: true } },
    });
  });

  it("are refused for a network that a first boot cannot set up, and for a user that it cannot make", () => {
    const refusal = (changes: Partial<NodeEntry>): string => problemsIn(() => filesOf(changes)).join("\n");
    expect(refusal({ vars: { bootNetwork: { name: "eth0", addresses: ["192.0.2.11"] } } }))
      .to.contain("bootNetwork of n4")
      .and.contain("192.0.2.10/24")
      .and.contain("[ROSTER_INVALID]");
    const vlan = { name: "v20", vlan: { link: "eth0", id: 20 } };
    expect(refusal({ vars: { bootNetwork: vlan } })).to.contain("no VLAN, bond or bridge");
    expect(refusal({ user: "CORP\\ada" }))
      .to.contain("no user that a first boot can make")
      .and.contain("[USAGE]");
  });
});
