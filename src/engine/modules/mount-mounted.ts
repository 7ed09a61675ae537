import { z } from "zod";
import { defineModule, type StepContext } from "../step/define.ts";
import { Device, deviceGuid, deviceName, filesystemUuid, shownUuid, type DeviceOf } from "../step/disk-names.ts";
import { AbsolutePath } from "../step/fields.ts";
import { escapeBlanks, readFstab, writeFstab } from "../step/fragments/fstab.ts";
import { allFlags, bindFlags, flagsOf, shownFlags } from "../step/fragments/mount-flags.ts";
import { mountUnit, probeUnit, underSystemd, type MountUnit } from "../step/fragments/mount-unit.ts";
import type { Effects } from "../step/effects.ts";
import { sh, type Sh } from "../step/sh.ts";

const links = { UUID: "by-uuid", LABEL: "by-label", PARTUUID: "by-partuuid", PARTLABEL: "by-partlabel" } as const;

const Source = z
  .string()
  .refine((text) => !text.startsWith("/dev/"), {
    message: "device names change from boot to boot: use UUID=…, LABEL=…, PARTUUID=… (see `blkid` on the node)",
  })
  .regex(
    /^((UUID|LABEL|PARTUUID|PARTLABEL)=[A-Za-z0-9._:+-]+|[a-z][a-z0-9._-]*|[^\s=]+:\/[^\n]*|\/[^\n]+)$/,
    "must be UUID=…, LABEL=…, PARTUUID= or PARTLABEL=…, tmpfs, HOST:/PATH, //HOST/SHARE, or a folder with the option bind",
  );

/** Sources that name a device by a tag. The kernel shows other sources as written, except the source of a bind mount. */
const tagged = /^(UUID|LABEL|PARTUUID|PARTLABEL)=/;
const isBind = (options: readonly string[]): boolean => options.includes("bind") || options.includes("rbind");

const args = z
  .strictObject({
    path: AbsolutePath.describe("Where the filesystem is mounted: a folder, made if missing."),
    source: z
      .union([Source, Device])
      .optional()
      .describe(
        "UUID=, LABEL=, PARTUUID= or PARTLABEL=; the same keys as of filesystem.formatted: disk and partition, vg and lv, or array, and encrypted; or tmpfs, overlay, HOST:/PATH (nfs), //HOST/SHARE (cifs), and a folder with the option bind.",
      ),
    fstype: z
      .string()
      .regex(/^[a-z0-9._-]{1,32}$/, "must be a kind of filesystem")
      .default("auto")
      .describe("ext4, xfs, vfat …; auto leaves it to mount."),
    options: z
      .array(z.string().regex(/^[!-+\--~]+$/, "must be one option without blanks or commas; a blank is \\040"))
      .default([])
      .describe("Mount options, such as noatime; others have mount's default."),
    nofail: z.boolean().optional().describe("Boot goes on without the mount; by default true unless path is /."),
    passno: z
      .int()
      .min(0)
      .max(2)
      .optional()
      .describe(
        "Order of checks at boot; by default 1 for /, else 2 for a device, but 0 for xfs, btrfs, vfat and other sources.",
      ),
    dump: z.int().min(0).max(1).default(0).describe("The fifth field of fstab."),
    persist: z
      .enum(["fstab", "unit"])
      .default("fstab")
      .describe("The place of the entry for the boot: fstab, or a systemd unit."),
    state: z
      .enum(["mounted", "present", "absent"])
      .default("mounted")
      .describe("mounted now and at boot; present: only at boot; absent: neither."),
    fstab: AbsolutePath.default("/etc/fstab").describe("The fstab to edit."),
  })
  .refine(({ state, source }) => state === "absent" || source !== undefined, "needs a source")
  .refine(({ path, state }) => path !== "/" || state !== "absent", "cannot unmount /")
  .refine(
    ({ source, options }) => typeof source !== "string" || !/^\/[^/]/.test(source) || isBind(options),
    "a folder as the source needs options: [bind]",
  )
  .refine(
    ({ source, options, fstype }) =>
      typeof source !== "string" || tagged.test(source) || isBind(options) || fstype !== "auto",
    "this source needs its fstype: tmpfs, nfs, cifs, overlay …",
  );
type Args = z.output<typeof args>;

/**
 * ```yaml
 * mount.mounted:
 *   path: /var/lib/kcore/volumes
 *   source: { disk: { serial: S3Z8NB0K }, partition: data }
 *   fstype: ext4
 *   options: [noatime]
 * ```
 * Device names are refused as sources: they change, and a machine with the wrong name in fstab does not boot. The kernel's
 * mount is compared: device, kind of filesystem and the flags rw, ro, relatime, noatime, nodiratime, nosuid, nodev, noexec,
 * sync and dirsync; for a bind mount only the flags that the step gives. Other options are compared in fstab or unit. If
 * another source is mounted at the path, `state: mounted` is refused; `state: absent` unmounts that source.
 */
export const mountMounted = defineModule({
  name: "mount.mounted",
  summary: "Keeps a filesystem mounted, now and at every boot.",
  alsoKnownAs: ["mount", "mount.fstab_present", "server.mount", "fstab"],
  args,
  refusals: ["FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "MOUNT_BUSY", "MOUNT_SOURCE_MISSING", "NIXOS_MANAGED"],
  step: (given, context) => {
    const mount = describe(given, context);
    return {
      brings: true,
      effects: effectsOf(given),
      want: { ...wantBoot(given, mount), ...wantNow(given, mount) },
      probe: sh`${readFstab(given.fstab, { mountPoint: escapeBlanks(given.path) })}
fact fstab "$fstab"
${mount.unit ? probeUnit(mount.unit) : sh``}
${readMount(given, mount)}
fact mounted "$mounted"
fact fstype "$fstype"
fact flags "$flags"`,
      guard: guard(given, mount),
      apply: sh`${guard(given, mount)}
${readFstab(given.fstab, { mountPoint: escapeBlanks(given.path) })}
reload=
${persist(given, mount)}
# Without a reload systemd would act on the old fstab, and might unmount the new mount at once.
if [ -n "$reload" ] && ${underSystemd}; then systemctl daemon-reload || exit 1; fi
${mount.unit && given.state !== "absent" ? sh`systemctl enable -q ${mount.unit.name} || exit 1` : sh``}
${given.state === "mounted" ? mountNow(given, mount) : sh``}
${given.state === "absent" ? sh`if [ "$mounted" != no ]; then umount ${given.path} || exit 1; fi` : sh``}`,
      timeout: 120,
    };
  },
});

function effectsOf({ path, state, source, fstab, options }: Args): Effects {
  const disk = typeof source === "object" ? deviceName(source) : "*";
  const isDevice = typeof source !== "string" || tagged.test(source);
  return {
    writes: [{ is: "path", path: fstab }, ...(state === "present" ? [] : [{ is: "tree", path } as const])],
    reads: [
      { is: "path", path: fstab },
      { is: "existing", path },
      ...(isDevice ? [{ is: "disk", name: disk } as const] : []),
      ...(!isDevice && isBind(options) ? [{ is: "path", path: source } as const] : []),
    ],
  };
}

interface Mount {
  /** The source in fstab, without fstab's escapes. */
  readonly source: string;
  /** udev's link to the device that the source names. */
  readonly link?: string;
  readonly isBind: boolean;
  /** All options, for fstab and unit. */
  readonly options: readonly string[];
  /** The line of fstab. */
  readonly line: string;
  /** The wanted flags, sorted; for a bind mount only the given flags, since the mount inherits the others from its source. */
  readonly flags: string;
  /** The mount unit, with `persist: unit`. */
  readonly unit?: MountUnit;
}

function describe(given: Args, context: StepContext): Mount {
  const { path, fstype, dump } = given;
  const source =
    typeof given.source === "object" ? sourceOfDevice(given.source, fstype, context) : (given.source ?? "UUID=-");
  const [tag, value] = source.split(/=(.*)/s) as [keyof typeof links, string];
  const link = tagged.test(source) ? `/dev/disk/${links[tag]}/${value}` : undefined;
  const nofail = (given.nofail ?? path !== "/") && !given.options.includes("nofail");
  const options = [...given.options, ...(nofail ? ["nofail"] : [])];
  const isChecked = link !== undefined && !["xfs", "btrfs", "vfat"].includes(fstype);
  const passno = given.passno ?? (path === "/" ? 1 : isChecked ? 2 : 0);
  const words = options.length === 0 || (options.length === 1 && nofail) ? ["defaults", ...options] : options;
  const bound = isBind(options);
  const kind = bound && fstype === "auto" ? "none" : fstype;
  const mount = {
    source,
    ...(link !== undefined && { link }),
    isBind: bound,
    options,
    line: `${escapeBlanks(source)} ${escapeBlanks(path)} ${kind} ${words.join(",")} ${dump} ${passno}`,
    flags: bound ? bindFlags(options) : flagsOf(options),
  };
  if (given.persist !== "unit") return mount;
  const isRequired = !(given.nofail ?? path !== "/");
  return { ...mount, unit: mountUnit({ path, source: link ?? source, fstype: kind, options, isRequired }) };
}

function sourceOfDevice(source: DeviceOf, fstype: string, context: StepContext): string {
  return `UUID=${shownUuid(filesystemUuid(deviceGuid(context, source)), fstype)}`;
}

function wantBoot({ state }: Args, { line, unit }: Mount): Record<string, string> {
  if (!unit) return { fstab: state === "absent" ? "absent" : line };
  return state === "absent"
    ? { fstab: "absent", unit: "absent" }
    : { fstab: "absent", unit: `sha256:${unit.blob.sha256}`, enabled: "enabled" };
}

function wantNow({ state, fstype }: Args, { source, isBind: bound, flags }: Mount): Record<string, string> {
  if (state === "present") return {};
  if (state === "absent") return { mounted: "no" };
  // Not compared: a bind mount has its source's filesystem type, and nfs a type with its version.
  const kind = fstype === "auto" || bound || fstype === "nfs" ? {} : { fstype };
  return { mounted: source, ...kind, flags };
}

/** Sets `device` (empty if the source is missing), `mounted`, `fstype` and `flags`. */
function readMount({ path }: Args, { source, link, isBind: bound, flags }: Mount): Sh {
  const found = bound
    ? sh`[ -e ${source} ] && device=${source} || device=`
    : link === undefined
      ? sh`device=${source}`
      : sh`# sysfs knows a device by the kernel's name; the name of a logical volume is a link.
  device=$(findfs ${source} 2>/dev/null) || device=${link}
  device=$(readlink -f "$device")
  [ -b "$device" ] || device=`;
  const isWantedSource = bound
    ? sh`[ "$(stat -Lc %d:%i ${source} 2>/dev/null)" = "$(stat -Lc %d:%i ${path})" ]`
    : link === undefined
      ? sh`[ "$mounted" = ${escapeBlanks(source)} ]`
      : sh`[ -n "$device" ] && [ "$(cat "/sys/class/block/\${device##*/}/dev" 2>/dev/null)" = "$1" ]`;
  const shown = bound ? flags.split(" ") : shownFlags;
  const among = (names: readonly string[]): Sh => sh`grep -x ${["-", ...names].flatMap((name) => ["-e", name])}`;
  return sh`find_device() {
  ${found}
}
find_device
# A mount point's last line is the mount on top (proc(5)): number, options, type, source, options of the filesystem.
set -- $(place=${escapeBlanks(path).replaceAll("\\043", "#")} awk '$5 == ENVIRON["place"] { for (i = 7; i <= NF; i++) if ($i == "-") break; last = $3 " " $6 " " $(i + 1) " " $(i + 2) " " $(i + 3) } END { print last }' /proc/self/mountinfo)
mounted=no fstype= flags=
if [ $# -gt 0 ]; then
  mounted="$4" fstype=$3
  if ${isWantedSource}; then mounted=${source}; fi
  flags=$(printf '%s\n' "$2" | tr , '\n' | ${among(shown.filter((flag) => !/sync/.test(flag)))})
  flags="$flags $(printf '%s\n' "$5" | tr , '\n' | ${among(shown.filter((flag) => /^ro$|sync/.test(flag)))})"
  case " $(echo $flags) " in *' ro '*) flags=$(printf '%s\n' $flags | grep -vx rw) ;; esac
  flags=$(echo $(printf '%s\n' $flags | sort -u))
fi`;
}

function guard(given: Args, mount: Mount): Sh {
  const { path, state } = given;
  return sh`${readMount(given, mount)}
${mount.unit ? sh`not_nixos ${`/etc/systemd/system/${mount.unit.name}`}` : notOfNixos(given, mount)}
[ ! -L ${path} ] || refuse MOUNT_BUSY ${`${path} is a symbolic link; mount where it leads instead`}
case $mounted in
  no | ${mount.source}) ;;
  *) ${state === "mounted" ? sh`refuse MOUNT_BUSY ${`${path} has something else mounted: `}"$mounted ($fstype)"` : sh`:`} ;;
esac`;
}

/** Refuses an fstab that NixOS made, unless it has the wanted line already. */
function notOfNixos({ fstab, path, state }: Args, { line }: Mount): Sh {
  return sh`${readFstab(fstab, { mountPoint: escapeBlanks(path) })}
[ "$fstab" = ${state === "absent" ? "absent" : line} ] || not_nixos ${fstab}`;
}

function persist({ fstab, path, state }: Args, { line, unit }: Mount): Sh {
  const wanted = unit || state === "absent" ? "" : line;
  const edit = sh`if [ "$fstab" != ${wanted === "" ? "absent" : wanted} ]; then
  reload=1
  ${writeFstab(fstab, { mountPoint: escapeBlanks(path) }, wanted)}
fi`;
  if (!unit) return edit;
  const file = `/etc/systemd/system/${unit.name}`;
  return state === "absent"
    ? sh`${edit}
if [ -e ${file} ]; then systemctl disable -q --now ${unit.name} 2>/dev/null; rm -f ${file} && reload=1 && mounted=no; fi`
    : sh`${edit}
if ! cmp -s ${unit.blob} ${file}; then put_file ${unit.blob} ${file} 0644 root root && reload=1 || exit 1; fi`;
}

function mountNow({ path, fstype }: Args, { source, isBind: bound, options, flags, unit }: Mount): Sh {
  // mount(8) gets no options that have a meaning only in fstab.
  const own = options.filter(
    (option) => !/^(defaults|nofail|auto|noauto|_netdev|x-.*|(no)?(user|users|owner|group))$/.test(option),
  );
  const type = fstype === "auto" ? [] : ["-t", fstype];
  const joined = (names: readonly string[]): string => names.filter((name) => name !== "").join(",");
  const remount = ["remount", ...(bound ? flags.split(" ") : allFlags(flags)), ...own];
  // BusyBox applies a bind mount's other options only on a remount.
  const then = bound && flags !== "" ? sh` && mount -o ${joined(remount)} ${path}` : sh``;
  const now = unit
    ? sh`systemctl start ${unit.name}`
    : sh`mount ${type} -o ${joined([...new Set([...flags.split(" "), ...own])])} "$device" ${path}${then}`;
  return sh`if [ "$mounted" = no ]; then
  tries=0
  until [ -n "$device" ]; do
    tries=$((tries + 1))
    [ $tries -le 20 ] || refuse MOUNT_SOURCE_MISSING ${bound ? sh`${`there is no folder ${source}`}` : sh`${`no device carries ${source}`}"$K_NL$(blkid)"`}
    [ $tries != 1 ] || note ${bound ? `waiting for the folder ${source}` : `waiting for a device with ${source}`}
    sleep 0.5
    find_device
  done
  parent_of ${path} 1
  safe_parents ${path}
  mkdir -p ${path} || exit 1
  [ -z "$(ls -A ${path})" ] || note ${`files in the folder ${path} itself are hidden by the mount`}
  ${now} || exit 1
else
  # A remount names every flag, since mount would keep the other flags.
  mount -o ${joined(remount)} ${path} || exit 1
fi`;
}
