import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { fileStepParts } from "../step/fragments/config-file.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import {
  hasModule,
  addLinkUsers,
  readModule,
  optionsElsewhere,
  runningParameter,
} from "../step/fragments/kernel-module.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

const args = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][\w-]{0,63}$/, "must be a module's name, such as br_netfilter")
      .describe("The module; - and _ are the same."),
    options: z
      .record(
        z.string().regex(/^\w+$/, "must be a parameter's name"),
        z.union([z.int(), z.string().regex(/^[!-~]+$/, "must hold no blanks")]).transform(String),
      )
      .default({})
      .describe("The module's parameters, as `modinfo -p` lists them, with their values."),
    state: z.enum(["loaded", "absent"]).default("loaded").describe("Whether the module is loaded, now and at boot."),
    blacklist: z
      .boolean()
      .default(false)
      .describe("With state: absent, nothing loads the module any more, neither by a device nor by name."),
    reload: z
      .boolean()
      .default(false)
      .describe("Load the module anew if it runs with other options; else the options count from the next boot."),
  })
  .refine(({ blacklist, state }) => !blacklist || state === "absent", "blacklist is for state: absent")
  .refine(
    ({ options, state }) => state === "loaded" || Object.keys(options).length === 0,
    "options are for a module that is loaded",
  )
  .refine(({ options, reload }) => !reload || Object.keys(options).length > 0, "reload is for options");
type Args = z.output<typeof args>;

/**
 * ```yaml
 * kernel_module.loaded: { name: nf_conntrack, options: { hashsize: 65536 } }
 * ```
 * Keeps /etc/modules-load.d/kcore-NAME.conf and /etc/modprobe.d/kcore-NAME.conf. A built-in module counts as loaded. If
 * the module runs with other options, a note reports that; the new ones count from the next boot unless `reload` is set.
 * A module in use is never removed, and a network interface's module only on trial (`risk: connectivity`). If a file of
 * modprobe.d(5) gives one of the options another value, the step names the file and is refused. A module that the initial
 * ramdisk loads gets the options that update-initramfs(8) copied there.
 */
export const kernelModuleLoaded = defineModule({
  name: "kernel_module.loaded",
  summary: "Keeps a kernel module loaded with its options, or away, now and at every boot.",
  alsoKnownAs: ["modprobe", "kmod.present", "server.modprobe", "kernel_blacklist"],
  args,
  refusals: ["KERNEL_MODULE_REFUSED", "TOOL_MISSING", ...fileRefusals],
  step: (given, { onTrial = false }) => {
    const { name, options, state, reload } = given;
    const load = `/etc/modules-load.d/kcore-${name}.conf`;
    const probe = `/etc/modprobe.d/kcore-${name}.conf`;
    const pairs = Object.entries(options);
    const files = [
      { path: load, text: state === "loaded" ? name : "" },
      { path: probe, text: probeText(given) },
    ];
    const isLoaded = state === "loaded";
    const paths = [load, probe];
    const { resources, guard, keep, foresee } = fileStepParts(paths);
    return {
      effects: {
        writes: [
          ...resources,
          ...paths.map((path) => ({ is: "parents", path }) as const),
          // Loading a module adds its settings below /proc/sys.
          ...(isLoaded ? [{ is: "tree", path: "/proc/sys" } as const] : []),
        ],
        reads: [
          ...resources,
          ...(pairs.length > 0 ? [{ is: "tree", path: "/etc/modprobe.d" } as const] : []),
          { is: "packages" },
        ],
      },
      want: {
        now: state,
        atBoot: isLoaded ? "loaded" : given.blacklist ? "blacklisted" : "absent",
        ...(isLoaded ? { options: pairs.map((pair) => pair.join("=")).join(" ") || "none" } : {}),
        ...(pairs.length > 0 ? { "options elsewhere": "none" } : {}),
        ...(reload ? Object.fromEntries(pairs.map(([key, value]) => [`running ${key}`, value])) : {}),
      },
      probe: sh`${readModule(name)}
${isLoaded ? sh`[ $now != built-in ] || now=loaded` : sh`:`}
fact now "$now"
${readAtBoot(given, probe)}
fact atBoot "$at_boot"
options=$(sed -n ${`s/^options ${name} //p`} ${probe} 2>/dev/null)
fact options "\${options:-none}"
${
  pairs.length === 0
    ? sh``
    : sh`${optionsElsewhere(name, probe, options)}
fact "options elsewhere" "\${conflicts:-none}"
[ -z "$doubles" ] || note ${`options of ${name} that this step gives stand in `}"\${doubles% } too"`
}
${shLines(pairs.map(([key, value]) => reportOption(given, key, value)))}`,
      guard: sh`${guard}${readModule(name)}
${isLoaded ? guardLoaded(given, probe, onTrial) : guardAbsent(given, load, onTrial)}`,
      keep: sh`${keep}${readModule(name)}
${keepNow(given)}`,
      foresee,
      apply: sh`${shLines(files.map(({ path, text }) => keepFile(path, text)))}${readModule(name)}
${isLoaded ? loadNow(given) : unload(name)}`,
      quiet: true,
      timeout: 120,
    };
  },
});

/**
 * The text of the file in /etc/modprobe.d; empty if there is to be no file. Its line `blacklist` prevents loading by a
 * device's alias, its line `install` prevents loading by name (modprobe.d(5)).
 */
function probeText({ name, options, blacklist }: Args): string {
  const pairs = Object.entries(options).map((pair) => ` ${pair.join("=")}`);
  if (pairs.length > 0) return `options ${name}${pairs.join("")}`;
  return blacklist ? `blacklist ${name}\ninstall ${name} /bin/false` : "";
}

/** Sets `at_boot`: loaded, absent or blacklisted, or the files that load or blacklist the module against the step. */
function readAtBoot({ state, blacklist }: Args, probe: string): Sh {
  const listed = sh`case $K_NL$blacklisters$K_NL in *"$K_NL"${probe}"$K_NL"*) at_boot=blacklisted ;; esac`;
  if (state === "loaded")
    return sh`at_boot=absent
[ -z "$loaders" ] || at_boot=loaded
[ -z "$blacklisters" ] || at_boot="blacklisted by $blacklisters"`;
  return sh`at_boot=absent
${blacklist ? sh`` : listed}
[ -z "$loaders" ] || at_boot="loaded by $loaders"
${blacklist ? listed : sh``}`;
}

/** With `reload` reports an option's value in the kernel as a fact; without it notes the first option that differs. */
function reportOption({ name, state, reload }: Args, key: string, wanted: string): Sh {
  if (state === "absent") return sh``;
  return sh`${runningParameter(name, key, wanted)}
${
  reload
    ? sh`fact ${`running ${key}`} "$value"`
    : sh`if [ "$value" != ${wanted} ] && [ $now = loaded ] && [ ! -e "$K_TMP/noted" ]; then
  : >"$K_TMP/noted"
  note ${`${name} runs with ${key}=`}"$value: "${`${wanted} counts from the next boot (reload: true loads it anew)`}
fi`
}`;
}

function guardLoaded(given: Args, probe: string, onTrial: boolean): Sh {
  const { name, reload } = given;
  return sh`${
    reload
      ? sh`${findDiffering(given)}
[ -z "$differs" ] || [ $now != loaded ] || ${inUse(name, onTrial)}
`
      : sh``
  }${
    Object.keys(given.options).length === 0
      ? sh``
      : sh`${optionsElsewhere(name, probe, given.options)}
[ -z "$conflicts" ] || refuse KERNEL_MODULE_REFUSED ${`${name} gets other options from another file, take them out there: `}"$conflicts"
`
  }for found in $blacklisters; do
  [ "$found" = ${probe} ] || refuse KERNEL_MODULE_REFUSED "$found forbids to load "${name}": take that out there"
done
if [ $now = absent ]; then
  have modprobe || refuse TOOL_MISSING "modprobe is not on this node (package kmod)"
  ${hasModule(name)} || unsure ||
    refuse KERNEL_MODULE_REFUSED ${`there is no module ${name}`}" for the kernel that runs, $release: in a container, load it on the host; else a package has to bring it, or a boot of the kernel installed last"
fi`;
}

function guardAbsent({ name, blacklist }: Args, load: string, onTrial: boolean): Sh {
  return sh`[ $now != built-in ] || refuse KERNEL_MODULE_REFUSED ${`${name} is built into the kernel`}
[ $now != loaded ] || ${inUse(name, onTrial)}
${
  blacklist
    ? sh``
    : sh`for found in $loaders; do
  [ "$found" = ${load} ] || refuse KERNEL_MODULE_REFUSED "$found loads "${name}" at boot: take it out there, or blacklist: true"
done`
}`;
}

/** Refuses a module in use, unless on trial also by a network interface, which the kernel's use count does not include. */
function inUse(name: string, onTrial: boolean): Sh {
  return sh`{
${onTrial ? sh`` : addLinkUsers(name)}
  case $users in 0) ;; *) refuse KERNEL_MODULE_REFUSED ${`${name} is in use (`}"\${users#0 })" ;; esac
}`;
}

/** For a step on trial: the revert brings back the module's present state in the kernel, with the former options. */
function keepNow({ name, reload }: Args): Sh {
  const load = `modprobe ${name}`;
  return sh`case $now in
  absent) on_revert ${`modprobe -r ${name}`} ;;
  loaded) on_revert ${reload ? `modprobe -r ${name}; ${load}` : load} ;;
esac`;
}

/** Sets `differs`: not empty if the module runs with other options. */
function findDiffering({ name, options }: Args): Sh {
  return sh`differs=
${shLines(
  Object.entries(options).map(
    ([key, value]) => sh`${runningParameter(name, key, value)}
[ "$value" = ${value} ] || differs=1`,
  ),
)}`;
}

/** Writes the file if its lines differ, or removes it if there are none. */
function keepFile(path: string, text: string): Sh {
  if (text === "") return sh`[ ! -e ${path} ] || remove_path ${path} 0 || exit 1`;
  const blob = blobOf(`# made by kcore\n${text}\n`);
  return sh`if ! cmp -s ${blob} ${path}; then parent_of ${path} 1 && put_file ${blob} ${path} 0644 root root || exit 1; fi`;
}

function loadNow(given: Args): Sh {
  const { name, reload } = given;
  const load = sh`output=$(modprobe ${name} 2>&1) || refuse KERNEL_MODULE_REFUSED ${`the kernel did not take ${name}`}"$K_NL$output"`;
  if (!reload) return sh`[ $now != absent ] || { ${load}; }`;
  return sh`${findDiffering(given)}if [ $now = loaded ] && [ -n "$differs" ]; then
  ${unload(name)}
  now=absent
fi
[ $now != absent ] || { ${load}; }`;
}

function unload(name: string): Sh {
  return sh`if [ $now = loaded ]; then
  output=$(modprobe -r ${name} 2>&1) || refuse KERNEL_MODULE_REFUSED ${`the kernel did not let go of ${name}`}"$K_NL$output"
fi`;
}
