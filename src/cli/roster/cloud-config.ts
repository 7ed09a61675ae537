import { createHash } from "node:crypto";
import { z } from "zod";
import { networkInterface } from "#engine/modules/network-interface.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { KeyPair } from "#engine/transport/key-pair.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError, usageError } from "#errors/problem.ts";

/** The files of cloud-init's datasource NoCloud, by their names. Without `network-config` cloud-init asks DHCP on the first interface. */
export interface SeedFiles {
  readonly "user-data": string;
  readonly "meta-data": string;
  readonly "network-config"?: string;
}

/**
 * The files for a node's first boot: the login of the roster with these keys, the host key, the names and the network. Nothing of a cluster is in them.
 * @throws KcoreError USAGE, ROSTER_INVALID
 */
export function seedFilesOf(node: NodeEntry, keys: readonly string[], hostKey: KeyPair): SeedFiles {
  const { name, user, id, vars } = node;
  if (!/^[a-z_][a-z0-9_-]*$/.test(user))
    throw usageError(
      `${user} of ${name} is no user that a first boot can make`,
      "a name of small letters, digits, “_” and “-” (user: in the roster)",
    );
  const isRoot = user === "root";
  const [hostname = name] = name.split(".");
  const config = {
    hostname,
    ...(hostname !== name && { fqdn: name }),
    users: [
      {
        name: user,
        // kcore becomes root without a password until a state says otherwise.
        ...(!isRoot && { sudo: "ALL=(ALL) NOPASSWD:ALL", lock_passwd: true }),
        ssh_authorized_keys: keys,
      },
    ],
    disable_root: !isRoot,
    ssh_pwauth: false,
    // The image's own host keys, which others may know, must not stay beside the pinned one.
    ssh_deletekeys: true,
    ssh_keys: { ed25519_private: hostKey.secret, ed25519_public: hostKey.line },
  };
  // cloud-init sets a machine up once for each instance: another host key is another instance.
  const digest = createHash("sha256").update(hostKey.line).digest("hex").slice(0, 8);
  return {
    "user-data": `#cloud-config\n${printYaml(config)}`,
    "meta-data": printYaml({ "instance-id": `${id}-${digest}`, "local-hostname": hostname }),
    ...omitUndefined({ "network-config": networkOf(name, vars["bootNetwork"]) }),
  };
}

/** The variable `bootNetwork`, arguments of network.interface, in the form of network-config (version 2). */
function networkOf(node: string, written: unknown): string | undefined {
  if (written === undefined) return undefined;
  const parsed = networkInterface.args.safeParse(written);
  const refuse = (message: string): never => {
    const hint = "kcore modules network.interface; without bootNetwork the machine asks DHCP";
    throw new KcoreError({ code: "ROSTER_INVALID", message: `bootNetwork of ${node}: ${message}`, hint });
  };
  if (!parsed.success) return refuse(z.prettifyError(parsed.error));
  const { name, addresses, dhcp, gateways, dns, domains, routes, mtu, vlan, bond, bridge } = parsed.data;
  if (vlan ?? bond ?? bridge) return refuse("a first boot sets up no VLAN, bond or bridge; a state does, later");
  const all = [
    // The word `default` is unknown to older versions.
    ...gateways.map((via) => ({ to: via.includes(":") ? "::/0" : "0.0.0.0/0", via })),
    ...routes.map(({ to, via, metric }) => ({ to, via, ...omitUndefined({ metric }) })),
  ];
  const link = {
    dhcp4: ["ipv4", "both"].includes(dhcp),
    dhcp6: ["ipv6", "both"].includes(dhcp),
    ...(addresses.length > 0 && { addresses }),
    ...(all.length > 0 && { routes: all }),
    ...(dns.length + domains.length > 0 && { nameservers: { addresses: dns, search: domains } }),
    ...omitUndefined({ mtu }),
  };
  return printYaml({ version: 2, ethernets: { [name]: link } });
}
