# The block devices of a node (POSIX sh and awk over /sys and /run/udev; blkid where it is needed): part of facts.sh for its lists, and by itself
# `disk_inventory` for layouts and installations (disk-inventory.ts). Builtins list the devices: few processes, however many disks there are.

k_first() { k_value= && { IFS= read -r k_value <"$1" || [ -n "$k_value" ]; } 2>/dev/null && [ -n "$k_value" ]; }
k_has() { command -v "$1" >/dev/null 2>&1; }

# k_block_devices [-p]: lines for the rules of k_disks_awk. With -p blkid reads each device, since udev may remember former contents.
k_block_devices() {
  k_all=
  for k_dir in /sys/block/*; do
    k_name=${k_dir##*/}
    case $k_name in ram* | zram* | sr* | fd* | '*') continue ;; esac
    # In a container /sys has the host's devices; a node's own exist in /dev (a slash in a name is an exclamation mark
    # in /sys).
    k_path=$k_name
    while case $k_path in *!*) ;; *) false ;; esac do k_path=${k_path%%!*}/${k_path#*!}; done
    [ -b "/dev/$k_path" ] && k_first "$k_dir/size" && [ "$k_value" != 0 ] || continue
    echo "disk $k_name"
    k_all="$k_all /dev/$k_path"
    for k_part in "$k_dir/$k_name"*/partition; do
      [ -e "$k_part" ] || continue
      k_part=${k_part%/partition} k_part=${k_part##*/}
      echo "part $k_part $k_name"
      k_all="$k_all /dev/${k_path%"${k_path##*/}"}${k_part##*!}"
    done
  done
  # udev's database needs no program and no right to read disks: blkid runs only without that database, or with -p.
  [ -z "$k_all" ] || { [ -z "${1-}" ] && [ -d /run/udev/data ]; } || ! k_has blkid || {
    echo blkid
    if [ -z "${1-}" ]; then
      # shellcheck disable=SC2086 # names of devices
      blkid $k_all
    else
      # With -p blkid ends at the first blank device.
      for k_path in $k_all; do blkid -p "$k_path" 2>&1; done
    fi
  }
}

k_disks_awk='
  function clean(s) { gsub(/[\t\r\n]/, " ", s); gsub(/\\/, "/", s); sub(/^ +/, "", s); sub(/ +$/, "", s); return s }
  function first(file,  l) { l = ""; if ((getline l < file) < 1) l = ""; close(file); return clean(l) }
  function flag(file,  l) { l = first(file); return l == "" ? "" : l == "0" ? "false" : "true" }
  function unquote(s) { if (s ~ /^".*"$/ || s ~ /^\047.*\047$/) s = substr(s, 2, length(s) - 2); return clean(s) }
  function words(text, word) { return text == "" ? word : text " " word }
  function pathOf(name) { gsub(/!/, "/", name); return "/dev/" name }
  # property(): of the device that read() read last, as blkid prints it, else as udev keeps it.
  function property(blkid, udev) { return (path, blkid) in b ? b[path, blkid] : u[udev] }
  # read(NAME, DISK): sets folder, path, bytes, fstype, uuid, label and pttype of a disk, or of a partition of DISK.
  function read(name, disk,  file, l, at) {
    folder = "/sys/block/" (disk == "" ? "" : disk "/") name
    path = pathOf(name)
    bytes = sprintf("%.0f", first(folder "/size") * 512)
    split("", u)
    file = "/run/udev/data/b" first(folder "/dev")
    while ((getline l < file) > 0) if (substr(l, 1, 2) == "E:") { at = index(l, "="); u[substr(l, 3, at - 3)] = clean(substr(l, at + 1)) }
    close(file)
    fstype = property("TYPE", "ID_FS_TYPE"); uuid = property("UUID", "ID_FS_UUID"); label = property("LABEL", "ID_FS_LABEL")
    pttype = property("PTTYPE", "ID_PART_TABLE_TYPE")
  }
  # readDisk(NAME): sets serial, wwn and model too.
  function readDisk(name) {
    read(name, "")
    serial = first(folder "/device/serial"); if (serial == "") serial = first(folder "/serial"); if (serial == "") serial = u["ID_SERIAL_SHORT"]
    wwn = u["ID_WWN"]; if (wwn == "") wwn = first(folder "/wwid"); if (wwn == "") wwn = first(folder "/device/wwid"); if (wwn !~ /^(0x|naa\.|eui\.|nvme\.|uuid\.)/) wwn = ""
    model = first(folder "/device/model"); if (model == "") model = u["ID_MODEL"]
  }
  $1 == "disk" && NF == 2 && !part { disk[++disks] = $2; next }
  $1 == "part" && NF == 3 && !part { parts++; pname[parts] = $2; pdisk[parts] = $3; isParted[$3] = 1; next }
  $1 == "blkid" && NF == 1 { part = $1; next }
  part == "blkid" && / ambivalent result / { name = $2; sub(/:$/, "", name); b[name, "TYPE"] = "ambivalent"; next }
  part == "blkid" && /^\/dev\// {
    name = $1; sub(/:$/, "", name)
    rest = $0
    while (match(rest, /[A-Z_]+="[^"]*"/)) {
      pair = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH); at = index(pair, "=")
      b[name, substr(pair, 1, at - 1)] = unquote(substr(pair, at + 1))
    }
    next
  }'

# Prints a line of tab-separated fields for each device, in the order of disk-inventory.ts. Then come `link PATH NAME` for each link below /dev
# to a device, `mode WORDS` with the words of /etc/kcore/disk-management-mode, and `end`.
disk_inventory() {
  k_has blkid || { echo 'blkid: not found' >&2 && return 1; }
  {
    k_block_devices -p 2>/dev/null
    echo held
    for k_holder in /sys/class/block/*/holders/*; do
      [ ! -e "$k_holder" ] || { k_device=${k_holder%/holders/*} && echo "${k_device##*/} ${k_holder##*/}"; }
    done
    echo mounts
    cat /proc/self/mountinfo /proc/swaps
  } | awk "$k_disks_awk"'
    NF == 1 && ($1 == "held" || $1 == "mounts") { part = $1; next }
    part == "held" { holders[$1] = words(holders[$1], $2) }
    part == "mounts" && /^\// { places[$1] = "[SWAP]" }
    # btrfs and ZFS have device numbers of no block device (major 0), so the name of the source counts.
    part == "mounts" && /^[0-9]/ {
      for (i = 7; i < NF && $i != "-"; i++);
      places[$3] = words(places[$3], $5)
      if ($3 ~ /^0:/) places[$(i + 2)] = words(places[$(i + 2)], $5)
    }
    function mountsOf(  mapping) {
      mapping = first(folder "/dm/name")
      return words(words(places[first(folder "/dev")], places[path]), mapping == "" ? "" : places["/dev/mapper/" mapping])
    }
    function tell(name, type, parent) {
      print "device", name, path, type, bytes, first(folder "/start") * 512, parent, serial, wwn, model, fstype, label, pttype,
        tolower(property("PTUUID", "ID_PART_TABLE_UUID")), tolower(property("PART_ENTRY_UUID", "ID_PART_ENTRY_UUID")),
        property("PART_ENTRY_NAME", "ID_PART_ENTRY_NAME"), mountsOf(), holders[name]
    }
    # As lsblk names types.
    function typeOf(name,  text) {
      if (name ~ /^md/) return first(folder "/md/level")
      text = first(folder "/dm/uuid")
      return name ~ /^loop/ ? "loop" : name !~ /^dm-/ ? "disk" : index(text, "-") ? tolower(substr(text, 1, index(text, "-") - 1)) : "dm"
    }
    END {
      OFS = "\t"
      for (i = 1; i <= disks; i++) {
        below = first("/sys/block/" disk[i] "/loop/backing_file")
        if (sub(/^\/dev\//, "", below)) { gsub(/\//, "!", below); holders[below] = words(holders[below], disk[i]) }
      }
      for (i = 1; i <= disks; i++) {
        readDisk(disk[i])
        tell(disk[i], typeOf(disk[i]), "")
        serial = wwn = model = ""
        for (j = 1; j <= parts; j++) if (pdisk[j] == disk[i]) { read(pname[j], disk[i]); tell(pname[j], "part", disk[i]) }
      }
    }' || return 1
  find /dev -type l 2>/dev/null | while read -r k_link; do
    if k_device=$(readlink -f "$k_link") && [ -b "$k_device" ]; then echo "link $k_link ${k_device#/dev/}"; fi
  done
  ! k_first /etc/kcore/disk-management-mode && [ ! -e /etc/kcore/disk-management-mode ] || echo "mode $k_value"
  echo end
}
