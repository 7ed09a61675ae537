import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, ByteSize } from "../step/fields.ts";
import { loadZfs, requireZfs } from "../step/fragments/zfs.ts";
import { DatasetName, encryptionProperties, PoolName, Properties } from "../step/zfs-names.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

const MiB = 1024 ** 2;

/** Properties that can be set only when the dataset is made (zfsprops(7)). */
const fixedProperties = ["casesensitivity", "normalization", "utf8only", "volblocksize"];

const args = z
  .strictObject({
    pool: PoolName.default("tank0").describe("The pool."),
    name: DatasetName.describe(
      "The dataset's name in the pool, such as images or guests/images; missing ones above it are made.",
    ),
    mountpoint: z
      .union([z.literal("none"), AbsolutePath])
      .optional()
      .describe("Where the filesystem is mounted, now and at every boot; none: nowhere (default: the inherited one)."),
    size: ByteSize.refine((size) => size >= MiB && size % MiB === 0, "must be whole MiB")
      .optional()
      .describe("Makes a volume of this size, /dev/zvol/POOL/NAME, instead of a filesystem."),
    properties: Properties([...encryptionProperties, "mountpoint", "volsize"])
      .default({})
      .describe("The dataset's properties, such as compression, recordsize or quota (zfsprops(7))."),
  })
  .refine(({ mountpoint, size }) => mountpoint === undefined || size === undefined, "a volume is not mounted");
type Args = z.output<typeof args>;

/**
 * ```yaml
 * zfs.dataset: { pool: tank0, name: images, mountpoint: /var/lib/kcore/volumes, properties: { compression: zstd } }
 * ```
 * ZFS rounds a size up to whole blocks. A volume that is smaller than wanted grows, and a larger one is refused. No dataset is
 * destroyed.
 */
export const zfsDataset = defineModule({
  name: "zfs.dataset",
  summary: "Keeps a ZFS filesystem mounted, or a ZFS volume.",
  alsoKnownAs: ["zfs", "zfs.filesystem_present", "zfs.volume_present"],
  args,
  refusals: [
    "FILE_NO_PARENT",
    "FILE_PARENT_UNSAFE",
    "MOUNT_BUSY",
    "TOOL_MISSING",
    "ZFS_DATASET_DIFFERS",
    "ZFS_MODULE_MISSING",
    "ZFS_NO_SPACE",
    "ZFS_POOL_MISSING",
  ],
  step: (given) => {
    const { pool, name, mountpoint, size, properties } = given;
    const dataset = `${pool}/${name}`;
    const path = mountpoint === "none" ? undefined : mountpoint;
    const isMounted = path !== undefined && (properties["canmount"] ?? "on") === "on";
    const wanted = Object.entries({ ...(mountpoint === undefined ? {} : { mountpoint }), ...properties });
    const changed = wanted.filter(([key]) => !fixedProperties.includes(key));
    const options = wanted.flatMap(([key, value]) => ["-o", `${key}=${value}`]);
    const resource = { is: "disk", name: `zfs/${dataset}` } as const;
    return {
      effects: {
        writes: [resource, ...(path === undefined ? [] : [{ is: "tree", path } as const])],
        reads: [resource, { is: "disk", name: `zfs/${pool}` }, { is: "program", name: "zfs" }],
      },
      want: {
        type: size === undefined ? "filesystem" : "volume",
        ...(size === undefined ? {} : { size: `${size / MiB} MiB` }),
        ...(isMounted ? { mounted: "yes" } : {}),
        ...Object.fromEntries(wanted.map(([key, value]) => [`property ${key}`, value])),
      },
      probe: sh`${readDataset(given)}
fact type "\${type:-absent}"
${size === undefined ? sh`` : sh`fact size "$size"`}
${isMounted ? sh`fact mounted "$(property mounted)"` : sh``}
${shLines(wanted.map(([key]) => sh`fact ${`property ${key}`} "$(property ${key})"`))}`,
      guard: refuseUnfit(given),
      apply: sh`${refuseUnfit(given)}
${loadZfs}
${
  isMounted
    ? sh`if [ "$(property mounted)" != yes ]; then
  parent_of ${path} 1
  safe_parents ${path}
  [ -z "$(ls -A ${path} 2>/dev/null)" ] || note ${`files in the folder ${path} itself are hidden by the mount`}
fi`
    : sh``
}
if [ -z "$type" ]; then
  zfs create -p ${options} ${size === undefined ? [] : ["-V", String(size)]} ${dataset} || exit 1
else
  ${size === undefined ? sh`` : sh`[ "$have" -ge ${size} ] || zfs set ${`volsize=${size}`} ${dataset} || exit 1`}
  ${shLines(changed.map(([key, value]) => sh`[ "$(property ${key})" = ${value} ] || zfs set ${`${key}=${value}`} ${dataset} || exit 1`))}
fi
${isMounted ? sh`[ "$(zfs get -H -o value mounted ${dataset})" = yes ] || zfs mount ${dataset} || exit 1` : sh``}
! have udevadm || udevadm settle --timeout=10
sync`,
      timeout: 120,
    };
  },
});

/**
 * Sets `type` (empty: no such dataset), `have` (a volume's bytes, else 0) and `size` in MiB: the wanted size if `have` is
 * the wanted size rounded up to whole blocks, else the present size. Defines `property NAME`, which prints a value.
 */
function readDataset({ pool, name, size }: Args): Sh {
  return sh`all=$(zfs get -H -p -o property,value all ${`${pool}/${name}`} 2>/dev/null)
property() { printf '%s\n' "$all" | name=$1 awk -F '\t' '$1 == ENVIRON["name"] { print $2 }'; }
type=$(property type) have=$(property volsize)
have=\${have:-0}
size=$((have / 1048576))' MiB'
${
  size === undefined
    ? sh``
    : sh`wanted=${size} block=$(property volblocksize)
most=$((wanted + \${block:-1} - 1))
if [ "$have" -ge ${size} ] && [ "$have" -le $most ]; then size=${`${size / MiB} MiB`}; fi`
}`;
}

function refuseUnfit(given: Args): Sh {
  const { pool, name, mountpoint = "none", size, properties } = given;
  const dataset = `${pool}/${name}`;
  const type = size === undefined ? "filesystem" : "volume";
  const fixed = Object.entries(properties).filter(([key]) => fixedProperties.includes(key));
  const needsRoom = size !== undefined && properties["refreservation"] !== "0";
  return sh`${requireZfs}
${readDataset(given)}
[ -n "$(zpool list -H -o name ${pool} 2>/dev/null)" ] || refuse ZFS_POOL_MISSING ${`there is no pool ${pool}, or it is not imported`}"$K_NL$(zpool list 2>&1)"
case $type in
  '' | ${type}) ;;
  *) refuse ZFS_DATASET_DIFFERS ${`${dataset} is there, but no ${type}: `}"$type" ;;
esac
${shLines(
  fixed.map(
    ([key, value]) =>
      sh`[ -z "$type" ] || [ "$(property ${key})" = ${value} ] || refuse ZFS_DATASET_DIFFERS ${`${dataset} was made with another ${key} than ${value}, which cannot be changed: `}"$(property ${key})"`,
  ),
)}
${
  size === undefined
    ? sh``
    : sh`[ "$have" -le $most ] ||
  refuse ZFS_DATASET_DIFFERS ${`${dataset} is larger than the ${size / MiB} MiB wanted, and kcore shrinks no volume: `}"$size"`
}
${
  needsRoom
    ? sh`free=$(zfs get -H -p -o value available ${pool})
[ "$free" -ge $((wanted - have)) ] || refuse ZFS_NO_SPACE ${`${dataset} needs ${size / MiB} MiB, and the pool has `}"$((free / 1048576)) MiB free"`
    : sh``
}
${
  mountpoint === "none"
    ? sh``
    : sh`user=$(place=${mountpoint} awk '$5 == ENVIRON["place"] { for (i = 7; i <= NF; i++) if ($i == "-") break; last = $(i + 2) } END { print last }' /proc/self/mountinfo)
case $user in
  '' | ${dataset}) ;;
  *) refuse MOUNT_BUSY ${`${mountpoint} has something else mounted: `}"$user" ;;
esac`
}`;
}
