import { isIP } from "node:net";
import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { probeFile, putFile, wantFile, type ConfigFile, fileStepParts } from "../step/fragments/config-file.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { printCanonical, probeRules, refuseLockout, tableText } from "../step/fragments/nftables.ts";
import { systemctl, unitProperties } from "../step/fragments/systemd.ts";
import type { Effects } from "../step/effects.ts";
import { sh, shLines } from "../step/sh.ts";

const Port = z
  .union([z.int(), z.string()])
  .transform(String)
  .refine((text) => {
    const [, first = "", last = first] = /^([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?$/.exec(text) ?? [];
    return first !== "" && Number(first) <= Number(last) && Number(last) <= 65_535;
  }, 'must be a port, or a range such as "8000-8100"');

const Source = z.string().refine((text) => {
  const [address = "", length, ...more] = text.split("/");
  const most = { 4: 32, 6: 128 }[isIP(address)];
  return (
    most !== undefined &&
    more.length === 0 &&
    (length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= most))
  );
}, "must be an address or a network such as 192.0.2.0/24 or 2001:db8::/32");

const InterfacePattern = z
  .string()
  .regex(/^[A-Za-z0-9_.:@-]{1,15}\*?$/, "must be an interface's name; a final * stands for more");

const Comment = z.string().regex(/^[^"\\\p{C}]{1,128}$/u, "must be one line without quotes and back slashes");

const listOf = <One extends z.ZodType>(one: One) =>
  z.union([one.transform((value) => [value]), z.array(one).min(1)]).optional();

const Allow = z
  .strictObject({
    protocol: z.enum(["tcp", "udp", "sctp", "any"]).default("tcp").describe("The protocol; any: all protocols."),
    ports: listOf(Port).describe("Ports or ranges of the protocol; all if not given."),
    from: listOf(Source).describe("Addresses or networks; all if not given."),
    interfaces: listOf(InterfacePattern).describe("Interfaces that packets come in by; all if not given."),
    comment: Comment.optional().describe("A remark that nft shows with the rule."),
  })
  .refine(({ protocol, ports }) => protocol !== "any" || ports === undefined, "ports need a protocol that has them")
  .meta({
    examples: [
      { ports: 22, from: ["192.0.2.0/24", "2001:db8::/32"], comment: "ssh" },
      { protocol: "udp", ports: "60000-61000", interfaces: "eth1" },
    ],
  })
  .transform(({ ports = [], from = [], interfaces = [], ...rest }) => ({ ...rest, ports, from, interfaces }));

/**
 * A text of nft that cannot leave its enclosing braces. It must not include another file: a change of that file would
 * count as a foreign change of the table.
 */
const Rules = z
  .string()
  .default("")
  .refine(staysInside, "must close each brace that it opens, and no other")
  .refine((text) => !/\binclude\b/.test(withoutStrings(text)), "must not include files")
  .refine(
    (text) => !/\bflags\b[^;\n]*\b(dynamic|timeout)\b|\b(update|add)\s+@/.test(withoutStrings(text)),
    "sets that fill themselves cannot be compared: keep them in a table of their own",
  );

/** The text without quoted strings and comments. */
function withoutStrings(text: string): string {
  return text.replaceAll(/"[^"\n]*"|#[^\n]*/g, "");
}

function staysInside(text: string): boolean {
  let depth = 0;
  for (const brace of withoutStrings(text).matchAll(/[{}]/g))
    if ((depth += brace[0] === "{" ? 1 : -1) < 0) return false;
  return depth === 0 && !withoutStrings(text).includes('"');
}

/** Whether traffic that `allow` does not name may be dropped; `rules` follow `allow`, so they cannot drop traffic that it names. */
function mayDrop({ input, rules }: { readonly input: string; readonly rules: string }): boolean {
  return input === "drop" || /\b(drop|reject|queue|jump|goto)\b/.test(withoutStrings(rules));
}

/**
 * ```yaml
 * firewall.rules:
 *   allow:
 *     - { ports: 22, from: [192.0.2.0/24, "2001:db8::/32"] }
 *     - { ports: [80, 443], comment: web }
 *     - { protocol: udp, ports: "60000-61000", interfaces: eth1 }
 * ```
 * One table of nftables, `inet kcore`, replaced as a whole: other tables stay, and their drops still count. Answers,
 * related traffic, loopback and the messages that IPv6 needs are always let in. The table's file in /etc/kcore/nftables is
 * loaded at boot, after nftables.service and before the network comes up. A flush of all tables (as in Debian's
 * /etc/nftables.conf) removes this table, too. A drop-in makes nftables.service load it again at each start and reload;
 * after `nft -f` by hand the next run loads it. Foreign changes of the table are reverted. Rules that would lock out ssh
 * from this run's address are refused, unless the step is on trial (`risk: connectivity`). This check ignores chains in
 * `more`.
 */
export const firewallRules = defineModule({
  name: "firewall.rules",
  summary: "Keeps a table of nftables that says what is let in.",
  alsoKnownAs: ["iptables", "nftables", "nft", "ufw", "firewalld", "iptables.append", "iptables.rule"],
  args: z
    .strictObject({
      table: z
        .string()
        .regex(/^[a-z][a-z0-9_]{0,31}$/, "must be a short name of small letters, digits and “_”")
        .default("kcore")
        .describe("The table's name; its family is inet."),
      input: z.enum(["drop", "accept"]).default("drop").describe("The fate of packets that no rule lets in."),
      icmp: z
        .boolean()
        .default(true)
        .describe("Let in ICMP and ICMPv6: pings, and errors that belong to no known connection."),
      allow: z
        .array(Allow)
        .default([])
        .describe(
          "The accepted packets: `protocol` (tcp), `ports`, `from` (addresses, networks), `interfaces`, `comment`.",
        ),
      rules: Rules.describe("More rules of the chain, behind those of `allow`, as nft(8) reads them."),
      more: Rules.describe("More of the table as nft(8) reads it: sets, other chains."),
      state: z.enum(["present", "absent"]).default("present").describe("Whether the table shall be there."),
    })
    .refine(
      ({ state, allow, rules, more }) => state === "present" || (allow.length === 0 && rules === "" && more === ""),
      "an absent table has no rules",
    ),
  refusals: ["FILE_INVALID", "FIREWALL_LOCKS_OUT", "TOOL_MISSING", ...fileRefusals],
  step: ({ table, state, ...given }, { onTrial }) => {
    const text = tableText({ name: table, ...given });
    const unit = `kcore-nftables-${table}.service`;
    const path = `/etc/kcore/nftables/${table}.nft`;
    const rules: ConfigFile = { fact: "file", path, blob: blobOf(text) };
    const service: ConfigFile = {
      fact: "unit",
      path: `/etc/systemd/system/${unit}`,
      blob: blobOf(unitText(table, path)),
    };
    const follower: ConfigFile = {
      fact: "drop-in",
      path: `/etc/systemd/system/nftables.service.d/kcore-${table}.conf`,
      blob: blobOf(dropInText(path)),
    };
    const files = [follower, service, rules];
    const folders = files.map((file) => file.path.slice(0, file.path.lastIndexOf("/")));
    const { resources, guard, keep, foresee } = fileStepParts(files.map(({ path: at }) => at));
    const effects: Effects = {
      writes: [...resources, { is: "service", name: unit }],
      reads: [...resources, { is: "program", name: "nft" }],
    };
    const readState = sh`${probeFile(rules)}
content=$kind
${probeFile(service)}
${probeFile(follower)}
${unitProperties(unit, ["ActiveState", "NeedDaemonReload", "UnitFileState"])}
fact enabled "\${UnitFileState:-absent}"`;
    const common = {
      effects,
      tools: [{ command: "nft", package: "nftables" }, systemctl],
      keep: sh`keep_unit ${unit} keep
${keep}{ printf 'table inet %s\ndelete table inet %s\n' ${table} ${table} && { nft -s list table inet ${table} 2>/dev/null || :; }; } >"$k_trial/"${table}.nft || exit 1
on_revert "nft -f '$k_trial/"${table}".nft'"`,
      timeout: 120,
      quiet: true,
    } as const;
    if (state === "absent")
      return {
        ...common,
        // A node without nft is in order if it has none of the table's files; else the guard refuses.
        tools: [systemctl],
        want: { file: "absent", unit: "absent", "drop-in": "absent", enabled: "absent", rules: "absent" },
        probe: sh`${readState}
if nft list table inet ${table} >/dev/null 2>&1; then fact rules present; else fact rules absent; fi`,
        guard: sh`${guard}have nft || unsure || refuse TOOL_MISSING "nft is not on this node; package nftables has it"`,
        apply: sh`[ ! -e ${service.path} ] || systemctl disable --now -- ${unit} || exit 1
${shLines(files.map((file, index) => sh`[ ! -d ${folders[index] ?? ""} ] || remove_path ${file.path} 0 || exit 1`))}rmdir ${folders[0] ?? ""} 2>/dev/null
systemctl daemon-reload || exit 1
! nft list table inet ${table} >/dev/null 2>&1 || nft delete table inet ${table}`,
      };
    const wanted = wantFile(rules);
    const check = sh`output=$(${printCanonical(sh`${rules.blob}`, table)} 2>&1 >/dev/null) || refuse FILE_INVALID "nft does not accept the rules$K_NL$output"`;
    return {
      ...common,
      want: {
        ...wanted,
        ...wantFile(service),
        ...wantFile(follower),
        reload: "no",
        enabled: "enabled",
        active: "active",
        rules: "as wanted",
      },
      // The kernel's rules are compared with the file, and only if the file has the wanted rules.
      probe: sh`${readState}
fact reload "$NeedDaemonReload"
fact active "$ActiveState"
if [ "$content" = ${wanted[rules.fact] ?? ""} ]; then
${probeRules(path, table)}
fi`,
      guard: sh`${guard}${mayDrop(given) && onTrial !== true ? refuseLockout(given.allow) : sh``}`,
      foresee: sh`${foresee}${check}`,
      apply: sh`${check}
${shLines(files.map(putFile))}nft -f ${path} && systemctl daemon-reload && systemctl enable -- ${unit} && systemctl start -- ${unit} || exit 1
# systemctl does not flush an enabled unit to the disk: after a power cut the node would boot without a firewall.
sync -f /etc/systemd/system 2>/dev/null || sync`,
      show: sh`[ ! -f ${path} ] || cat <${path}`,
      shown: text,
    };
  },
});

/**
 * The unit that loads the table at boot. It is separate from nftables.service, which need not be enabled, and whose
 * configuration belongs to its package and the operator.
 */
function unitText(table: string, path: string): string {
  return `# Managed by kcore.
[Unit]
Description=Table inet ${table} of the firewall
Documentation=man:nft(8)
DefaultDependencies=no
RequiresMountsFor=${path}
After=nftables.service
Before=network-pre.target
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f ${path}
ExecReload=/usr/sbin/nft -f ${path}

[Install]
WantedBy=sysinit.target
`;
}

/** Loads the table after the rules of nftables.service. A failure is ignored (`-`): a failed start would flush all rules. */
function dropInText(path: string): string {
  return `# Managed by kcore.
[Service]
ExecStartPost=-/usr/sbin/nft -f ${path}
ExecReload=-/usr/sbin/nft -f ${path}
`;
}
