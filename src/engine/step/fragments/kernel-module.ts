import { sh, shLines, type Sh } from "../sh.ts";

/** Files that name modules to load at boot: of modules-load.d(5), of Debian's kmod and of Alpine's init. */
const loadFiles = sh`/etc/modules /etc/modules-load.d/*.conf /run/modules-load.d/*.conf /usr/lib/modules-load.d/*.conf`;
const probeFiles = sh`/etc/modprobe.d/*.conf /run/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf /lib/modprobe.d/*.conf`;

/** A regular expression for the name; - and _ match each other, as the kernel and kmod treat them. */
function eitherWay(name: string): string {
  return name.replaceAll(/[-_]/g, "[-_]");
}

/** The name as the kernel spells it, with _ for -. */
export function kernelName(name: string): string {
  return name.replaceAll("-", "_");
}

/**
 * Sets `now` to loaded, built-in or absent, and `users` to the use count and the modules that use this module. Sets
 * `loaders` to the files that load the module at boot, `blacklisters` to the files that blacklist it (modprobe.d(5)).
 */
export function readModule(name: string): Sh {
  return sh`now=absent users=0
release=$(uname -r)
# A container may have only /proc/modules, which is its host's.
set -- $(grep -s ${`^${kernelName(name)} `} /proc/modules)
if [ $# -gt 0 ] || [ -e ${`/sys/module/${kernelName(name)}/initstate`} ]; then
  now=loaded users=\${3:-unknown}
  { read -r users <${`/sys/module/${kernelName(name)}/refcnt`}; } 2>/dev/null
  users=$(echo $users $(ls ${`/sys/module/${kernelName(name)}/holders`} 2>/dev/null))
elif [ -d ${`/sys/module/${kernelName(name)}`} ] || grep -Eqs ${`/${eitherWay(name)}\\.ko`} "/lib/modules/$release/modules.builtin"; then
  now=built-in
fi
loaders=$(grep -lEs ${`^[[:blank:]]*${eitherWay(name)}([[:blank:]]|$)`} ${loadFiles})
blacklisters=$(grep -lEs ${`^[[:blank:]]*blacklist[[:blank:]]+${eitherWay(name)}[[:blank:]]*$`} ${probeFiles})`;
}

/**
 * Sets `conflicts` to the files of modprobe.d(5), except `own`, that give a parameter another value, and to these values.
 * Sets `doubles` to the files that give the same value. modprobe passes all values to the kernel; the order of the
 * files' names decides which value counts.
 */
export function optionsElsewhere(name: string, own: string, options: Readonly<Record<string, string>>): Sh {
  const line = `^[[:blank:]]*options[[:blank:]]+${eitherWay(name)}[[:blank:]]`;
  const arms = Object.entries(options).map(
    ([key, value]) => sh`${`${key}=${value}`}) doubles="$doubles$at " ;;
      ${`${key}=`}*) conflicts="$conflicts\${conflicts:+, }$at: $pair" ;;`,
  );
  return sh`conflicts= doubles=
while IFS= read -r line; do
  at=\${line%%:*}
  [ -n "$at" ] && [ "$at" != ${own} ] || continue
  set -f
  set -- \${line#*:}
  set +f
  shift 2
  for pair; do
    case $pair in
      ${shLines(arms)}
    esac
  done
done <<END_OF_OPTIONS
$(grep -HEs ${line} ${probeFiles})
END_OF_OPTIONS`;
}

/** Adds to `users` the network interfaces that have the module as driver, or are of its kind (bond, vlan, bridge …). */
export function addLinkUsers(name: string): Sh {
  const kinds = { bonding: "bond", "8021q": "vlan" };
  const kind = new Map(Object.entries(kinds)).get(kernelName(name)) ?? kernelName(name);
  return sh`for link in /sys/class/net/*; do
  driver=$(readlink "$link/device/driver/module")
  if [ "\${driver##*/}" = ${kernelName(name)} ] || grep -qxs ${`DEVTYPE=${kind}`} "$link/uevent"; then users="$users \${link##*/}"; fi
done`;
}

/** sh condition, after {@link readModule}: the module's file exists for the running kernel. */
export function hasModule(name: string): Sh {
  return sh`grep -Eqs ${`^([^:]*/)?${eitherWay(name)}\\.ko[^/:]*:`} "/lib/modules/$release/modules.dep"`;
}

/**
 * Sets `value` to a parameter's value in the running kernel; to `wanted` if the two values mean the same, or if the
 * kernel does not show the parameter.
 */
export function runningParameter(name: string, key: string, wanted: string): Sh {
  const shown = /^(1|[yt]|on)/i.test(wanted) ? "Y" : /^(0|[nf]|off)/i.test(wanted) ? "N" : wanted;
  return sh`value=${wanted}
{ read -r value <${`/sys/module/${kernelName(name)}/parameters/${key}`}; } 2>/dev/null
[ "$value" != ${shown} ] || value=${wanted}`;
}
