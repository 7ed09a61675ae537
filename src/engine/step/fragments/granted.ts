import { sh } from "../sh.ts";
import { exclusiveOpen } from "./exclusive-open.ts";
import { areaFunctions } from "./areas.ts";

/**
 * `granted GRANT...`: true if the operator gave one of these grants, NAME:FINGERPRINT of the contents. It refuses the
 * grant of a disk that could not be saved on the bastion before (ADR 0012): K_UNSAVED has such a grant, and on the next
 * line the reason.
 */
export const grantedFunction = sh`granted() {
  for k_grant in "$@"; do
    case $K_NL$K_GRANTED$K_NL in *"$K_NL$k_grant$K_NL"*) [ -z "$k_grant" ] || return 0 ;; esac
  done
  for k_grant in "$@"; do
    case $K_NL\${K_UNSAVED-} in
      *"$K_NL$k_grant$K_NL"*)
        k_why=\${K_UNSAVED#*"$k_grant$K_NL"}
        refuse DISK_NOT_SAVED "\${k_grant%:*} was granted, but is left as it is: its table could not be saved on the bastion first: \${k_why%%"$K_NL"*}"
        ;;
    esac
  done
  return 1
}`;

/** `is_granted` and `refuse_users`, for texts after `diskFunctions`. */
export const grantFunctions = sh`${grantedFunction}
${areaFunctions}
# refuse_users NAME: refuses if $device, called NAME in sysfs, is in use: no grant covers that.
refuse_users() {
  users=$(users_of "$1")
  [ -n "$users" ] || users=$(refused_open "$device")
  [ -z "$users" ] || refuse DISK_IN_USE "$device is in use, which no grant overrides$K_NL$users"
}
# is_granted NAME_OF_DISK NAME MARK CONTENTS DEVICE: whether a grant by NAME, or by another name of the disk, covers exactly these contents. True also
# for contents that an interrupted granted wipe (file MARK) has left. CONTENTS is a description in words; DEVICE, by its name in sysfs, has the bytes.
# Sets grant to the grant that covers them, or would; judged to SUM:FINGERPRINT of bytes and grant. Neither depends on the kernel's name of the disk.
is_granted() {
  sum=$(contents_sum "$5")
  contents=$(printf '%s\n' "$4" "$sum" | sed -e "s#\${device:-none}#device#g" -e "s#\${disk:-none}#disk#g" | sha256sum | head -c 16)
  ids=$(disk_ids | sed -n "s/^$1 [a-z]* //p" | tr ' ' '?')
  judged=$sum:$contents
  for id in "$2" $ids; do
    grant=$(echo "$id" | tr '?' ' '):$contents
    ! granted "$grant" || return 0
  done
  { read -r grant <"$3"; } 2>/dev/null && granted "$grant" && judged=$sum:\${grant##*:} && return 0
  # A place, a model or a size does not identify one disk: the message names a grant by serial number or WWN instead.
  grant=$2
  case $K_NL$ids$K_NL in
    *"$K_NL$(echo "$2" | tr ' ' '?')$K_NL"* | "$K_NL$K_NL") ;;
    *) [ -e "/dev/disk/by-id/$2" ] || grant=$(printf '%s\n' "$ids" | head -n 1 | tr '?' ' ') ;;
  esac
  grant=$grant:$contents
  return 1
}`;

/**
 * `wipe_granted NAME JUDGED [COMMAND]`, after `grantFunctions`: opens a device exclusively and erases its signatures, if it
 * still has the judged contents. COMMAND runs after the last check, directly before the wipe.
 */
export const wipeGranted = sh`${exclusiveOpen}
wipe_granted() {
  device=$(device_of "$1")
  note "wiping $device, as granted"
  hold "$device" || :
  [ -z "$unheld" ] || refuse DISK_IN_USE "$device is in use, which no grant overrides$K_NL$unheld"
  [ "$(contents_sum "$1")" = "\${2%:*}" ] || refuse FILESYSTEM_DIFFERS "$device was written to after its contents were compared with the grant"
  "\${3:-:}"
  wiping "\${2#*:}"
  # With -f: wipefs would take kcore's own exclusive open for use by another process.
  wipefs -a -q \${holder:+-f} "$device" || exit 1
  release
}`;
