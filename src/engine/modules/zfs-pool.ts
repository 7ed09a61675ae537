import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule, type StepContext } from "../step/define.ts";
import { deviceFields, deviceGuid, DiskId, diskName, mappingName, PartitionName } from "../step/disk-names.ts";
import { AbsolutePath } from "../step/fields.ts";
import { diskTools, eachPartition } from "../step/fragments/disk.ts";
import { wipeGranted } from "../step/fragments/granted.ts";
import { unmark } from "../step/fragments/unmark.ts";
import { judgePool } from "../step/fragments/zfs-members.ts";
import { loadZfs, poolFunctions } from "../step/fragments/zfs.ts";
import { hostId, encryptionProperties, PoolName, poolGuid, poolMark, Properties } from "../step/zfs-names.ts";
import { sh, shLines } from "../step/sh.ts";

/** The kinds of vdevs and the fewest members of each (zpoolconcepts(7)). */
const fewest = { stripe: 1, mirror: 2, raidz1: 2, raidz2: 3, raidz3: 4 } as const;

const args = z
  .strictObject({
    name: PoolName.default("tank0").describe("The pool's name."),
    layout: z
      .enum(Object.keys(fewest) as (keyof typeof fewest)[])
      .default("stripe")
      .describe("stripe, mirror, raidz1, raidz2 or raidz3."),
    width: z
      .int()
      .min(2)
      .max(64)
      .optional()
      .describe("How many disks make one mirror or raidz, in the order of disks (default: 2 of a mirror, else all)."),
    disks: z
      .array(DiskId)
      .min(1)
      .max(256)
      .describe("The disks whose partitions are members of the pool; other members stay in the pool."),
    partition: PartitionName.describe("The name of the member partition on each of the disks."),
    encrypted: deviceFields.encrypted,
    ashift: z.int().min(9).max(16).default(12).describe("The sector size that is written for, as a power of two."),
    properties: Properties(["altroot", "ashift", "cachefile", "comment", "guid", "readonly"])
      .default({})
      .describe("Properties of the pool, such as autotrim (zpoolprops(7))."),
    mountpoint: z
      .union([z.literal("none"), AbsolutePath])
      .default("none")
      .describe("Where the root dataset is mounted; none: nowhere."),
    rootProperties: Properties([...encryptionProperties, "mountpoint"])
      .default({})
      .describe("Properties of the root dataset, which other datasets inherit, such as compression (zfsprops(7))."),
  })
  .refine(({ layout, width }) => layout !== "stripe" || width === undefined, "a stripe has no width")
  .refine((given) => disksPerGroup(given) >= fewest[given.layout], "too few disks for this layout")
  .refine(
    (given) => given.disks.length % disksPerGroup(given) === 0,
    "the disks do not make whole vdevs of this width",
  );
type Args = z.output<typeof args>;

interface Shape {
  readonly layout: keyof typeof fewest;
  readonly width?: number | undefined;
  readonly disks: readonly DiskId[];
}

function disksPerGroup({ layout, width, disks }: Shape): number {
  return layout === "stripe" ? 1 : (width ?? (layout === "mirror" ? 2 : disks.length));
}

/** Units that import and mount pools at boot, on every system. */
const units = "zfs.target zfs-import.target zfs-import-cache.service zfs-mount.service".split(" ");
/** Units for the same that only some systems have. */
const moreUnits = "zfs-load-module.service zfs-volumes.target zfs-volume-wait.service".split(" ");

/**
 * ```yaml
 * zfs.pool:
 *   name: tank0
 *   layout: mirror
 *   disks: [{ serial: S3Z8NB0K }, { serial: S3Z8NB1M }]
 *   partition: zfs
 *   rootProperties: { compression: lz4 }
 * ```
 * The pool's comment is derived from the node's id and the pool's name, which proves later that kcore made the pool. Every
 * member's label has the comment, so kcore reads it without an import. No command gets `-f`, so ZFS makes its own check
 * after kcore's. Members must be blank or granted by the name of their disk (requirement F-18), and of one size in a mirror
 * or raidz. Disks that are added to the list become members if the layout has room: a stripe takes any number, other
 * layouts take whole vdevs, and a new disk replaces a missing member. No member is removed, and no vdev changes its shape.
 * ZFS's programs and its kernel module must be installed.
 */
export const zfsPool = defineModule({
  name: "zfs.pool",
  summary: "Keeps a ZFS pool of partitions or opened LUKS containers, imported now and at every boot.",
  alsoKnownAs: ["zpool", "zpool.present", "zfs"],
  args,
  refusals: [
    "DISK_AMBIGUOUS",
    "DISK_IN_USE",
    "DISK_NOT_FOUND",
    "DISK_NOT_SAVED",
    "FILESYSTEM_DIFFERS",
    "FILE_NO_PARENT",
    "FILE_PARENT_UNSAFE",
    "LUKS_CLOSED",
    "NIXOS_MANAGED",
    "PARTITION_NOT_FOUND",
    "TOOL_MISSING",
    "ZFS_MODULE_MISSING",
    "ZFS_POOL_DIFFERS",
    "ZFS_POOL_TAKEN",
  ],
  step: (given, context) => {
    const { name, disks, partition, encrypted, ashift, mountpoint } = given;
    const guid = poolGuid(context, name);
    const mark = poolMark(guid);
    const members = disks.map((disk) => ({ disk, partition, encrypted }));
    const properties = Object.entries(given.properties);
    const rootProperties = Object.entries({ mountpoint, ...given.rootProperties });
    const order = encrypted ? orderOf(given, context) : undefined;
    const resources = [`zfs/${name}`, ...disks.map((disk) => diskName(disk).value)].map(
      (disk) => ({ is: "disk", name: disk }) as const,
    );
    const readState = sh`${poolFunctions({ name, mark, making: `${guid}.making` })}
read_boot() {
  boot=
  grep -q -F -e ${mark} /etc/zfs/zpool.cache 2>/dev/null || boot=' cache'
  for unit in ${units}; do [ "$(systemctl is-enabled "$unit" 2>/dev/null)" = enabled ] || boot="$boot $unit"; done
  for unit in ${moreUnits}; do [ "$(systemctl is-enabled "$unit" 2>/dev/null)" != disabled ] || boot="$boot $unit"; done
  ${order ? sh`[ "$(cat ${order.path} 2>/dev/null)" = ${order.text} ] || boot="$boot order"` : sh``}
}`;
    const judge = sh`${readState}
${judgePool({ name, mark, ashift, members, layout: given.layout, width: disksPerGroup(given), shape: shapeOf(given) }, context)}`;
    return {
      effects: {
        writes: [...resources, ...(mountpoint === "none" ? [] : [{ is: "tree", path: mountpoint } as const])],
        reads: [...resources, { is: "program", name: "zpool" }],
      },
      want: {
        pool: "imported",
        ...Object.fromEntries(disks.map((disk) => [memberFact(disk), shapeOf(given)])),
        ...Object.fromEntries(properties.map(([key, value]) => [`property ${key}`, value])),
        ...Object.fromEntries(rootProperties.map(([key, value]) => [`root ${key}`, value])),
        "host id": "kept",
        boot: "imported",
      },
      probe: sh`${readState}
read_pool
if [ -s /etc/hostid ]; then fact 'host id' kept; else fact 'host id' none; fi
${eachPartition(
  members,
  context,
  sh`read_member
  fact "member $2" "$member"`,
)}
if [ -n "$pool" ] && [ "$pool_mark" != ${mark} ]; then
  fact pool "not of kcore's"
elif [ -e "$making" ]; then
  fact pool unfinished
elif [ -n "$pool" ]; then
  fact pool imported
  fact health "$health"
else
  fact pool "\${import:+not imported}"
fi
${shLines(properties.map(([key]) => sh`fact ${`property ${key}`} "$(zpool get -H -p -o value ${key} ${name} 2>/dev/null)"`))}
${shLines(rootProperties.map(([key]) => sh`fact ${`root ${key}`} "$(zfs get -H -p -o value ${key} ${name} 2>/dev/null)"`))}
read_boot
fact boot "\${boot:-imported}"`,
      guard: sh`${judge}
judge
read_boot
[ -z "$boot" ] || not_nixos /etc/systemd/system`,
      apply: sh`${judge}
${loadZfs}
[ -s /etc/hostid ] || zgenhostid ${hostId(context)} || exit 1
judge
if [ -n "$import" ]; then
  zpool import -d /dev/disk/by-partuuid ${encrypted ? ["-d", "/dev/mapper"] : []} "$import" || exit 1
  judge
fi
${wipeGranted}
for one in $wipe; do
  wipe_granted "\${one%%=*}" "\${one#*=}"
  # The first and the last MiB hold a pool's four labels, with all signatures that libblkid reads. The last MiB begins at any
  # sector: a partition of 100% has no whole number of MiB.
  sectors=$(($(blockdev --getsize64 "$device") / 512))
  for at in 0 $((sectors - 2048)); do
    dd if=/dev/zero of="$device" bs=512 count=2048 seek="$at" conv=notrunc,fsync 2>"$K_TMP/dd" || { cat "$K_TMP/dd" >&2 && exit 1; }
  done
done
set -f
${mountpoint === "none" ? sh`` : sh`[ -n "$pool" ] || { parent_of ${mountpoint} 1 && safe_parents ${mountpoint}; }`}
if [ -z "$pool" ]; then
  mkdir -p "$K_STATE/fresh" && : >"$making" && sync || exit 1
  zpool create ${["-o", `ashift=${ashift}`, "-o", `comment=${mark}`, ...properties.flatMap(([key, value]) => ["-o", `${key}=${value}`])]} ${rootProperties.flatMap(([key, value]) => ["-O", `${key}=${value}`])} ${name} $vdev_words || exit 1
else
  while read -r verb words; do zpool "$verb" $words || exit 1; done <"$K_TMP/todo"
fi
set -- "$making"
for mark in $used; do set -- "$@" "$K_STATE/fresh/$mark"; done
${unmark(sh`"$@"`)}
${shLines(properties.map(([key, value]) => sh`[ "$(zpool get -H -p -o value ${key} ${name})" = ${value} ] || zpool set ${`${key}=${value}`} ${name} || exit 1`))}
${shLines(rootProperties.map(([key, value]) => sh`[ "$(zfs get -H -p -o value ${key} ${name})" = ${value} ] || zfs set ${`${key}=${value}`} ${name} || exit 1`))}
read_boot
case $boot in *' cache'*) zpool set cachefile= ${name} || exit 1 ;; esac
${
  order
    ? sh`case $boot in *' order'*)
  parent_of ${order.path} 1 && safe_parents ${order.path}
  put_file ${blobOf(`${order.text}\n`)} ${order.path} 0644 root root && systemctl daemon-reload || exit 1 ;;
esac`
    : sh``
}
for unit in $boot; do case $unit in *.*) systemctl enable -q "$unit" || exit 1 ;; esac; done
sync`,
      tools: diskTools,
      timeout: 300,
    };
  },
});

function memberFact(disk: DiskId): string {
  return `member ${diskName(disk).value}`;
}

/** The value of `member` for a member in order; see `read_member` in zfs.ts. */
function shapeOf(given: Shape): string {
  return given.layout === "stripe" ? "stripe" : `${given.layout} of ${disksPerGroup(given)}`;
}

/** A drop-in that makes the import wait for the containers: no target waits for them, because crypttab has `nofail`. */
function orderOf(
  { name, disks, partition }: Args,
  context: StepContext,
): { readonly path: string; readonly text: string } {
  const services = disks.map((disk) => {
    const mapping = mappingName(deviceGuid(context, { disk, partition, encrypted: true }));
    return `systemd-cryptsetup@${mapping.replaceAll("-", "\\x2d")}.service`;
  });
  return {
    path: `/etc/systemd/system/zfs-import-cache.service.d/kcore-${name}.conf`,
    text: `# made by kcore\n[Unit]\n${services.map((service) => `After=${service}`).join("\n")}`,
  };
}
