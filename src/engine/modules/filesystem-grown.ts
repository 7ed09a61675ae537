import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { deviceFields, deviceFrom, deviceName, oneDeviceMessage, type DeviceOf } from "../step/disk-names.ts";
import { deviceRefusals, diskTools, findDevice } from "../step/fragments/disk.ts";
import { sh } from "../step/sh.ts";

const args = z.strictObject(deviceFields).refine((given) => deviceFrom(given) !== undefined, oneDeviceMessage);

/**
 * ```yaml
 * filesystem.grown: { vg: vg_kcore, lv: images }
 * ```
 * The filesystem grows in place, mounted or not (xfs only mounted), after its device became larger, and never shrinks. The
 * step is in order if less than 4 MiB of the device are unused: such a remainder can be too small for a further block
 * group (ext4) or allocation group (xfs).
 */
export const filesystemGrown = defineModule({
  name: "filesystem.grown",
  summary: "Keeps an ext4 or xfs filesystem as large as its device.",
  alsoKnownAs: ["filesystem", "resizefs", "resize2fs", "xfs_growfs", "growpart"],
  args,
  refusals: [
    ...deviceRefusals,
    ...(["FILESYSTEM_DIFFERS", "MOUNT_SOURCE_MISSING", "TOOL_MISSING"] as const),
  ].toSorted(),
  step: (given, context) => {
    const device = deviceFrom(given) as DeviceOf;
    const resource = { is: "disk", name: deviceName(device) } as const;
    const readState = sh`${findDevice(device, context)}
type=$(blkid -p -o value -s TYPE "$device" 2>/dev/null)
read -r sectors <"/sys/class/block/$name/size"
mounted=$(awk -v device="$(cat "/sys/class/block/$name/dev")" '$3 == device { print $5; exit }' /proc/self/mountinfo)
size=
# The size that the filesystem itself reports, in bytes.
case $type in
  ext4) size=$(dumpe2fs -h "$device" 2>/dev/null | awk -F: '/^Block count/ { n = $2 } /^Block size/ { b = $2 } END { if (n) printf "%.0f", n * b }') ;;
  # For a mounted xfs the kernel's size counts: its superblock is written later.
  xfs) size=$(xfs_info "\${mounted:-$device}" 2>/dev/null | sed -n 's/^data .*bsize=\([0-9]*\) *blocks=\([0-9]*\),.*/\1 \2/p' | awk '{ printf "%.0f", $1 * $2 }') ;;
esac
unused=$((sectors * 512 - \${size:-0}))`;
    const judge = sh`case $type in
  ext4) have resize2fs || refuse TOOL_MISSING "resize2fs is not on this node; package e2fsprogs has it" ;;
  xfs)
    have xfs_growfs || refuse TOOL_MISSING "xfs_growfs is not on this node; package xfsprogs has it"
    [ -n "$mounted" ] || refuse MOUNT_SOURCE_MISSING "the xfs on $device grows only while it is mounted: mount.mounted, before this step"
    ;;
  *) refuse FILESYSTEM_DIFFERS "$device holds \${type:-nothing}, and kcore grows ext4 and xfs" ;;
esac`;
    return {
      effects: { writes: [resource], reads: [resource] },
      want: { size: "all of the device" },
      probe: sh`${readState}
fact type "\${type:-none}"
if [ -n "$size" ] && [ "$unused" -lt 4194304 ]; then fact size "all of the device"; else fact size "$((\${size:-0} / 1048576)) of $((sectors / 2048)) MiB"; fi`,
      guard: sh`${readState}
${judge}`,
      apply: sh`${readState}
${judge}
case $type in
  xfs) xfs_growfs "$mounted" >/dev/null ;;
  # An unmounted filesystem is checked first, as resize2fs demands.
  ext4) if [ -z "$mounted" ]; then e2fsck -fp "$device"; [ $? -le 1 ] || exit 1; fi && resize2fs "$device" ;;
esac`,
      tools: diskTools,
      timeout: 600,
    };
  },
});
