import { rawSh, sh } from "../sh.ts";

/** The mount point of the new system while it is made. */
export const targetFolder = "/run/kcore-target";

/** The root filesystem's label once the system is complete. */
export const finishedLabel = "kcore-system";

/**
 * Mounts the root filesystem, `device`, at the target, `t`, until `leave_target` or the shell's end. The filesystem must
 * be empty, or hold an unfinished system, marked by `.kcore-unfinished`.
 * `check_filesystem DEVICE` repairs a filesystem; `empty FOLDER` removes the remains of an interrupted installation.
 */
export const mountTarget = sh`# A killed step may have left filesystems mounted there.
leave_target() {
  while grep -q ${rawSh(`" ${targetFolder}"`)} /proc/self/mountinfo; do umount -R ${targetFolder} 2>/dev/null || umount -lR ${targetFolder} || return 1; done
}
# A power cut during an earlier installation may have damaged the filesystem.
check_filesystem() {
  e2fsck -fp "$1" >"$K_TMP/fsck" 2>&1
  [ $? -le 1 ] || refuse OS_FOUND "the filesystem on $1 is damaged$K_NL$(cat "$K_TMP/fsck")"
}
empty() { find "$1" -mindepth 1 -maxdepth 1 ! -name lost+found ! -name .kcore-unfinished -exec rm -rf --one-file-system {} +; }
t=${targetFolder}
leave_target && check_filesystem "$device" || exit 1
mkdir -p "$t" && mount -t ext4 -o noatime "$device" "$t" || exit 1
trap leave_target EXIT
if [ ! -e "$t/.kcore-unfinished" ]; then
  found=$(cd "$t" && find . -mindepth 1 -maxdepth 1 ! -name lost+found | tr '\n' ' ')
  [ -z "$found" ] || refuse OS_FOUND "the filesystem on $device, which should be empty, holds $found"
fi`;

/** Marks the system as finished, and unmounts it. */
export const finishTarget = sh`rm -f "$t/.kcore-unfinished" && sync
leave_target && e2label "$device" ${finishedLabel} && sync || exit 1`;
