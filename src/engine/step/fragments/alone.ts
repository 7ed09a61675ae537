import { sh } from "../sh.ts";

/**
 * `hold DEVICE` and `release`, which stand behind the functions over disks: the device is open exclusively from one to the other, or to this shell's end, however it ends.
 * sgdisk and dd do not open so, mkfs and all others that make things on a device do by themselves: they find it busy meanwhile. Sets `unheld` to what speaks against it.
 */
export const alone = sh`
# wipefs, told to change nothing, opens it exclusively and then waits for a lock that this shell has. udev keeps away from what is locked
# (systemd.io/BLOCK_DEVICE_LOCKING), and looks at it when wipefs closes it. A wipefs before 2.36 knows no lock: then the look alone is exclusive.
hold() {
  holder= unheld="$1 is locked by another process"
  if ! have flock || ! wipefs --help 2>/dev/null | grep -q -e '--lock'; then unheld=$(refused_open "$1") && return; fi
  exec 9<"$1" && flock -x -w 20 9 || return
  wipefs -a -n --lock=yes "$1" >/dev/null 2>"$K_TMP/open" 3>&- 5>&- 9<&- &
  holder=$! unheld=
  until holds "$1"; do
    if [ -z "$open" ]; then
      unheld="$1 cannot be opened alone: $(tail -n 1 "$K_TMP/open")"
      release
      return
    fi
    sleep 0.1
  done
}
# Has the holder opened the device? It begins as a copy of this shell, whose own is 9; one that has ended has nothing open.
holds() {
  open=
  for fd in "/proc/$holder/fd/"*; do
    [ -L "$fd" ] || continue
    open=$fd
    if [ "\${fd##*/}" != 9 ] && [ "$(readlink "$fd")" = "$1" ]; then return 0; fi
  done
  return 1
}
release() {
  [ -n "$holder" ] || return 0
  exec 9<&-
  wait "$holder"
  holder=
}`;
