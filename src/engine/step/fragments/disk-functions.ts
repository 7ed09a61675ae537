import { sh, type Sh } from "../sh.ts";

/**
 * `whole_disks` prints the names of disks in sysfs: no RAM disks, optical drives, floppies, nbd, device-mapper, md or
 * ZFS devices, and no drive without media.
 */
export const wholeDisks: Sh = sh`whole_disks() {
  for path in /sys/block/*; do
    case \${path##*/} in ram* | zram* | sr* | fd* | dm-* | md* | nbd* | zd* | '*') continue ;; esac
    { read -r size <"$path/size"; } 2>/dev/null && [ "$size" -gt 0 ] && echo "\${path##*/}"
  done
}`;

/**
 * sh functions for the node's disks. `find_disk KIND VALUE` sets `disk` (/dev/…) and `disk_name` (its name in sysfs) to
 * the only whole disk with this value, or refuses. Other functions print the users and the contents of a device.
 */
export const diskFunctions: Sh = sh`
# device_of NAME: the device of a name in sysfs, where an exclamation mark stands for a slash.
device_of() { case $1 in *!*) printf '/dev/%s\n' "$1" | tr '!' / ;; *) echo "/dev/$1" ;; esac; }
${wholeDisks}
# disk_ids: prints the ids of the disks, as NAME serial VALUE and NAME wwn VALUE. lsblk has the ids that udev read; sysfs needs no udev.
# WWNs get one spelling for naa.5000c500.., eui.0025.., 0x5000C500..
disk_ids() {
  {
    whole_disks | while read -r name; do
      for file in serial device/serial; do
        value=
        { read -r value <"/sys/block/$name/$file" || [ -n "$value" ]; } 2>/dev/null && echo "$name serial $value"
      done
      for file in wwid device/wwid; do
        value=
        { read -r value <"/sys/block/$name/$file" || [ -n "$value" ]; } 2>/dev/null && echo "$name wwn $value"
      done
    done
    lsblk -dnPo NAME,SERIAL,WWN 2>/dev/null |
      sed -n -e 's/^NAME="\([^"]*\)" SERIAL="\([^"]*\)" WWN="\([^"]*\)".*/\1 serial \2\n\1 wwn \3/p'
  } | sed -e 's/  *$//' -e '/^[^ ]* [^ ]*$/d' | while read -r name kind value; do
    [ "$kind" != wwn ] || value=$(plain_wwn "$value")
    echo "$name $kind $value"
  done | sort -u
}
plain_wwn() { printf '%s\n' "$1" | tr 'A-Z' 'a-z' | sed -e 's/^naa\.//' -e 's/^eui\.//' -e 's/^wwn-//' -e 's/^0x//'; }
# The output of disk_ids, which is read once for all calls of find_disk in a text.
known_ids=
# about_disk NAME: one line that describes the disk.
about_disk() {
  [ -n "$known_ids" ] || known_ids=$(disk_ids)
  read -r size <"/sys/block/$1/size"
  model=$(models_of "$1" | tail -n 1)
  echo "$(device_of "$1")  $((size / 2048)) MiB  $(printf '%s\n' "$known_ids" | sed -n "s/^$1 //p" | tr '\n' ' ')\${model:+ model $model}"
}
list_disks() {
  [ -n "$known_ids" ] || known_ids=$(disk_ids)
  whole_disks | while read -r name; do
    # A loop device without an id is no disk, but a file of this machine.
    case $name in loop*) printf '%s\n' "$known_ids" | grep -q "^$name " || continue ;; esac
    about_disk "$name"
  done
}
# models_of NAME: the model as sysfs has it (truncated for SCSI), and as udev read it.
models_of() {
  { read -r model <"/sys/block/$1/device/model"; } 2>/dev/null && echo "$model"
  lsblk -dno MODEL "$(device_of "$1")" 2>/dev/null | sed -e 's/  *$//'
}
# is_like NAME SIZE MODEL: whether a disk has this size, to 2 %, and this model; either may be empty. A loop device without an id never matches.
is_like() {
  case $1 in loop*) printf '%s\n' "$known_ids" | grep -q "^$1 " || return 1 ;; esac
  [ -z "$2" ] || awk -v wanted="$2" '{ apart = $1 * 512 - wanted; exit !(apart * apart * 2500 <= wanted * wanted) }' "/sys/block/$1/size" || return 1
  [ -z "$3" ] || models_of "$1" | grep -Fxq -e "$3"
}
disks_named() {
  case $1 in
    byId | busPath)
      folder=/dev/disk/by-id
      [ "$1" = byId ] || folder=/dev/disk/by-path
      link=$(readlink -f "$folder/$2") && [ -b "$link" ] || return 0
      link=$(printf '%s\n' "\${link#/dev/}" | tr / '!')
      whole_disks | grep -Fx -e "$link"
      ;;
    serial) printf '%s\n' "$known_ids" | while read -r name kind value; do [ "$kind $value" != "serial $2" ] || echo "$name"; done ;;
    wwn)
      wanted=$(plain_wwn "$2")
      printf '%s\n' "$known_ids" | while read -r name kind value; do [ "$kind $value" != "wwn $wanted" ] || echo "$name"; done
      ;;
    model) whole_disks | while read -r name; do ! is_like "$name" '' "$2" || echo "$name"; done ;;
    size) whole_disks | while read -r name; do ! is_like "$name" "$2" '' || echo "$name"; done ;;
    'size and model') whole_disks | while read -r name; do ! is_like "$name" "\${2%% *}" "\${2#* }" || echo "$name"; done ;;
  esac | sort -u
}
find_disk() {
  [ -n "$known_ids" ] || known_ids=$(disk_ids)
  disk_name=$(disks_named "$1" "$2")
  case $disk_name in
    '') refuse DISK_NOT_FOUND "no disk with $1 $2$K_NL$(list_disks)" ;;
    *"$K_NL"*) refuse DISK_AMBIGUOUS "several disks with $1 $2$K_NL$(list_disks)" ;;
  esac
  disk=$(device_of "$disk_name")
  [ -b "$disk" ] || refuse DISK_NOT_FOUND "$disk, the disk with $1 $2, is no block device"
}

# The kernel's partitions of a disk, by name in sysfs.
partitions_of() {
  for path in "/sys/class/block/$1/$1"*; do [ ! -e "$path/partition" ] || echo "\${path##*/}"; done
}
# users_of NAME: the users of a device, one line each. The mount table is read by number and by name: btrfs and ZFS show no number.
users_of() {
  dev=$(device_of "$1") numbers=$(cat "/sys/class/block/$1/dev")
  [ "$(cat "/sys/class/block/$1/ro")" = 0 ] || echo "$dev is read-only"
  awk '{ for (i = 7; i <= NF; i++) if ($i == "-") { print $3, $(i + 2), $5; break } }' /proc/self/mountinfo |
    while read -r number source place; do
      case $source in /dev/*) source=$(readlink -f "$source") ;; esac
      if [ "$number" = "$numbers" ] || [ "$source" = "$dev" ]; then echo "$dev is mounted at $place"; fi
    done
  while read -r source rest; do
    case $source in /dev/*) [ "$(readlink -f "$source")" != "$dev" ] || echo "$dev is swap" ;; esac
  done </proc/swaps
  for path in "/sys/class/block/$1/holders/"*; do
    [ ! -e "$path" ] || echo "$dev is held by \${path##*/} $(cat "$path/dm/name" 2>/dev/null)"
  done
  # The kernel lists no holder for a loop device on the device, or for a process that has the device open (a virtual machine, a check).
  for path in /sys/block/loop*/loop/backing_file; do
    { read -r file <"$path"; } 2>/dev/null && [ "$(readlink -f "$file")" = "$dev" ] || continue
    path=\${path#/sys/block/}
    echo "$dev is the backing of \${path%%/*}"
  done
  ls -l /proc/[0-9]*/fd 2>/dev/null | dev=$dev awk '
    /^\/proc\// { split($0, part, "/"); pid = part[3] }
    $NF == ENVIRON["dev"] && $(NF - 1) == "->" && !seen[pid]++ { print pid }' |
    while read -r pid; do
      read -r name <"/proc/$pid/comm" || continue
      # udev opens each new device for a moment.
      case $name in *udev*) ;; *) echo "$dev is open in process $pid ($name)" ;; esac
    done 2>/dev/null
}
# refused_open DEVICE: prints the error of an exclusive open, which fails while anything holds the device, also in other
# mount namespaces. wipefs opens exclusively before it erases; its dry run only opens.
refused_open() {
  wipefs -a -n "$1" >/dev/null 2>"$K_TMP/open" || echo "$1 cannot be opened alone: $(tail -n 1 "$K_TMP/open")"
}
# refused_disk DEVICE: refused_open for a disk with partitions. Closing the disk makes udev re-read the table, and for a moment the partitions are gone.
refused_disk() {
  refused_open "$1"
  ! have udevadm || udevadm settle --timeout=10 || :
}
# signatures_of DEVICE: prints every signature that libblkid knows on a device (tables, filesystems, LVM, md, ZFS, LUKS, bcache, swap, ...).
signatures_of() {
  wipefs -p "$1" | sed -e '/^#/d' | while IFS=, read -r offset uuid label type; do
    echo "$1 holds $type at byte $offset\${label:+, label $label}\${uuid:+, $uuid}"
  done
}
# bytes_at DEVICE BLOCK COUNT PLACE: prints a line if these blocks (4 KiB), called PLACE, cannot be read or are not all zero.
bytes_at() {
  dd if="$1" bs=4096 skip="$2" count="$3" of="$K_TMP/bytes" 2>"$K_TMP/dd" || { echo "$1 cannot be read: $(tail -n 1 "$K_TMP/dd")" && return; }
  [ "$(tr -d '\000' <"$K_TMP/bytes" | head -c 1 | wc -c)" -eq 0 ] ||
    echo "$1 holds bytes of unknown meaning in the $4 ($(sha256sum <"$K_TMP/bytes" | head -c 12))"
}
# contents_of NAME: prints the contents of a device; nothing if it is blank. Bytes without a signature count, too: encrypted or raw data.
contents_of() {
  dev=$(device_of "$1") found=$(signatures_of "$(device_of "$1")")
  if [ -n "$found" ]; then
    echo "$found"
  else
    sectors=$(cat "/sys/class/block/$1/size")
    bytes_at "$dev" 0 1024 "first 4 MiB"
    [ "$sectors" -le 8192 ] || bytes_at "$dev" $((sectors / 8 - 256)) 257 "last MiB"
  fi
}
# read_table DEVICE: the table on the disk, not the kernel's: number, first sector, sectors (512 bytes), PARTUUID, type
# and name of each partition.
read_table() { partx -rgo NR,START,SECTORS,UUID,TYPE,NAME "$1" 2>/dev/null | tr -s ' '; }
# partition_of PARTUUID: the kernel's name of this partition on the disk that find_disk found; nothing if there is none.
partition_of() {
  number=$(read_table "$disk" | while read -r number start sectors uuid rest; do [ "$uuid" != "$1" ] || echo "$number"; done)
  [ -n "$number" ] || return 0
  for name in $(partitions_of "$disk_name"); do
    [ "$(cat "/sys/class/block/$name/partition")" != "$number" ] || echo "$name"
  done
}
`;
