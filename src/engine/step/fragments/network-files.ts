/** The wanted state of one interface, independent of the program that configures it. */
export interface WantedInterface {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly dhcp: "none" | "ipv4" | "ipv6" | "both";
  readonly gateways: readonly string[];
  readonly dns: readonly string[];
  readonly domains: readonly string[];
  readonly routes: readonly { readonly to: string; readonly via: string; readonly metric?: number | undefined }[];
  readonly mtu?: number | undefined;
  readonly vlan?: { readonly link: string; readonly id: number } | undefined;
  readonly bond?: { readonly members: readonly string[]; readonly mode: string; readonly miimon: number } | undefined;
  readonly bridge?: { readonly ports: readonly string[]; readonly stp: boolean } | undefined;
}

export interface NetworkFile {
  readonly path: string;
  readonly mode: string;
  readonly text: string;
}

export function isIpv6(address: string): boolean {
  return address.includes(":");
}

/** The interfaces that belong to a bond or a bridge. */
export function interfaceMembers({ bond, bridge }: WantedInterface): readonly string[] {
  return bond?.members ?? bridge?.ports ?? [];
}

/** The kind of an interface that kcore makes, as a fact; undefined for a network card. */
export function interfaceKind({ vlan, bond, bridge }: WantedInterface): string | undefined {
  if (vlan) return `vlan ${vlan.id} on ${vlan.link}`;
  if (bond) return `bond ${bond.mode}`;
  return bridge && `bridge, STP ${bridge.stp ? "yes" : "no"}`;
}

/** The file by which systemd-networkd makes the interface. */
export function netdevPath(name: string): string {
  return `/etc/systemd/network/10-kcore-${name}.netdev`;
}

/**
 * The files of systemd.network(5) and systemd.netdev(5), without the drop-in that adds a VLAN to the file of its link: only
 * the node knows that file's name.
 */
export function networkdFiles(wanted: WantedInterface): readonly NetworkFile[] {
  const { name, vlan, bond, bridge, dhcp, addresses, gateways, dns, domains, routes, mtu } = wanted;
  const kind = vlan ? "vlan" : bond ? "bond" : "bridge";
  const netdev = section("NetDev", [
    ["Name", name],
    ["Kind", kind],
    ...(mtu === undefined ? [] : [["MTUBytes", mtu] as const]),
  ]);
  const own = vlan
    ? section("VLAN", [["Id", vlan.id]])
    : bond
      ? section("Bond", [
          ["Mode", bond.mode],
          ["MIIMonitorSec", `${bond.miimon}ms`],
        ])
      : section("Bridge", [["STP", bridge?.stp === true ? "yes" : "no"]]);
  const network = [
    section("Match", [["Name", name]]),
    mtu === undefined ? "" : section("Link", [["MTUBytes", mtu]]),
    section("Network", [
      ["DHCP", { none: "no", ipv4: "ipv4", ipv6: "ipv6", both: "yes" }[dhcp]],
      // networkd accepts router advertisements by default, even without DHCP.
      ["IPv6AcceptRA", ["ipv6", "both"].includes(dhcp) ? "yes" : "no"],
      // A bridge without a port has no carrier, and gets its addresses nevertheless.
      ...(addresses.length > 0 ? [["ConfigureWithoutCarrier", "yes"] as const] : []),
      ...addresses.map((address) => ["Address", address] as const),
      ...gateways.map((gateway) => ["Gateway", gateway] as const),
      ...dns.map((server) => ["DNS", server] as const),
      ...(domains.length > 0 ? [["Domains", domains.join(" ")] as const] : []),
    ]),
    ...routes.map(({ to, via, metric }) =>
      section("Route", [
        ["Destination", to],
        ["Gateway", via],
        ...(metric === undefined ? [] : [["Metric", metric] as const]),
      ]),
    ),
  ];
  const file = (of: string, end: string, text: string): NetworkFile => ({
    path: `/etc/systemd/network/10-kcore-${of}.${end}`,
    mode: "0644",
    text,
  });
  return [
    ...((vlan ?? bond ?? bridge) ? [{ path: netdevPath(name), mode: "0644", text: netdev + own }] : []),
    file(name, "network", network.join("")),
    ...interfaceMembers(wanted).map((member) =>
      file(
        member,
        "network",
        section("Match", [["Name", member]]) +
          section("Network", [
            [bond ? "Bond" : "Bridge", name],
            ["LinkLocalAddressing", "no"],
          ]),
      ),
    ),
  ];
}

/** The section that a VLAN adds to the file of its link. */
export function networkdVlan(name: string): string {
  return section("Network", [["VLAN", name]]);
}

/** The file of interfaces(5). VLANs, bonds and bridges are made by ip-link(8), so that no package of hooks is needed. */
export function ifupdownFiles(wanted: WantedInterface): readonly NetworkFile[] {
  const { name, vlan, bond, bridge, dhcp, addresses, gateways, dns, domains, routes, mtu } = wanted;
  const make = vlan
    ? [`ip link add link ${vlan.link} name ${name} type vlan id ${vlan.id}`]
    : bond
      ? [`ip link add ${name} type bond mode ${bond.mode} miimon ${bond.miimon}`]
      : bridge
        ? [`ip link add ${name} type bridge stp_state ${bridge.stp ? 1 : 0}`]
        : [];
  const options = [
    ...make.map((command) => `pre-up ip link show dev ${name} >/dev/null 2>&1 || ${command}`),
    // A bond takes no member that is up.
    ...interfaceMembers(wanted).flatMap((member) => [
      ...(bond ? [`pre-up ip link set ${member} down`] : []),
      `pre-up ip link set ${member} master ${name}`,
      `pre-up ip link set ${member} up`,
    ]),
    ...(mtu === undefined ? [] : [`pre-up ip link set ${name} mtu ${mtu}`]),
    `pre-up ip link set ${name} up`,
    ...(make.length > 0 ? [`post-down ip link delete ${name}`] : []),
    ...(dns.length > 0 ? [`dns-nameservers ${dns.join(" ")}`] : []),
    ...(domains.length > 0 ? [`dns-search ${domains.join(" ")}`] : []),
    ...routes.map(
      ({ to, via, metric }) =>
        `up ip route replace ${to} via ${via} dev ${name}${metric === undefined ? "" : ` metric ${metric}`}`,
    ),
  ];
  const stanzas = (["inet", "inet6"] as const).flatMap((family) => {
    const is6 = family === "inet6";
    const gateway = gateways.filter((one) => isIpv6(one) === is6).map((one) => `gateway ${one}`);
    const automatic = dhcp === "both" || dhcp === (is6 ? "ipv6" : "ipv4");
    const own = addresses.filter((one) => isIpv6(one) === is6);
    return [
      ...(automatic ? [[`iface ${name} ${family} ${is6 ? "auto" : "dhcp"}`]] : []),
      ...own.map((one, index) => [`iface ${name} ${family} static`, `address ${one}`, ...(index === 0 ? gateway : [])]),
    ];
  });
  const [first = [`iface ${name} inet manual`], ...others] = stanzas;
  const text = [[...first, ...options], ...others].map((lines) => `${lines.join("\n  ")}\n`).join("\n");
  return [{ path: `/etc/network/interfaces.d/kcore-${name}`, mode: "0644", text: `auto ${name}\n${text}` }];
}

/** The files of nm-settings-keyfile(5). */
export function networkManagerFiles(wanted: WantedInterface): readonly NetworkFile[] {
  const { name, vlan, bond, bridge, dhcp, addresses, gateways, dns, domains, routes, mtu } = wanted;
  const file = (of: string, text: string): NetworkFile => ({
    path: `/etc/NetworkManager/system-connections/kcore-${of}.nmconnection`,
    // NetworkManager ignores files that other users can read.
    mode: "0600",
    text,
  });
  const connection = (of: string, type: string, more: Settings = []): string =>
    section("connection", [
      ["id", `kcore-${of}`],
      ["type", type],
      ["interface-name", of],
      ["autoconnect-priority", 100],
      ...more,
    ]);
  const family = (is6: boolean): string => {
    const automatic = dhcp === "both" || dhcp === (is6 ? "ipv6" : "ipv4");
    const own = addresses.filter((one) => isIpv6(one) === is6);
    const of = (list: readonly string[]): readonly string[] => list.filter((one) => isIpv6(one) === is6);
    const servers = own.length > 0 || automatic ? of(dns) : [];
    return section(is6 ? "ipv6" : "ipv4", [
      ["method", automatic ? "auto" : own.length > 0 ? "manual" : is6 ? "link-local" : "disabled"],
      ...own.map((address, index) => [`address${index + 1}`, address] as const),
      ...of(gateways).map((gateway) => ["gateway", gateway] as const),
      ...(servers.length > 0 ? [["dns", `${servers.join(";")};`] as const] : []),
      ...(domains.length > 0 && (own.length > 0 || automatic)
        ? [["dns-search", `${domains.join(";")};`] as const]
        : []),
      ...routes
        .filter(({ via }) => isIpv6(via) === is6)
        .map(
          ({ to, via, metric }, index) =>
            [`route${index + 1}`, `${to},${via}${metric === undefined ? "" : `,${metric}`}`] as const,
        ),
    ]);
  };
  const type = vlan ? "vlan" : bond ? "bond" : bridge ? "bridge" : "ethernet";
  const own = vlan
    ? section("vlan", [
        ["id", vlan.id],
        ["parent", vlan.link],
      ])
    : bond
      ? section("bond", [
          ["mode", bond.mode],
          ["miimon", bond.miimon],
        ])
      : bridge
        ? section("bridge", [["stp", bridge.stp]])
        : "";
  const link = mtu === undefined ? "" : section("ethernet", [["mtu", mtu]]);
  return [
    file(name, connection(name, type) + link + own + family(false) + family(true)),
    ...interfaceMembers(wanted).map((member) =>
      file(
        member,
        connection(member, "ethernet", [
          ["master", name],
          ["slave-type", type],
        ]),
      ),
    ),
  ];
}

/** The paths of kcore's files for the interface and its members, of every backend; without a VLAN's drop-in. */
export function allFiles(wanted: WantedInterface): readonly string[] {
  return [networkdFiles, ifupdownFiles, networkManagerFiles].flatMap((files) => files(wanted).map(({ path }) => path));
}

type Settings = readonly (readonly [string, string | number | boolean])[];

function section(name: string, lines: Settings): string {
  return `[${name}]\n${lines.map(([key, value]) => `${key}=${value}\n`).join("")}\n`;
}
