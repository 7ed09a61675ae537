import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { deviceGuid, deviceName, VolumeName } from "../step/disk-names.ts";
import { ByteSize } from "../step/fields.ts";
import { quietLvm } from "../step/fragments/lvm.ts";
import { sh, type Sh } from "../step/sh.ts";

const MiB = 1024 ** 2;

const args = z
  .strictObject({
    vg: VolumeName.describe("The volume group."),
    name: VolumeName.describe("The logical volume's name."),
    type: z
      .enum(["linear", "thinPool", "thin"])
      .default("linear")
      .describe("linear, thinPool, or thin: a volume of a thin pool, which takes room as it is written."),
    size: z
      .union([
        ByteSize,
        z.string().regex(/^(?:100|[1-9]\d?)%(?:FREE|VG)$/, "must be a size, or such as 50%VG or 100%FREE"),
      ])
      .refine((size) => typeof size === "string" || (size >= MiB && size % MiB === 0), "must be whole MiB")
      .describe(
        "The size; a share of the group (50%VG) or of its free space (100%FREE) counts only when the volume is made.",
      ),
    pool: VolumeName.optional().describe("The thin pool; for type thin."),
  })
  .refine(
    ({ type, pool }) => (type === "thin") === (pool !== undefined),
    "type thin needs a pool, and no other has one",
  )
  .refine(({ type, size }) => type !== "thin" || typeof size === "number", "a thin volume's size is a number of bytes");
type Args = z.output<typeof args>;

/** The values of `lv_layout` in lvs(8). */
const layouts = { linear: "linear", thinPool: "thin,pool", thin: "thin,sparse" } as const;

/**
 * ```yaml
 * lvm.logical_volume: { vg: vg_kcore, name: images, size: 20G }
 * ```
 * LVM rounds a size up to whole extents. A volume that is smaller than wanted grows, and a larger one is refused;
 * `filesystem.grown` grows the filesystem on the volume. A new linear volume loses the signatures of an older volume on the
 * same extents.
 */
export const lvmLogicalVolume = defineModule({
  name: "lvm.logical_volume",
  summary: "Keeps an LVM logical volume, thin pool or thin volume.",
  alsoKnownAs: ["lvol", "lvm.lv_present", "lvcreate"],
  args,
  refusals: ["LVM_GROUP_MISSING", "LVM_NO_SPACE", "LVM_VOLUME_DIFFERS", "TOOL_MISSING"],
  step: (given, context) => {
    const { vg, name, type, size, pool } = given;
    const resource = { is: "disk", name: deviceName({ vg, lv: name }) } as const;
    const bytes = typeof size === "number" ? size : undefined;
    const mark = deviceGuid(context, { vg, lv: name });
    return {
      effects: {
        writes: [resource],
        reads: [resource, { is: "disk", name: vg }, { is: "program", name: "lvcreate" }],
      },
      want: {
        layout: layouts[type],
        active: "active",
        ...(pool === undefined ? {} : { pool }),
        ...(bytes === undefined ? {} : { size: `${bytes / MiB} MiB` }),
      },
      probe: sh`${readVolume(given)}
fact layout "\${layout:-absent}"
${pool === undefined ? sh`` : sh`fact pool "$pool"`}
fact size "$size"
fact active "\${active:-absent}"`,
      guard: refuseUnfit(given),
      apply: sh`${refuseUnfit(given)}
case $todo in
  create)
    # The mark tells filesystem.formatted that the volume is unused, although it may hold bytes of an older volume.
    mkdir -p "$K_STATE/fresh" && : >"$K_STATE/fresh/"${mark} && sync || exit 1
    lvcreate -q -y -n ${name} ${create(given)} || exit 1
    ;;
  grow) lvextend -q ${["-L", `${bytes ?? 0}b`]} ${`${vg}/${name}`} || exit 1 ;;
esac
[ "$active" = active ] || lvchange -q -a y ${`${vg}/${name}`} || exit 1
! have udevadm || udevadm settle --timeout=10
sync`,
      timeout: 120,
    };
  },
});

/**
 * Sets `layout` (empty: no such volume), `pool`, `active`, `have` and `extent` (both in bytes), and `size` in MiB: the
 * wanted size if `have` is the wanted size rounded up to whole extents, else the present size.
 */
function readVolume({ vg, name, size }: Args): Sh {
  const wanted = typeof size === "number" ? size : undefined;
  return sh`${quietLvm}
layout= pool= active= have=0 extent=0 wanted=${wanted ?? 0}
line=$(lvs --noheadings --units b --nosuffix --separator '|' -o lv_layout,lv_size,vg_extent_size,lv_active,pool_lv ${`${vg}/${name}`} 2>/dev/null)
ifs=$IFS IFS='|'
set -- $line
IFS=$ifs
[ $# -lt 3 ] || layout=\${1##* } have=$2 extent=$3 active=\${4-} pool=\${5-}
size=$((have / 1048576))' MiB'
${wanted === undefined ? sh`` : sh`if [ "$have" -ge "$wanted" ] && [ "$have" -lt $((wanted + extent)) ]; then size=${`${wanted / MiB} MiB`}; fi`}`;
}

/** Sets `todo` to create, grow or nothing, or refuses; also sets the variables of {@link readVolume}. */
function refuseUnfit(given: Args): Sh {
  const { vg, name, type, size, pool } = given;
  const layout = layouts[type];
  const bytes = typeof size === "number" ? size : undefined;
  const shown = `${vg}/${name}`;
  const needs = type === "thin" ? 0 : (bytes ?? 0);
  return sh`have lvcreate || refuse TOOL_MISSING "lvcreate is not on this node; package lvm2 has it"
${type === "linear" ? sh`` : sh`have thin_check || refuse TOOL_MISSING "thin_check is not on this node; package thin-provisioning-tools has it"`}
${readVolume(given)}
todo=
free=$(vgs --noheadings --units b --nosuffix -o vg_free ${vg} 2>/dev/null)
[ -n "$free" ] || refuse LVM_GROUP_MISSING ${`there is no volume group ${vg}`}"$K_NL$(vgs 2>&1)"
if [ -z "$layout" ]; then
  todo=create
  [ "$((free))" -ge ${needs} ] && [ "$((free))" -gt 0 ] ${type === "thin" ? sh`|| :` : sh`|| refuse LVM_NO_SPACE ${`${shown} needs ${needs / MiB} MiB, and the group has `}"$((free / 1048576)) MiB free"`}
elif [ "$layout" != ${layout} ]${pool === undefined ? sh`` : sh` || [ "$pool" != ${pool} ]`}; then
  refuse LVM_VOLUME_DIFFERS ${`${shown} is there, but not as wanted (${layout}${pool === undefined ? "" : ` of ${pool}`}): `}"$layout\${pool:+ of $pool}"
${
  bytes === undefined
    ? sh``
    : sh`elif [ "$have" -ge $((wanted + extent)) ]; then
  refuse LVM_VOLUME_DIFFERS ${`${shown} is larger than the ${bytes / MiB} MiB wanted, and kcore shrinks no volume: `}"$size"
elif [ "$have" -lt "$wanted" ]; then
  todo=grow
  ${type === "thin" ? sh`:` : sh`[ "$((free))" -ge $((wanted - have)) ] || refuse LVM_NO_SPACE ${`${shown} is to grow to ${bytes / MiB} MiB, and the group has `}"$((free / 1048576)) MiB free"`}`
}
fi`;
}

/** The arguments of lvcreate(8) after the name. */
function create({ vg, type, size, pool }: Args): readonly string[] {
  const room = typeof size === "number" ? ["-L", `${size}b`] : ["-l", size];
  switch (type) {
    case "linear":
      return ["-W", "y", ...room, vg];
    case "thinPool":
      return ["--type", "thin-pool", ...room, vg];
    case "thin":
      return ["--type", "thin", "-V", `${String(size)}b`, "--thinpool", `${vg}/${pool ?? ""}`];
  }
}
