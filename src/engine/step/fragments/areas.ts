import { sh } from "../sh.ts";

/**
 * Functions that find the areas of a disk and its partitions: tables, headers, labels, superblocks and other metadata.
 * kcore saves these bytes before a wipe; a grant covers these and more. For texts after `diskFunctions`. `a_head` and `a_tail`
 * are the bytes at a device's beginning and end that belong to its areas.
 */
export const areaFunctions = sh`
a_mib=1048576
# clear_disk zeroes this head and tail, and contents_of reads both before it calls a device blank.
a_head=$((4 * a_mib)) a_tail=$a_mib
# Most bytes of a piece.
a_part=$((4 * a_mib))
# luks_bytes DEVICE: bytes of a LUKS header and of the first MiB of its data, where LVM's label or a superblock may be.
luks_bytes() {
  [ "$(blkid -p -o value -s TYPE "$1" 2>/dev/null)" = crypto_LUKS ] || return 0
  a_bytes=
  if [ "$(blkid -p -o value -s VERSION "$1" 2>/dev/null)" = 1 ]; then
    # LUKS On-Disk Format 1.2.3, 2.1: payload-offset, in sectors.
    set -- $(dd if="$1" bs=4096 count=1 2>/dev/null | od -An -tu1 -j104 -N4)
    [ $# != 4 ] || a_bytes=$((((($1 * 256 + $2) * 256 + $3) * 256 + $4) * 512))
  else
    # LUKS2 On-Disk Format 1.1.2, 3: the JSON area has the offset of the data.
    a_bytes=$(dd if="$1" bs=4096 skip=1 count=1023 2>/dev/null | tr -d '\000' | tr -cd '\40-\176' |
      sed -n 's/.*"segments":{"[0-9]*":{[^}]*"offset":"\([0-9]*\)".*/\1/p')
  fi
  # LUKS2's default if the header names no offset; 0 means a detached header.
  case $a_bytes in '' | 0 | *[!0-9]*) a_bytes=$((16 * a_mib)) ;; esac
  # A header may name any offset.
  [ "$a_bytes" -le $((64 * a_mib)) ] || a_bytes=$((64 * a_mib))
  echo $((a_bytes + a_mib))
}
# device_areas START LENGTH DEVICE: the areas of a device, as OFFSET LENGTH on the whole disk.
device_areas() {
  echo "$1 $a_head"
  [ "$2" -lt "$a_tail" ] || echo "$(($1 + $2 - a_tail)) $a_tail"
  a_bytes=$(luks_bytes "$3")
  [ -z "$a_bytes" ] || echo "$1 $a_bytes"
}
# areas_of NAME SIZE: the areas of a disk and its partitions, including partitions that only the table names.
areas_of() {
  a_dev=$(device_of "$1")
  device_areas 0 "$2" "$a_dev"
  for a_name in $(partitions_of "$1"); do
    read -r a_start <"/sys/class/block/$a_name/start" && read -r a_sectors <"/sys/class/block/$a_name/size" || return 1
    device_areas $((a_start * 512)) $((a_sectors * 512)) "$(device_of "$a_name")"
  done
  read_table "$a_dev" | while read -r number start sectors rest; do
    case $start:$sectors in *[!0-9:]* | : | :* | *:) continue ;; esac
    echo "$((start * 512)) $a_head"
    # The table of a logical partition precedes the partition.
    if [ "$start" -ge 2048 ]; then echo "$((start * 512 - a_mib)) $a_mib"; else echo "0 $((start * 512))"; fi
  done
}
# pieces_of SIZE: joins areas that touch or overlap, and cuts the result into pieces.
pieces_of() {
  sort -n | awk -v size="$1" -v part="$a_part" '
    function tell() {
      for (; to > from; from += part) printf "%.0f %.0f\n", from, (to - from < part ? to - from : part)
    }
    { end = $1 + $2; if (end > size) end = size }
    $1 > to || NR == 1 { tell(); from = $1; to = end; next }
    end > to { to = end }
    END { tell() }'
}
# read_piece DEVICE OFFSET LENGTH: prints these bytes.
read_piece() {
  a_bs=$a_mib
  while [ $(($2 % a_bs)) != 0 ] || [ $(($3 % a_bs)) != 0 ]; do a_bs=$((a_bs / 2)); done
  dd if="$1" bs="$a_bs" skip=$(($2 / a_bs)) count=$(($3 / a_bs)) 2>"$K_TMP/dd"
}
# flush_caches NAME: flushes the caches of a disk and of its partitions, each of which has its own.
flush_caches() { for a_name in "$1" $(partitions_of "$1"); do blockdev --flushbufs "$(device_of "$a_name")" 2>/dev/null; done; }
# contents_sum NAME: the SHA-256 of the areas of a disk or partition, places and bytes, with a longer head. A grant is bound to it.
contents_sum() {
  read -r a_size <"/sys/class/block/$1/size" || return 1
  # A new file changes a filesystem's maps or checkpoints in the first 16 MiB: the sum covers more than a save does.
  a_head=$((16 * a_mib))
  flush_caches "$1"
  areas_of "$1" $((a_size * 512)) | pieces_of $((a_size * 512)) | while read -r a_at a_length; do
    echo "$a_at $a_length"
    read_piece "$(device_of "$1")" "$a_at" "$a_length" || echo unreadable
  done | sha256sum | head -c 64
}`;
