import { BlockList, isIP, SocketAddress } from "node:net";
import { z } from "zod";
import { defineModule } from "../step/define.ts";
import {
  backends,
  declareFiles,
  findBackend,
  applyFiles,
  readKind,
  refuseOthers,
  undoCommand,
} from "../step/fragments/network.ts";
import {
  allFiles,
  isIpv6,
  interfaceKind,
  interfaceMembers,
  type WantedInterface,
} from "../step/fragments/network-files.ts";
import { type NodeResource, pathsOf } from "../step/effects.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

/**
 * A name that the kernel accepts (dev_valid_name: 15 bytes), without characters special to sh, systemd or interfaces(5).
 */
const InterfaceName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/,
    "must be an interface's name of at most 15 letters, digits, “.”, “_” and “-”",
  )
  .refine((name) => !["lo", "all", "default"].includes(name), "is a name that the kernel keeps for itself");
/** An address, in the spelling of ip(8). */
const Address = z
  .string()
  .refine((text) => isIP(text) !== 0 && !text.includes("%"), "must be an IPv4 or IPv6 address")
  .transform(plain);
const NetworkAddress = z
  .string()
  .refine(isNetwork, "must be an address with the length of its network, such as 192.0.2.10/24")
  .transform((text) => `${plain(addressOf(text))}/${lengthOf(text)}`);

const args = z
  .strictObject({
    name: InterfaceName.describe(
      "The interface, as `ip link` shows it; for a VLAN, bond or bridge, what it shall be called.",
    ),
    backend: z.enum(backends).default("auto").describe("The network service of the node; auto: the one that runs."),
    addresses: z
      .array(NetworkAddress)
      .default([])
      .describe("The interface's addresses, each with the length of its network."),
    dhcp: z
      .enum(["none", "ipv4", "ipv6", "both"])
      .default("none")
      .describe("Whether the interface asks for more addresses by DHCP, or for IPv6 by router advertisements."),
    gateways: z.array(Address).max(2).default([]).describe("Default gateways, one for IPv4 and one for IPv6 at most."),
    dns: z.array(Address).default([]).describe("DNS servers."),
    domains: z
      .array(z.string().regex(/^~?[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$/, "must be a domain"))
      .default([])
      .describe("Domains in which short names are looked for."),
    routes: z
      .array(
        z
          .strictObject({
            to: NetworkAddress.describe("The network."),
            via: Address.describe("The router."),
            metric: z.int().min(0).max(4_294_967_295).optional().describe("The route with the lowest metric wins."),
          })
          .meta({ examples: [{ to: "198.51.100.0/24", via: "192.0.2.1", metric: 100 }] }),
      )
      .default([])
      .describe("Further routes."),
    mtu: z.int().min(576).max(65_535).optional().describe("Bytes of the largest packet; else not managed."),
    vlan: z
      .strictObject({
        link: InterfaceName.describe("The interface that carries the VLAN."),
        id: z.int().min(1).max(4094).describe("The VLAN's number (IEEE 802.1Q)."),
      })
      .optional()
      .describe("Makes the interface a VLAN of another one.")
      .meta({ examples: [{ link: "eth1", id: 20 }] }),
    bond: z
      .strictObject({
        members: z.array(InterfaceName).min(1).describe("The interfaces that the bond is made of."),
        mode: z
          .enum(["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"])
          .default("active-backup")
          .describe("How the members share the traffic."),
        miimon: z
          .int()
          .min(0)
          .max(60_000)
          .default(100)
          .describe("Milliseconds between two looks at the members' carriers."),
      })
      .optional()
      .describe("Makes the interface a bond of others.")
      .meta({ examples: [{ members: ["eth1", "eth2"], mode: "802.3ad", miimon: 100 }] }),
    bridge: z
      .strictObject({
        ports: z.array(InterfaceName).default([]).describe("The interfaces that the bridge connects."),
        stp: z.boolean().default(false).describe("Whether the bridge speaks the spanning tree protocol."),
      })
      .optional()
      .describe("Makes the interface a bridge.")
      .meta({ examples: [{ ports: ["eth1"], stp: false }] }),
  })
  .refine(({ vlan, bond, bridge }) => [vlan, bond, bridge].filter((kind) => kind !== undefined).length <= 1, {
    message: "is one of vlan, bond and bridge",
  })
  .refine((given) => ![...interfaceMembers(given), given.vlan?.link].includes(given.name), "is made of itself")
  .refine(
    ({ gateways }) => new Set(gateways.map(isIpv6)).size === gateways.length,
    "has one gateway for IPv4 and one for IPv6 at most",
  )
  .refine(({ addresses, gateways, dhcp }) => dhcp !== "none" || gateways.every((one) => isNear(one, addresses)), {
    message: "a gateway must be in the network of one of the addresses",
    path: ["gateways"],
  })
  .refine(
    ({ mtu = 1500, addresses, dhcp }) => mtu >= 1280 || (!addresses.some(isIpv6) && ["none", "ipv4"].includes(dhcp)),
    {
      message: "IPv6 needs an MTU of 1280 at least (RFC 8200, section 5)",
      path: ["mtu"],
    },
  );

/**
 * ```yaml
 * network.interface: { name: eth1, addresses: [192.0.2.10/24], gateways: [192.0.2.1] }
 * ```
 * Configures an interface, now and at every boot, by systemd-networkd, NetworkManager or ifupdown. kcore writes files of
 * its own for the interface and its members, and applies them at once. The step is in order only if the kernel has the
 * configuration, too. A file of other origin that takes precedence is refused. With the key `risk: connectivity` the node
 * reverts a change that cuts it off.
 */
export const networkInterface = defineModule({
  name: "network.interface",
  summary: "Keeps a network interface, VLAN, bond or bridge with its addresses and routes.",
  alsoKnownAs: ["nmcli", "interfaces_file", "network.managed", "netplan", "networkd", "ip", "vlan", "bond", "bridge"],
  args,
  refusals: ["FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "NETWORK_ELSEWHERE", "NETWORK_UNMANAGED", "NIXOS_MANAGED"],
  step: ({ backend, ...wanted }) => {
    const { name, addresses, gateways, dhcp, mtu } = wanted;
    const members = interfaceMembers(wanted);
    const links = [name, ...members].map(linkOf);
    const findFiles = sh`${findBackend(backend)}
${declareFiles(wanted)}`;
    const kind = interfaceKind(wanted);
    const want = {
      configuration: "as wanted",
      link: "up",
      ...(kind === undefined ? {} : { kind }),
      ...(mtu === undefined ? {} : { mtu: String(mtu) }),
      ...(dhcp === "none" ? { "other addresses": "none" } : {}),
      ...Object.fromEntries(addresses.map((address) => [`address ${address}`, "present"])),
      ...Object.fromEntries(gateways.map((gateway) => [`gateway ${gateway}`, "present"])),
      ...Object.fromEntries(members.map((member) => [`member ${member}`, `of ${name}`])),
    };
    return {
      effects: {
        writes: [...links, ...pathsOf(allFiles(wanted))],
        reads: [
          ...links,
          ...(wanted.vlan ? [linkOf(wanted.vlan.link)] : []),
          ...["/etc/systemd/network", "/etc/network", "/etc/NetworkManager"].map(
            (path) => ({ is: "tree", path }) as const,
          ),
          ...["systemd-networkd.service", "NetworkManager.service"].map(
            (one) => ({ is: "service", name: one }) as const,
          ),
          { is: "packages" },
        ],
      },
      tools: [{ command: "ip", package: "iproute2" }],
      want,
      probe: sh`${findFiles}
fact backend "$backend"
${live(wanted)}`,
      guard: sh`not_nixos /etc/systemd/network
${findFiles}
${refuseOthers(wanted)}
for one in ${[...members, ...(wanted.vlan ? [wanted.vlan.link] : []), ...(kind === undefined ? [name] : [])]}; do
  [ -e "/sys/class/net/$one" ] || ! unsure || exit 1
  [ -e "/sys/class/net/$one" ] || refuse NETWORK_UNMANAGED "this node has no interface $one; it has $(cd /sys/class/net && echo ./* | sed 's#[.]/##g')"
done`,
      keep: sh`${findFiles}
keep_file() { keep_path "$1"; }
each_file keep_file || exit 1
${undoCommand(wanted)}
on_revert "$undo"`,
      apply: sh`${findFiles}
put_one() { parent_of "$1" 1 && put_file "$3" "$1" "$2" root root; }
${applyFiles(wanted, sh`each_file put_one || exit 1`)}
# Waits at most 40 s until the network is as wanted twice in a row: networkd removes addresses once more before it has finished, and members join late.
tries=0 seen=0
while [ "$seen" -lt 2 ] && [ "$tries" -lt 80 ]; do
  tries=$((tries + 1))
  sleep 0.5
  if ${isSettled(wanted, want)}; then seen=$((seen + 1)); else seen=0; fi
done`,
      timeout: 120,
    };
  },
});

/** The resource of an interface, for dry runs. */
function linkOf(name: string): NodeResource {
  return { is: "path", path: `/sys/class/net/${name}` };
}

/** Reports the facts of the running network, and whether the files are as wanted. */
function live(wanted: WantedInterface): Sh {
  const { name, addresses, gateways, dhcp, mtu } = wanted;
  const members = interfaceMembers(wanted);
  return sh`configuration='as wanted'
compare() {
  if [ ! -f "$1" ]; then configuration=absent; elif ! cmp -s "$3" "$1"; then configuration=different; fi
}
each_file compare
fact configuration "$configuration"
line=$(ip -o link show dev ${name} 2>/dev/null)
flags=\${line#*<} flags=,\${flags%%>*},
case $line:$flags in :*) fact link absent ;; *,UP,*) fact link up ;; *) fact link down ;; esac
${readKind(wanted)}
[ -z "$kind" ] || fact kind "$kind"
${
  mtu === undefined
    ? sh``
    : sh`size=absent
{ read -r size <${`/sys/class/net/${name}/mtu`}; } 2>/dev/null
fact mtu "$size"`
}
found=$(ip -o addr show dev ${name} 2>/dev/null | awk '$3 == "inet" || $3 == "inet6" { print $4 }')
has() { printf '%s\n' "$found" | grep -Fxq -e "$1"; }
${shLines(addresses.map((address) => sh`if has ${address}; then fact ${`address ${address}`} present; else fact ${`address ${address}`} absent; fi`))}
${
  dhcp === "none"
    ? sh`others=$(ip -o addr show dev ${name} scope global permanent 2>/dev/null | awk '{ print $4 }' | grep -Fxv -e none ${addresses.flatMap((one) => ["-e", one])} | sort | tr '\n' ' ')
others=\${others% }
fact 'other addresses' "\${others:-none}"`
    : sh``
}
routes=$(ip -4 route show default dev ${name} 2>/dev/null; ip -6 route show default dev ${name} 2>/dev/null) || routes=
${shLines(gateways.map((gateway) => sh`case "$routes " in *${` via ${gateway} `}*) fact ${`gateway ${gateway}`} present ;; *) fact ${`gateway ${gateway}`} absent ;; esac`))}
${shLines(
  members.map(
    (member) => sh`master=$(readlink -f ${`/sys/class/net/${member}/master`}) || master=
master=\${master##*/}
case $master in '' | master) fact ${`member ${member}`} free ;; *) fact ${`member ${member}`} "of $master" ;; esac`,
  ),
)}`;
}

/** sh condition: the running network is as wanted, and networkd has finished. */
function isSettled(wanted: WantedInterface, want: Readonly<Record<string, string>>): Sh {
  const each = Object.entries(want).map(([name, value]) => sh`${`${name}=${value}`}) ;;`);
  return sh`(
    fact() {
      case $1=$2 in
        ${shLines(each)}
        *) exit 1 ;;
      esac
    }
    ${live(wanted)}
    [ "$backend" != networkd ] || networkctl status ${wanted.name} 2>/dev/null | grep -q '(configured)'
  )`;
}

function plain(address: string): string {
  return isIpv6(address) ? new SocketAddress({ address, family: "ipv6" }).address : address;
}

function addressOf(network: string): string {
  return network.slice(0, network.indexOf("/"));
}

function lengthOf(network: string): number {
  return Number(network.slice(network.indexOf("/") + 1));
}

function isNetwork(text: string): boolean {
  const version = /^[^%/]+\/\d{1,3}$/.test(text) ? isIP(addressOf(text)) : 0;
  return version !== 0 && lengthOf(text) <= (version === 6 ? 128 : 32);
}

/** Whether the address is in one of these networks, or link-local. */
function isNear(address: string, networks: readonly string[]): boolean {
  // A link-local router is reachable from every IPv6 interface.
  if (/^fe[89ab]/i.test(address)) return true;
  const family = isIpv6(address) ? "ipv6" : "ipv4";
  const near = new BlockList();
  for (const network of networks.filter((one) => isIpv6(one) === isIpv6(address)))
    near.addSubnet(addressOf(network), lengthOf(network), family);
  return near.check(address, family);
}
