# Sends tables, headers and labels of disks (POSIX sh; dash, bash, BusyBox, mksh), which the bastion keeps before they
# may be wiped (ADR 0012). Changes nothing. Follows the functions for disks and their areas
# (step/fragments/disk-functions.ts, areas.ts).
#
# Given: k_nonce K_STATE K_RUNID k_names (the disks, a name a line: serial, WWN, link in by-id or by-path, VG/LV,
# md/ARRAY). Prints `saving`, and for each name `save NUMBER SIZE KERNEL_NAME`, `id NUMBER KIND VALUE`, `text NUMBER BYTES
# WHAT` and `piece NUMBER OFFSET LENGTH SHA256 BYTES`. A frame `out` with their bytes, compressed by gzip, follows `text`
# and `piece`. At the end of a name comes `saved NUMBER PIECES`, `unsaved NUMBER WHY`, or `absent NUMBER` for an unknown
# name. The last frame is `all`.

LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/wrappers/bin:/run/current-system/sw/bin LVM_SUPPRESS_FD_WARNINGS=1
export LC_ALL PATH LVM_SUPPRESS_FD_WARNINGS
umask 077
# shellcheck disable=SC3045
ulimit -Sc 0
unset CDPATH ENV IFS
K_NL='
'
if [ -n "${KSH_VERSION-}" ]; then
  s_say() { print -r -- "$k_nonce $1"; }
else
  s_say() { printf '%s\n' "$k_nonce $1"; }
fi
K_TMP=$K_STATE/runs/$K_RUNID/tmp/save.$$
trap 'rm -rf "${K_TMP:?}"' EXIT
trap 'exit 1' HUP TERM PIPE
s_say saving
mkdir -p "$K_TMP" || exit 1

# s_find NAME: s_name = the disk's name in sysfs, empty for an unknown name; s_why = the reason if several disks have the name.
s_find() {
  s_name= s_why=
  s_found=$(
    {
      disks_named serial "$1"
      disks_named wwn "$1"
      case $1 in
        */../* | ../* | */..) ;;
        md/*) s_link "/dev/$1" "/dev/disk/by-id/md-name-${1#md/}" /dev/disk/by-id/md-name-*:"${1#md/}" ;;
        */*) s_link "/dev/$1" ;;
        *)
          disks_named byId "$1"
          disks_named busPath "$1"
          ;;
      esac
    } | sort -u
  )
  case $s_found in
    '') ;;
    *"$K_NL"*) s_why="several disks have this name" ;;
    *) s_name=$s_found ;;
  esac
}
# s_link PATH...: prints the name in sysfs of each path that is a block device: two arrays may have one name.
s_link() {
  for s_path in "$@"; do
    s_path=$(readlink -f "$s_path") && [ -b "$s_path" ] || continue
    printf '%s\n' "${s_path#/dev/}" | tr / '!'
  done
}

# s_bytes_of SIZE FILE: sends the bytes of a file in a frame `out`.
s_bytes_of() {
  s_say "out bytes 0 $1 0"
  cat "$2"
  echo
}

# s_text TITLE COMMAND...: sends the first 256 KiB of a command's output, if the node has it and it prints anything.
s_text() {
  s_what=$1
  shift
  command -v "$1" >/dev/null 2>&1 || return 0
  "$@" 2>/dev/null </dev/null | head -c 262144 >"$K_TMP/text"
  [ -s "$K_TMP/text" ] || return 0
  gzip -c "$K_TMP/text" >"$K_TMP/gz" || return 0
  s_packed=$(stat -c %s "$K_TMP/gz")
  s_say "text $s_number $s_packed $s_what"
  s_bytes_of "$s_packed" "$K_TMP/gz"
}

# With -p blkid ends at the first blank device.
s_blkid() { for s_path in "$@"; do blkid -p "$s_path"; done; }

# s_groups: prints LVM's metadata of the groups that have a volume on these devices, as text.
s_groups() {
  command -v pvs >/dev/null 2>&1 || return 0
  for s_group in $(pvs --noheadings -o pv_name,vg_name 2>/dev/null | while read -r s_pv s_vg; do
    for s_path in "$@"; do [ "$s_path" != "$(readlink -f "$s_pv")" ] || echo "$s_vg"; done
  done | sort -u); do
    rm -f "$K_TMP/group"
    vgcfgbackup -f "$K_TMP/group" "$s_group" >/dev/null 2>&1 && s_text "vgcfgbackup $s_group" cat "$K_TMP/group"
  done
}

# s_save NAME: sends the frames of one disk. Fails with the reason in s_why, empty if no disk has this name.
s_save() {
  s_find "$1"
  [ -n "$s_name" ] || return 1
  s_dev=$(device_of "$s_name") s_why="$s_dev cannot be read"
  command -v gzip >/dev/null 2>&1 || { s_why="gzip is not on the node" && return 1; }
  read -r s_size <"/sys/class/block/$s_name/size" || return 1
  s_size=$((s_size * 512))
  s_say "save $s_number $s_size $s_name"
  s_devices=$s_dev
  for s_part in $(partitions_of "$s_name"); do s_devices="$s_devices $(device_of "$s_part")"; done
  printf '%s\n' "$known_ids" | sed -n "s/^$s_name //p" >"$K_TMP/ids"
  while read -r s_kind s_value; do s_say "id $s_number $s_kind $s_value"; done <"$K_TMP/ids"
  for s_path in /dev/disk/by-id/* /dev/disk/by-path/*; do
    [ "$(readlink -f "$s_path")" = "$s_dev" ] || continue
    case $s_path in */by-id/*) s_kind=byId ;; *) s_kind=busPath ;; esac
    s_say "id $s_number $s_kind ${s_path##*/}"
  done
  s_text lsblk lsblk -b -o NAME,SIZE,TYPE,FSTYPE,LABEL,UUID,PARTLABEL,PARTUUID,MODEL,SERIAL,WWN "$s_dev"
  s_text sfdisk sfdisk -d "$s_dev"
  s_text blkid s_blkid $s_devices
  s_groups $s_devices
  sync
  flush_caches "$s_name"
  areas_of "$s_name" "$s_size" >"$K_TMP/areas" && pieces_of "$s_size" <"$K_TMP/areas" >"$K_TMP/pieces" && [ -s "$K_TMP/pieces" ] || return 1
  s_count=0
  while read -r s_offset s_length; do
    read_piece "$s_dev" "$s_offset" "$s_length" >"$K_TMP/raw" && [ "$(stat -c %s "$K_TMP/raw")" = "$s_length" ] || { s_why="$s_dev cannot be read at byte $s_offset: $(tail -n 1 "$K_TMP/dd")" && return 1; }
    s_sum=$(sha256sum <"$K_TMP/raw") && gzip -1 -c "$K_TMP/raw" >"$K_TMP/gz" || { s_why="no room in $K_TMP" && return 1; }
    s_packed=$(stat -c %s "$K_TMP/gz")
    s_say "piece $s_number $s_offset $s_length ${s_sum%% *} $s_packed"
    s_bytes_of "$s_packed" "$K_TMP/gz"
    s_count=$((s_count + 1))
  done <"$K_TMP/pieces"
  s_say "saved $s_number $s_count"
}

known_ids=$(disk_ids)
s_number=0
printf '%s\n' "$k_names" >"$K_TMP/names"
while IFS= read -r s_wanted <&4; do
  if ! s_save "$s_wanted"; then
    if [ -n "$s_why" ]; then s_say "unsaved $s_number $s_why"; else s_say "absent $s_number"; fi
  fi
  s_number=$((s_number + 1))
done 4<"$K_TMP/names"
s_say all
