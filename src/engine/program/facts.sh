# Gathers a node's facts (POSIX sh and /proc; no tool beyond the baseline). One `fact NAME VALUE` each; names with dots
# become nested values. What cannot be told is left out.

k_first() { { IFS= read -r k_v <"$1"; } 2>/dev/null && [ -n "$k_v" ]; }

fact hostname "$(cat /proc/sys/kernel/hostname)"
k_first /etc/machine-id && fact machineId "$k_v"
fact bootId "$(cat /proc/sys/kernel/random/boot_id)"
fact kernel.release "$(uname -r)"
fact kernel.arch "$(uname -m)"
if [ -r /etc/os-release ]; then
  for k_n in ID VERSION_ID PRETTY_NAME ID_LIKE; do
    k_v=$(sed -n "s/^$k_n=//p" /etc/os-release | sed -e 's/^"\(.*\)"$/\1/' -e "s/^'\(.*\)'\$/\1/")
    case $k_n in ID) fact os.id "$k_v" ;; VERSION_ID) fact os.version "$k_v" ;; PRETTY_NAME) fact os.name "$k_v" ;; ID_LIKE) fact os.like "$k_v" ;; esac
  done
fi
fact cpu.count "$(grep -c '^processor' /proc/cpuinfo)"
fact cpu.model "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
fact memory.totalKiB "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
fact memory.availableKiB "$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo)"
IFS=' ' read -r k_v k_x </proc/uptime && fact uptimeSeconds "${k_v%.*}"
fact clock.epochSeconds "$(date +%s)"
if [ -d /run/systemd/system ]; then fact init systemd; else fact init other; fi
for k_x in apt-get apk dnf; do
  if command -v "$k_x" >/dev/null 2>&1; then fact packageManager "${k_x%-get}" && break; fi
done
[ ! -e /etc/NIXOS ] || fact nixos true

# The interface of the default route, else the first that is not loopback, and its addresses.
k_if=
while read -r k_n k_dest k_x; do
  [ "$k_dest" != 00000000 ] || { k_if=$k_n && break; }
done </proc/net/route
[ -n "$k_if" ] || for k_n in /sys/class/net/*; do
  [ "${k_n##*/}" = lo ] || { k_if=${k_n##*/} && break; }
done
[ -z "$k_if" ] || fact network.interface "$k_if"
if command -v ip >/dev/null 2>&1; then
  ip -o addr show 2>/dev/null | while read -r k_x k_n k_family k_a k_rest; do
    case $k_n:$k_family in lo:*) ;; *:inet) echo "${k_a%/*}" ;; esac
  done >"$K_RUN/tmp/addresses"
  fact network.addresses "$(cat "$K_RUN/tmp/addresses")"
  rm -f "$K_RUN/tmp/addresses"
fi

k_list=
for k_d in /sys/block/*; do
  k_n=${k_d##*/}
  case $k_n in ram* | zram* | sr* | fd*) continue ;; esac
  # In a container /sys has the host's; a node's own have their device (a slash in a name is an exclamation mark in /sys).
  k_x=$k_n
  while case $k_x in *!*) ;; *) false ;; esac do k_x=${k_x%%!*}/${k_x#*!}; done
  [ -b "/dev/$k_x" ] || continue
  { read -r k_size <"$k_d/size"; } 2>/dev/null && [ "$k_size" -gt 0 ] || continue
  k_serial=
  for k_x in "$k_d/device/serial" "$k_d/serial"; do k_first "$k_x" && k_serial=$k_v && break; done
  if [ -z "$k_serial" ] && command -v udevadm >/dev/null 2>&1; then
    k_serial=$(udevadm info --query=property --path="$k_d" 2>/dev/null | sed -n 's/^ID_SERIAL_SHORT=//p')
  fi
  k_list="$k_list${k_list:+ }$k_n:$((k_size * 512)):$k_serial"
done
fact disks "$k_list"
fact rootFree.KiB "$(df -kP / | tail -n 1 | { read -r k_x k_t k_u k_a k_r && echo "$k_a"; })"
