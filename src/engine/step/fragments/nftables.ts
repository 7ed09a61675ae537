import { nonBlankLines } from "#base/text.ts";
import { sh, shLines, type Sh } from "../sh.ts";

/** Traffic to allow; an empty list of ports, addresses or interfaces means any. */
export interface AllowRule {
  readonly protocol: "tcp" | "udp" | "sctp" | "any";
  readonly ports: readonly string[];
  readonly from: readonly string[];
  readonly interfaces: readonly string[];
  readonly comment?: string | undefined;
}

/** A table of the family inet with a chain `input`. */
export interface NftTable {
  readonly name: string;
  readonly input: "drop" | "accept";
  readonly icmp: boolean;
  readonly allow: readonly AllowRule[];
  /** Further lines of the chain `input`, in nft(8)'s syntax. */
  readonly rules: string;
  /** Further lines of the table, in nft(8)'s syntax. */
  readonly more: string;
}

/** Protocols by IANA's numbers: nft knows no names on a node without /etc/protocols (netbase). */
const numbers = { icmp: 1, tcp: 6, udp: 17, icmpv6: 58, sctp: 132 } as const;

/**
 * The table as `nft -f` loads it, in one transaction and without a change of any other table. The first line makes a
 * missing table, so that the second can delete it.
 */
export function tableText({ name, input, icmp, allow, rules, more }: NftTable): string {
  const chain = [
    `type filter hook input priority filter; policy ${input};`,
    "ct state established,related accept",
    'iifname "lo" accept',
    // RFC 4890, 4.4.1: IPv6 does not work without these messages. RFC 8415, 7.2: an answer to a multicast request is related to
    // no connection.
    "icmpv6 type { nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert, mld-listener-query } accept",
    "ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept",
    ...(icmp ? [`meta l4proto { ${numbers.icmp}, ${numbers.icmpv6} } accept`] : []),
    ...allow.flatMap(ruleLines),
    ...nonBlankLines(rules),
  ];
  return `# Managed by kcore.
table inet ${name}
delete table inet ${name}
table inet ${name} {
${nonBlankLines(more)
  .map((line) => `\t${line}\n`)
  .join("")}\tchain input {
${chain.map((line) => `\t\t${line}\n`).join("")}\t}
}
`;
}

/** One rule, or one rule for each address family in `from`. */
function ruleLines({ protocol, ports, from, interfaces, comment }: AllowRule): string[] {
  const families = [
    { word: "ip", of: from.filter((address) => !address.includes(":")) },
    { word: "ip6", of: from.filter((address) => address.includes(":")) },
  ].filter(({ of }) => of.length > 0);
  const sources = from.length === 0 ? [""] : families.map(({ word, of }) => `${word} saddr ${setOf(of)}`);
  const match =
    protocol === "any"
      ? ""
      : ports.length === 0
        ? `meta l4proto ${numbers[protocol]}`
        : `${protocol} dport ${setOf(ports)}`;
  return sources.map((source) =>
    [
      interfaces.length === 0 ? "" : `iifname ${setOf(interfaces.map((one) => `"${one}"`))}`,
      source,
      match,
      "accept",
      comment === undefined ? "" : `comment "${comment}"`,
    ]
      .filter((word) => word !== "")
      .join(" "),
  );
}

function setOf(members: readonly string[]): string {
  return members.length === 1 ? (members[0] ?? "") : `{ ${members.join(", ")} }`;
}

/**
 * Prints the table of the file in the kernel's form: `nft -s list`, without counters and other state, in a new network
 * namespace.
 */
export function printCanonical(file: Sh, table: string): Sh {
  return sh`unshare -n sh -c 'nft -f "$1" && nft -s list table inet "$2"' nft ${file} ${table}`;
}

/** Reports the fact `rules`: `as wanted` if the kernel has the file's table, `absent`, or the added (+) and missing (-) lines. */
export function probeRules(path: string, table: string): Sh {
  return sh`if ! nft -s list table inet ${table} >"$K_TMP/nft.now" 2>/dev/null; then fact rules absent
elif ! ${printCanonical(sh`${path}`, table)} >"$K_TMP/nft.wanted" 2>/dev/null; then fact rules "not to be compared: nft does not load "${path}
elif cmp -s "$K_TMP/nft.now" "$K_TMP/nft.wanted"; then fact rules "as wanted"
else
  lines=$(grep -vxF -f "$K_TMP/nft.wanted" "$K_TMP/nft.now" | sed -n 's/^[[:blank:]]*\([^[:blank:]]\)/+ \1/p'
    grep -vxF -f "$K_TMP/nft.now" "$K_TMP/nft.wanted" | sed -n 's/^[[:blank:]]*\([^[:blank:]]\)/- \1/p')
  fact rules "\${lines:-in another order}"
fi`;
}

/**
 * Refuses rules that would lock ssh out. The rules must allow this session's port from the session's address, which sshd
 * gives in SSH_CONNECTION (sshd(8)) of this process or a parent. Without SSH_CONNECTION each port of sshd must be in some
 * rule, whose addresses and interfaces are not checked.
 */
export function refuseLockout(allow: readonly AllowRule[]): Sh {
  const ways = allow.filter(({ protocol }) => protocol === "tcp" || protocol === "any");
  return sh`session=\${SSH_CONNECTION-} seek=$$
while [ -z "$session" ] && [ "$seek" -gt 1 ]; do
  session=$(tr '\0' '\n' <"/proc/$seek/environ" 2>/dev/null | sed -n 's/^SSH_CONNECTION=//p')
  read -r stat <"/proc/$seek/stat" || break
  stat=\${stat##*") "} stat=\${stat#* } seek=\${stat%% *}
done
peer=\${session%% *} ports=\${session##* } way=
[ -n "$session" ] || ports=$(sshd -T 2>/dev/null | sed -n 's/^port //p')
peer=\${peer%%\%*}
[ -z "$peer" ] || way=$(ip -o route get "$peer" 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')
# has_port RANGE...: true if a range contains $port.
has_port() {
  for range; do [ "$port" -lt "\${range%-*}" ] || [ "$port" -gt "\${range#*-}" ] || return 0; done
  return 1
}
# has_peer IPV4 IPV6: true if nft finds $peer among these elements of its family.
has_peer() {
  [ -n "$peer" ] || return 0
  case $peer in *:*) type=ipv6_addr elements=$2 ;; *) type=ipv4_addr elements=$1 ;; esac
  [ -n "$elements" ] || return 1
  printf '%s\n' "add table inet t" "add set inet t s { type $type; flags interval; auto-merge; }" "add element inet t s { $elements }" |
    unshare -n sh -c 'nft -f - && nft get element inet t s "{ $1 }"' nft "$peer" >/dev/null 2>&1
}
# has_way INTERFACE...: true if the route to $peer has one of these interfaces; a final * is a wildcard.
has_way() {
  [ -n "$peer" ] || return 0
  for one; do
    case $one in
      *'*') case $way in "\${one%?}"*) return 0 ;; esac ;;
      *) [ "$way" != "$one" ] || return 0 ;;
    esac
  done
  return 1
}
for port in $ports; do
  { ${shLines(ways.map(allowsSession))}
  false; } || refuse FIREWALL_LOCKS_OUT "the rules would not let ssh in: port $port\${peer:+ from $peer\${way:+ ($way)}}"
done`;
}

function allowsSession({ ports, from, interfaces }: AllowRule): Sh {
  const [ipv4 = "", ipv6 = ""] = [false, true].map((six) => from.filter((one) => one.includes(":") === six).join(", "));
  return sh`{ ${ports.length === 0 ? sh`:` : sh`has_port ${ports}`}${from.length === 0 ? sh`` : sh` && has_peer ${ipv4} ${ipv6}`}${interfaces.length === 0 ? sh`` : sh` && has_way ${interfaces}`}; } ||`;
}
