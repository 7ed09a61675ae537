import { sh } from "../sh.ts";
import { grantFunctions } from "./granted.ts";

/** `all_contents` and `is_ours`, for texts after `findDisk`. */
export const ownFunctions = sh`all_contents() { for name in "$disk_name" $(partitions_of "$disk_name"); do contents_of "$name"; done; }
# is_ours GUID: whether the disk has a table with this GUID, which kcore made.
is_ours() { [ "$(blkid -p -o value -s PTUUID "$disk" 2>/dev/null | tr 'A-F' 'a-f')" = "$1" ]; }`;

/**
 * Functions that check and clear a whole disk, for texts after `findDisk`. The caller sets `mark` and `describe`, and
 * defines `judge_open`, which sets `users` to the error of an exclusive open.
 */
export const clearFunctions = sh`${grantFunctions}
${ownFunctions}
# judge_use: refuses a disk in use, which no grant covers.
judge_use() {
  users=$(for name in "$disk_name" $(partitions_of "$disk_name"); do users_of "$name"; done)
  [ -n "$users" ] || judge_open
  [ -z "$users" ] || refuse DISK_IN_USE "$describe is in use, which no grant overrides$K_NL$(about_disk "$disk_name")$K_NL$users\${found:+$K_NL$found}\${differ-}"
}
# judge_contents NAME [MADE]: sets found and, unless the disk is blank, grant; refuses contents without a grant. MADE is the refusal's word on their maker.
judge_contents() {
  found=$(all_contents)
  [ -z "$found" ] || is_granted "$disk_name" "$1" "$mark" "$found" "$disk_name" ||
    refuse DISK_HAS_DATA "$describe holds data\${2- that kcore did not make}; if it may go: --grant $grant$K_NL$(about_disk "$disk_name")$K_NL$found"
}
note_wipe() { note "$(about_disk "$disk_name"): wiped, as granted, with $(printf '%s\n' "$1" | sed -e '/^$/d' | tr '\n' ';')"; }
# zero FIRST COUNT: overwrites COUNT blocks of 4 KiB with zeros, from block FIRST on.
zero() { dd if=/dev/zero of="$disk" bs=4096 seek="$1" count="$2" conv=notrunc,fsync 2>"$K_TMP/dd" || { cat "$K_TMP/dd" >&2 && exit 1; }; }
# clear_disk: erases all signatures, the first 4 MiB and the last MiB, after judge_contents.
clear_disk() {
  note "wiping $describe, as granted"
  wiping "\${judged#*:}"
  mkdir -p "$K_STATE/fresh" && echo "$grant" >"$mark" && sync || exit 1
  # With -f: wipefs would take kcore's own exclusive open for use by another process.
  for name in $(partitions_of "$disk_name"); do wipefs -a -q \${holder:+-f} "$(device_of "$name")" || exit 1; done
  wipefs -a -q \${holder:+-f} "$disk" || exit 1
  sectors=$(cat "/sys/class/block/$disk_name/size")
  zero 0 1024
  [ "$sectors" -le 8192 ] || zero $((sectors / 8 - 256)) 256
}`;
