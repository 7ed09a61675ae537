import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { probeFile, putFile, wantFile, type ConfigFile, fileStepParts } from "../step/fragments/config-file.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { sysctlFunction, sysctlName, sysctlPath, type Sysctl } from "../step/fragments/sysctl.ts";
import { pathsOf } from "../step/effects.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

const Key = z
  .string()
  .max(255)
  .regex(/^[a-z]\w*([./][\w:@+-]+)+$/, "must be a key such as vm.swappiness or net/ipv4/conf/eth0.10/rp_filter");

const Value = z
  .union([z.int(), z.string().regex(/^[ -~]*[!-~][ -~]*$/, "must be one line of printable text")])
  .transform((value) => String(value).trim().replaceAll(/ +/g, " "));

const args = z
  .strictObject({
    name: Key.optional().describe(
      "The key, with slashes between its parts if a part has a dot: net/ipv4/conf/eth0.10/rp_filter.",
    ),
    value: Value.optional().describe("The key's value."),
    values: z.record(Key, Value).optional().describe("Several keys with their values, in one file."),
    file: z
      .string()
      .regex(/^\/etc\/sysctl\.d\/[\w@.+-]+\.conf$/, "must be a file /etc/sysctl.d/….conf")
      .optional()
      .describe(
        "The file, whose whole content the step keeps; for a single key by default /etc/sysctl.d/60-kcore-KEY.conf.",
      ),
    state: z
      .enum(["present", "absent"])
      .default("present")
      .describe("absent: the file is not there; the running kernel keeps its value until the next boot."),
  })
  .refine(
    ({ name, value, values, state }) =>
      state === "absent" ? value === undefined && values === undefined : (name === undefined) === (value === undefined),
    "give name and value, or values (with state: absent only name or file)",
  )
  .refine(
    ({ name, values, state }) => state === "absent" || (name === undefined) !== (values === undefined),
    "give name and value, or values",
  )
  .refine(({ name, file }) => name !== undefined || file !== undefined, "values need a file of their own")
  .refine(({ values = {} }) => {
    const paths = Object.keys(values).map(sysctlPath);
    return new Set(paths).size === paths.length;
  }, "names a key twice")
  .refine(({ values }) => values === undefined || Object.keys(values).length > 0, "values has no key");

/**
 * ```yaml
 * sysctl.set:
 *   file: /etc/sysctl.d/60-kubernetes.conf
 *   values: { net.ipv4.ip_forward: 1, vm.overcommit_memory: 1 }
 * ```
 * Kernel settings, in the kernel now and in a file for the next boot (sysctl.d(5)). Each key is one fact: its value, or
 * its values now and at boot if they differ. If a file that is read later sets a key to another value, the step names the
 * file and is refused.
 */
export const sysctlSet = defineModule({
  name: "sysctl.set",
  summary: "Keeps kernel settings (sysctl), now and at every boot.",
  alsoKnownAs: ["sysctl", "sysctl.present", "server.sysctl"],
  args,
  refusals: ["SYSCTL_OVERRIDDEN", "SYSCTL_REFUSED", ...fileRefusals],
  step: ({ name = "", value, values = { [name]: value ?? "" }, file: given, state }) => {
    const file = given ?? `/etc/sysctl.d/60-kcore-${sysctlName(sysctlPath(name)).replaceAll("/", "-")}.conf`;
    const { resources, ...texts } = fileStepParts([file]);
    if (state === "absent")
      return {
        ...texts,
        effects: { writes: resources, reads: resources },
        want: { file: "absent" },
        probe: sh`kind_of ${file}
fact file "$kind"`,
        apply: sh`remove_path ${file} 0`,
        quiet: true,
      };
    const wanted = Object.entries(values).map(([key, of]): Sysctl => ({ key, path: sysctlPath(key), value: of }));
    const text = `# made by kcore\n${wanted.map((one) => `${sysctlName(one.path)} = ${one.value}\n`).join("")}`;
    const own: ConfigFile = { fact: "file", path: file, blob: blobOf(text) };
    const listSysctls = sysctlFunction(file, wanted);
    return {
      ...texts,
      effects: {
        writes: [
          ...resources,
          { is: "parents", path: file },
          ...pathsOf(wanted.map(({ path }) => `/proc/sys/${path}`)),
        ],
        reads: [
          ...pathsOf([file, "/etc/sysctl.conf"]),
          ...wanted.map(({ path }) => ({ is: "existing", path: `/proc/sys/${path}` }) as const),
        ],
      },
      want: { ...Object.fromEntries(wanted.map((one) => [one.key, one.value])), ...wantFile(own) },
      probe: sh`${listSysctls}
found=$(list_sysctls facts) || exit 1
while IFS=$(printf '\t') read -r key now; do fact "$key" "$now"; done <<END_OF_FACTS
$found
END_OF_FACTS
${probeFile(own)}`,
      guard: guard(file, listSysctls),
      keep: sh`${texts.keep}${shLines(wanted.map(keepLive))}`,
      apply: sh`set_key() {
  [ "$(now "$1")" != "$2" ] || return 0
  output=$({ printf '%s\n' "$2" >"/proc/sys/$1"; } 2>&1)
  [ "$(now "$1")" = "$2" ] || refuse SYSCTL_REFUSED "the kernel does not take $2 for $1: it has $(now "$1")$K_NL$output"
}
now() { set -f && set -- $(cat "/proc/sys/$1" 2>/dev/null) && echo "$*"; }
${shLines(wanted.map((one) => sh`set_key ${one.path} ${one.value}`))}${putFile(own)}`,
      show: sh`! open_file ${file} || cat <&9`,
      shown: text,
      quiet: true,
    };
  },
});

function guard(file: string, listSysctls: Sh): Sh {
  return sh`guard_file ${file}
${listSysctls}
gaps=$(list_sysctls gaps) || exit 1
while IFS=$(printf '\t') read -r key path other at_boot; do
  case $other in /*) refuse SYSCTL_OVERRIDDEN "$other sets $key to $at_boot at boot, after "${file}": take that out, or give a file whose name comes later" ;; esac
  case $path in '' | -) continue ;; esac
  if [ ! -e "/proc/sys/$path" ]; then
    unsure || refuse SYSCTL_REFUSED "this kernel has no $key (/proc/sys/$path): a module that is not loaded may bring it"
  # Tested by opening it without a write: for root, BusyBox's test -w is always true.
  elif ! { true >>"/proc/sys/$path"; } 2>/dev/null; then
    refuse SYSCTL_REFUSED "$key cannot be changed on this node: it is read-only, as the host's settings are in a container"
  fi
done <<END_OF_GAPS
$gaps
END_OF_GAPS`;
}

/** Records the key's present value for the revert. */
function keepLive({ path }: Sysctl): Sh {
  return sh`old=$(cat ${`/proc/sys/${path}`} 2>/dev/null) && on_revert "cat >/proc/sys/"${path}" <<'K_OLD'$K_NL$old\${K_NL}K_OLD"`;
}
