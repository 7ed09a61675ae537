import { sh, type Sh } from "../sh.ts";

/**
 * `whole_disks` prints names in sysfs: no RAM disks, removable media, device-mapper, md or ZFS's devices, and no drive
 * without media.
 */
export const wholeDisks: Sh = sh`whole_disks() {
  for path in /sys/block/*; do
    case \${path##*/} in ram* | zram* | sr* | fd* | dm-* | md* | nbd* | zd* | '*') continue ;; esac
    { read -r size <"$path/size"; } 2>/dev/null && [ "$size" -gt 0 ] && echo "\${path##*/}"
  done
}`;

/**
 * sh functions over the node's disks. `find_disk KIND VALUE` sets `disk` (/dev/…) and `disk_name` (its name in sysfs)
 * to the one whole disk with this value, or refuses. The others print objections to writing to a device.
 */
export const diskFunctions: Sh = sh`
# Where a name of sysfs has its device: a slash in the name is an exclamation mark there.
device_of() { case $1 in *!*) printf '/dev/%s\n' "$1" | tr '!' / ;; *) echo "/dev/$1" ;; esac; }
${wholeDisks}
# The ids of the disks: NAME serial VALUE, NAME wwn VALUE. lsblk knows those that udev read; sysfs answers without udev.
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
# Read once for all disks that a text looks for.
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
    # Loop devices are files of this machine, unless one says who it is.
    case $name in loop*) printf '%s\n' "$known_ids" | grep -q "^$name " || continue ;; esac
    about_disk "$name"
  done
}
# models_of NAME: as sysfs has it (SCSI cuts it off), and as udev read it.
models_of() {
  { read -r model <"/sys/block/$1/device/model"; } 2>/dev/null && echo "$model"
  lsblk -dno MODEL "$(device_of "$1")" 2>/dev/null | sed -e 's/  *$//'
}
# is_like NAME SIZE MODEL: has a disk this size, to 2 %, and this model? Either may be empty. Nothing that only this machine knows is meant so.
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
# The users of a device, one line each. The mount table is read by number and by name: btrfs and ZFS show no number.
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
  # The kernel shows no holder for a loop device upon it, or for a process that has it open (a guest disk, a check).
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
      # udev looks at each new device for a moment.
      case $name in *udev*) ;; *) echo "$dev is open in process $pid ($name)" ;; esac
    done 2>/dev/null
}
# The error of an exclusive open: the kernel grants none while anything holds the device, also in other mount
# namespaces. wipefs opens so before it erases, and a dry run of it does nothing else.
refused_open() {
  wipefs -a -n "$1" >/dev/null 2>"$K_TMP/open" || echo "$1 cannot be opened alone: $(tail -n 1 "$K_TMP/open")"
}
# The same of a disk with partitions: when it is closed, udev has the kernel read the table anew, and for a moment there are none.
refused_disk() {
  refused_open "$1"
  ! have udevadm || udevadm settle --timeout=10 || :
}
# Every signature that libblkid knows on a device (tables, filesystems, LVM, md, ZFS, LUKS, bcache, swap, ...).
signatures_of() {
  wipefs -p "$1" | sed -e '/^#/d' | while IFS=, read -r offset uuid label type; do
    echo "$1 holds $type at byte $offset\${label:+, label $label}\${uuid:+, $uuid}"
  done
}
# bytes_at DEVICE BLOCK COUNT: says so if blocks (4 KiB) of a device are not all zero.
bytes_at() {
  dd if="$1" bs=4096 skip="$2" count="$3" of="$K_TMP/bytes" 2>"$K_TMP/dd" || { echo "$1 cannot be read: $(tail -n 1 "$K_TMP/dd")" && return; }
  [ "$(tr -d '\000' <"$K_TMP/bytes" | head -c 1 | wc -c)" -eq 0 ] ||
    echo "$1 holds bytes of unknown meaning in the $4 ($(sha256sum <"$K_TMP/bytes" | head -c 12))"
}
# The contents of a device. Bytes that no tool knows count too: encrypted or raw data has no signature.
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
# The table on the disk itself, not the one in the kernel: number, first sector, sectors (512 bytes), PARTUUID, type and
# name of each partition.
read_table() { partx -rgo NR,START,SECTORS,UUID,TYPE,NAME "$1" 2>/dev/null | tr -s ' '; }
# The kernel's name of the partition with this PARTUUID on the disk that was found; nothing if there is none.
partition_of() {
  number=$(read_table "$disk" | while read -r number start sectors uuid rest; do [ "$uuid" != "$1" ] || echo "$number"; done)
  [ -n "$number" ] || return 0
  for name in $(partitions_of "$disk_name"); do
    [ "$(cat "/sys/class/block/$name/partition")" != "$number" ] || echo "$name"
  done
}
`;
