import { sh } from "../sh.ts";

/**
 * granted GRANT...: true if one of these was given: NAME:FINGERPRINT of what is wiped. One that was given, but of whose disk nothing could be
 * saved on the bastion first (ADR 0012), refuses: K_UNSAVED holds it, and in the line behind it why.
 */
export const granted = sh`granted() {
  for k_g in "$@"; do
    case $K_NL$K_GRANTED$K_NL in *"$K_NL$k_g$K_NL"*) [ -z "$k_g" ] || return 0 ;; esac
  done
  for k_g in "$@"; do
    case $K_NL\${K_UNSAVED-} in
      *"$K_NL$k_g$K_NL"*)
        k_why=\${K_UNSAVED#*"$k_g$K_NL"}
        refuse DISK_NOT_SAVED "\${k_g%:*} was granted, but is left as it is: its table could not be saved on the bastion first: \${k_why%%"$K_NL"*}"
        ;;
    esac
  done
  return 1
}`;

/** `is_granted`, which stands behind the functions over disks. */
export const isGranted = sh`${granted}
# is_granted NAME_OF_DISK NAME MARK CONTENTS: a wipe of just these contents was granted, by the name given or by another that the disk has; or
# one that was granted began, as the file MARK says, and they are what it left. Sets grant: what grants it. What the node calls the disk today is no part
# of it.
is_granted() {
  contents=$(printf '%s\n' "$4" | sed -e "s#\${device:-none}#device#g" -e "s#\${disk:-none}#disk#g" | sha256sum | head -c 16)
  ids=$(disk_ids | sed -n "s/^$1 [a-z]* //p" | tr ' ' '?')
  for id in "$2" $ids; do
    grant=$(echo "$id" | tr '?' ' '):$contents
    ! granted "$grant" || return 0
  done
  { read -r grant <"$3"; } 2>/dev/null && granted "$grant" && return 0
  # A place, a model and a size are no names of one disk: such a grant is told by its serial number, or its WWN.
  grant=$2
  case $K_NL$ids$K_NL in
    *"$K_NL$(echo "$2" | tr ' ' '?')$K_NL"* | "$K_NL$K_NL") ;;
    *) [ -e "/dev/disk/by-id/$2" ] || grant=$(printf '%s\n' "$ids" | head -n 1 | tr '?' ' ') ;;
  esac
  grant=$grant:$contents
  return 1
}`;
