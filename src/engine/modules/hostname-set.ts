import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { readFstab, writeFstab } from "../step/fragments/fstab.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

const hostname = "/etc/hostname";
const info = "/etc/machine-info";
const hosts = "/etc/hosts";

/** Debian's own address for a machine's name where it has none that is always there. */
const address = "127.0.1.1";

/**
 * ```yaml
 * hostname.set: { name: n1.example.org, hosts: true }
 * ```
 * The name in /etc/hostname and that of the running kernel (hostname(5)). With `hosts` the machine finds its own name without DNS: the line of
 * 127.0.1.1 in /etc/hosts has it, before a dot and whole.
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
    hosts: z.boolean().default(false).describe("Keep the line of 127.0.1.1 in /etc/hosts."),
  }),
  refusals: ["FILE_IN_THE_WAY", "FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "NIXOS_MANAGED"],
  step: ({ name, pretty, hosts: hasLine }) => {
    const [short = name] = name.split(".");
    const line = `${address} ${short === name ? "" : `${name} `}${short}`;
    const paths = [hostname, ...(pretty === undefined ? [] : [info]), ...(hasLine ? [hosts] : [])];
    return {
      reach: {
        changes: paths.map((path) => ({ is: "path", path }) as const),
        restsOn: paths.map((path) => ({ is: "path", path }) as const),
      },
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
    ? sh`${readFstab(hosts, { source: address })}
fact hosts "$fstab"`
    : sh``
}`,
      guard: shLines(paths.map((path) => sh`guard_file ${path}`)),
      keep: sh`${shLines(paths.map((path) => sh`keep_path ${path}`))}on_revert "hostname '$(uname -n)'"`,
      foresee: shLines(paths.map((path) => sh`foresee_place ${path} 8 0 - -`)),
      apply: sh`${readStatic}
[ "$static" = ${name} ] || put_file ${blobOf(`${name}\n`)} ${hostname} 0644 root root || exit 1
${pretty === undefined ? sh`` : keepPretty(pretty)}
${hasLine ? keepLine(line) : sh``}
if [ "$(uname -n)" != ${name} ]; then
  if have hostname; then hostname ${name}
  elif have hostnamectl; then hostnamectl --transient set-hostname ${name}
  else printf '%s\n' ${name} >/proc/sys/kernel/hostname; fi
fi`,
      quiet: true,
    };
  },
});

/** The first line that is no comment (hostname(5)). */
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

/** hosts(5) is made of lines of words as fstab(5) is: the first one is the key. */
function keepLine(line: string): Sh {
  return sh`${readFstab(hosts, { source: address })}
if [ "$fstab" != ${line} ]; then
  ${writeFstab(hosts, { source: address }, line)}
fi`;
}
