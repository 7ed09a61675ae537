import { diskName, type DiskId } from "../disk.ts";
import { sh, type Sh } from "../sh.ts";

/**
 * sh functions over the node's disks. `find_disk KIND VALUE` sets `disk` (/dev/…) and `disk_name` (its name in sysfs) to
 * the one whole disk that says it is VALUE, or refuses. The others print what speaks against writing to a device.
 */
const functions: Sh = sh`
# Where a name of sysfs has its device: a slash in the name is an exclamation mark there.
device_of() { case $1 in *!*) printf '/dev/%s\n' "$1" | tr '!' / ;; *) echo "/dev/$1" ;; esac; }
trimmed() { sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' | grep . | sort -u; }

serials_of() {
  {
    cat "/sys/block/$1/serial" "/sys/block/$1/device/serial" 2>/dev/null
    echo
    [ ! -r "/sys/block/$1/device/vpd_pg80" ] || { tail -c +5 "/sys/block/$1/device/vpd_pg80" | tr -d '\000' && echo; }
    lsblk -dno SERIAL "$(device_of "$1")" 2>/dev/null
    udevadm info -q property -n "$(device_of "$1")" 2>/dev/null | sed -n 's/^ID_\(SCSI_\)\{0,1\}SERIAL\(_SHORT\)\{0,1\}=//p'
  } | trimmed
}
# One spelling for what sysfs, udev and labels write in several: naa.5000c500…, eui.0025…, 0x5000C500…
plain_wwn() { tr 'A-Z' 'a-z' | sed -e 's/^naa\.//' -e 's/^eui\.//' -e 's/^wwn-//' -e 's/^0x//'; }
wwns_of() {
  {
    cat "/sys/block/$1/wwid" "/sys/block/$1/device/wwid" 2>/dev/null
    echo
    lsblk -dno WWN "$(device_of "$1")" 2>/dev/null
    udevadm info -q property -n "$(device_of "$1")" 2>/dev/null | sed -n 's/^ID_WWN\(_WITH_EXTENSION\)\{0,1\}=//p'
  } | trimmed | plain_wwn
}
# Whole disks only: no RAM disks, drives with removable media, device-mapper or md devices.
whole_disks() {
  for path in /sys/block/*; do
    case \${path##*/} in ram* | zram* | sr* | fd* | dm-* | md* | nbd* | '*') ;; *) echo "\${path##*/}" ;; esac
  done
}
list_disks() {
  whole_disks | while read -r name; do
    size=$(cat "/sys/block/$name/size") && [ "$size" -gt 0 ] || continue
    serial=$(serials_of "$name" | tr '\n' ' ') wwn=$(wwns_of "$name" | tr '\n' ' ')
    [ -n "$serial$wwn" ] || case $name in loop*) continue ;; esac
    echo "$(device_of "$name")  $((size / 2048)) MiB  serial \${serial:-- } wwn \${wwn:--}"
  done
}
disks_named() {
  case $1 in
    byId)
      link=$(readlink -f "/dev/disk/by-id/$2") && [ -b "$link" ] || return 0
      link=$(printf '%s\n' "\${link#/dev/}" | tr / '!')
      whole_disks | grep -Fx -e "$link"
      ;;
    serial) whole_disks | while read -r name; do ! serials_of "$name" | grep -Fxq -e "$2" || echo "$name"; done ;;
    wwn)
      wanted=$(printf '%s\n' "$2" | plain_wwn)
      whole_disks | while read -r name; do ! wwns_of "$name" | grep -Fxq -e "$wanted" || echo "$name"; done
      ;;
  esac
}
find_disk() {
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
# Who uses a device now, one line each. The mount table is read by number and by name: btrfs and ZFS show no number.
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
}
# What an exclusive open says: the kernel grants none while anything holds the device, also what only other mount
# namespaces see. wipefs opens so before it erases; told to change nothing, that is all it does.
refused_open() {
  wipefs -a -n "$1" >/dev/null 2>"$K_TMP/open" || echo "$1 cannot be opened alone: $(tail -n 1 "$K_TMP/open")"
}
# Every signature that libblkid knows on a device (tables, filesystems, LVM, md, ZFS, LUKS, bcache, swap …).
signatures_of() {
  wipefs -p "$1" | sed -e '/^#/d' | while IFS=, read -r offset uuid label type; do
    echo "$1 holds $type at byte $offset\${label:+, label $label}\${uuid:+, $uuid}"
  done
}
# bytes_at DEVICE BLOCK COUNT: says so if blocks (4 KiB) of a device are not all zero.
bytes_at() {
  dd if="$1" bs=4096 skip="$2" count="$3" of="$K_TMP/bytes" 2>"$K_TMP/dd" || { echo "$1 cannot be read: $(tail -n 1 "$K_TMP/dd")" && return; }
  [ "$(tr -d '\000' <"$K_TMP/bytes" | head -c 1 | wc -c)" -eq 0 ] || echo "$1 holds bytes of unknown meaning in the $4"
}
# What lies on a device; what no tool knows counts too: encrypted or raw data has no signature.
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
is_granted() {
  granted "$2" && return 0
  { serials_of "$1" && wwns_of "$1"; } | while read -r name; do ! granted "$name" || echo yes; done | grep -q yes
}

# The table as it stands on the disk, whatever the kernel knows: number, first sector, sectors (512 bytes), PARTUUID,
# type and name of each partition.
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

/** The functions, and the disk found: `disk` and `disk_name` are set after it. */
export function findDisk(id: DiskId): Sh {
  const { kind, value } = diskName(id);
  return sh`${functions}
find_disk ${kind} ${value}`;
}

/** The functions, and the disk that carries a partition: `disk` and `disk_name` are set after it. */
export function findPartition(partuuid: string): Sh {
  return sh`${functions}
disk_name=$(whole_disks | while read -r name; do
  ! read_table "$(device_of "$name")" | grep -q " "${partuuid}" " || echo "$name"
done)
case $disk_name in
  '') refuse PARTITION_NOT_FOUND ${`no disk has a partition with PARTUUID ${partuuid}`}"$K_NL$(list_disks)" ;;
  *"$K_NL"*) refuse DISK_AMBIGUOUS ${`several disks have a partition with PARTUUID ${partuuid}`}"$K_NL$(list_disks)" ;;
esac
disk=$(device_of "$disk_name")`;
}

/** The programs they need; all are in Debian's essential packages and in util-linux anywhere else. */
export const diskTools = ["blkid", "lsblk", "partx", "wipefs"].map((command) => ({ command, package: "util-linux" }));
