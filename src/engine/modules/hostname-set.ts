import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { fileStepParts } from "../step/fragments/config-file.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { rawSh, sh, shLines, type Sh } from "../step/sh.ts";

const hostname = "/etc/hostname";
const info = "/etc/machine-info";
const hosts = "/etc/hosts";

/** The address to which Debian resolves the name of a machine without a permanent address. */
const address = "127.0.1.1";

/**
 * ```yaml
 * hostname.set: { name: n1.example.org, hosts: true }
 * ```
 * The name is kept in /etc/hostname and in the running kernel (hostname(5)). With `hosts` the machine resolves its own name
 * without DNS: the line of 127.0.1.1 in /etc/hosts begins with the whole name and then the part before its first dot.
 * Other names on that line stay, except the machine's former names.
 */
export const hostnameSet = defineModule({
  name: "hostname.set",
  summary: "Keeps the node's hostname, now and at every boot.",
  alsoKnownAs: ["hostname", "network.system", "server.hostname", "hostnamectl"],
  args: z.strictObject({
    name: z
      .string()
      .max(64, "is longer than the kernel's 64 characters")
      .regex(
        /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/,
        "must be a hostname: small letters, digits and -, in parts with dots between them",
      )
      .refine((name) => name !== "localhost", "localhost is every machine's name for itself")
      .describe("The hostname."),
    pretty: z
      .string()
      .regex(/^[^\p{C}"\\$`]{1,128}$/u, 'must be one line without ", \\, $ and `')
      .optional()
      .describe("A name for people, in /etc/machine-info; else not managed."),
    hosts: z.boolean().default(false).describe("Keep the name on the line of 127.0.1.1 in /etc/hosts."),
  }),
  refusals: [...fileRefusals],
  step: ({ name, pretty, hosts: hasLine }) => {
    const [short = name] = name.split(".");
    const names = short === name ? [name] : [name, short];
    const line = [address, ...names].join(" ");
    const paths = [hostname, ...(pretty === undefined ? [] : [info]), ...(hasLine ? [hosts] : [])];
    const { resources, guard, keep } = fileStepParts(paths);
    return {
      effects: { writes: resources, reads: resources },
      want: {
        static: name,
        live: name,
        ...(pretty === undefined ? {} : { pretty }),
        ...(hasLine ? { hosts: line } : {}),
      },
      probe: sh`${readStatic}
fact static "$static"
fact live "$(uname -n)"
${pretty === undefined ? sh`` : readPretty}
${
  hasLine
    ? sh`${readHostsLine(names)}
fact hosts "\${found:-absent}"`
    : sh``
}`,
      guard,
      keep: sh`${keep}on_revert "hostname '$(uname -n)'"`,
      foresee: shLines(paths.map((path) => sh`foresee_place ${path} 8 0 - -`)),
      // The line is written first: once /etc/hostname has the new name, the old names on the line are not known any more.
      apply: sh`${readStatic}
${hasLine ? keepLine(names) : sh``}
[ "$static" = ${name} ] || put_file ${blobOf(`${name}\n`)} ${hostname} 0644 root root || exit 1
${pretty === undefined ? sh`` : keepPretty(pretty)}
if [ "$(uname -n)" != ${name} ]; then
  if have hostname; then hostname ${name}
  elif have hostnamectl; then hostnamectl --transient set-hostname ${name}
  else printf '%s\n' ${name} >/proc/sys/kernel/hostname; fi
fi`,
      quiet: true,
    };
  },
});

/** Sets `static` to the first line of /etc/hostname that is no comment (hostname(5)), or to absent if there is no such file. */
const readStatic: Sh = sh`static=absent
if [ -f ${hostname} ]; then
  while read -r static || [ -n "$static" ]; do
    case $static in '' | '#'*) ;; *) break ;; esac
  done <${hostname}
fi`;

const readPretty: Sh = sh`pretty=$(sed -n 's/^PRETTY_HOSTNAME=//p' ${info} 2>/dev/null)
pretty=\${pretty#[\'\"]}
fact pretty "\${pretty%[\'\"]}"`;

function keepPretty(pretty: string): Sh {
  return sh`{
  [ ! -f ${info} ] || grep -v '^PRETTY_HOSTNAME=' ${info}
  printf 'PRETTY_HOSTNAME="%s"\n' ${pretty}
} >"$K_TMP/info" && { cmp -s "$K_TMP/info" ${info} || put_file "$K_TMP/info" ${info} - - - || exit 1; }`;
}

/**
 * Sets `found` to the address's lines, without comments and with single blanks. If the only line begins with the names and
 * has no former name, `found` is the wanted line instead. Writes the new file to $K_TMP/hosts. Follows `readStatic`.
 */
function readHostsLine(names: readonly string[]): Sh {
  return sh`[ ! -f ${hosts} ] || cat <${hosts} >"$K_TMP/was" || exit 1
[ -f "$K_TMP/was" ] || : >"$K_TMP/was"
found=$(address=${address} names=${names.join(" ")} old="$static $(uname -n)" new=$K_TMP/hosts awk ${editLine} <"$K_TMP/was") || exit 1`;
}

function keepLine(names: readonly string[]): Sh {
  return sh`${readHostsLine(names)}
if cmp -s "$K_TMP/was" "$K_TMP/hosts"; then :
elif [ -f ${hosts} ]; then put_file "$K_TMP/hosts" ${hosts} - - - || exit 1
else put_file "$K_TMP/hosts" ${hosts} 0644 root root || exit 1; fi`;
}

/** The awk program that writes the new file, and prints the value of `found`. */
const editLine = rawSh(`'
  BEGIN {
    address = ENVIRON["address"]; names = ENVIRON["names"]
    split(names, given, " "); for (i in given) ours[given[i]]
    split(tolower(ENVIRON["old"]), given, " ")
    for (i in given) {
      if (!(given[i] in ours)) old[given[i]]
      sub(/[.].*/, "", given[i]); if (!(given[i] in ours)) old[given[i]]
    }
  }
  {
    text[NR] = $0; note = ""
    if (i = index($0, "#")) { note = substr($0, i); $0 = substr($0, 1, i - 1) }
    if ($1 != address) next
    $1 = $1; present = present (present == "" ? "" : "\\n") $0
    for (i = 2; i <= NF; i++) {
      name = tolower($i); short = name; sub(/[.].*/, "", short)
      if (name in ours) continue
      if (name in old || short in old) { stale = 1; continue }
      if (!(name in listed)) { listed[name]; others = others " " $i }
    }
    if (lines++) { text[NR] = note; gone[NR] = note == "" } else { first = NR; comment = note == "" ? "" : " " note }
  }
  END {
    line = address " " names
    if (first) text[first] = line others comment
    for (i = 1; i <= NR; i++) if (!gone[i]) print text[i] >ENVIRON["new"]
    if (!first) print line >ENVIRON["new"]
    print lines == 1 && !stale && present == line others ? line : present
  }'`);
