import { sh } from "../sh.ts";

/**
 * `hold DEVICE` and `release`, for texts after `diskFunctions`. In between, or until the shell ends, the device is open
 * exclusively: mkfs and other programs that open a device exclusively find it busy, sgdisk and dd do not. `hold` sets
 * `unheld` to the reason if another process uses the device.
 */
export const exclusiveOpen = sh`
# A dry run of wipefs opens the device exclusively, and then waits for the lock of this shell. udev ignores a locked
# device (systemd.io/BLOCK_DEVICE_LOCKING), and reads it when wipefs closes it. wipefs before 2.36 has no --lock: then
# the device is opened exclusively only for a moment, as a check.
hold() {
  holder= tries=0 output= unheld="$1 is locked by another process"
  if ! have flock || ! wipefs --help 2>/dev/null | grep -q -e '--lock'; then unheld=$(refused_disk "$1") && return; fi
  command exec 9<"$1" && flock -x -w 20 9 || return
  LC_ALL=C wipefs -a -n --lock=yes "$1" >/dev/null 2>"$K_TMP/open" 3>&- 5>&- 9<&- &
  holder=$! unheld=
  # If wipefs says that it waits for the lock, it has opened the device; anything else is its error.
  until [ -n "$output" ]; do
    tries=$((tries + 1))
    [ $tries -le 200 ] || break
    sleep 0.1
    output=$(tail -n 1 "$K_TMP/open")
  done
  case $output in *waiting*) return ;; esac
  unheld="$1 cannot be opened alone: \${output:-wipefs does not open it}"
  release
}
release() {
  [ -n "$holder" ] || return 0
  exec 9<&-
  wait "$holder"
  holder=
}`;
