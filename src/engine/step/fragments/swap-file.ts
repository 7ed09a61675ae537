import { sh, type Sh } from "../sh.ts";

/**
 * Sets `file`: `swap of N bytes` for a file with a swap signature, else the result of kind_of. Sets `mode` to a file's
 * mode and owner, else empty.
 */
export function readSwapFile(path: string): Sh {
  return sh`mode=
kind_of ${path}
file=$kind
if [ "$kind" = file ]; then
  set -- $(stat -c '%s %a %u:%g' ${path}) || exit 1
  mode="$2 $3"
  # The signature ends the first page (mkswap(8)); its size depends on the machine.
  page=$(getconf PAGESIZE 2>/dev/null) || page=4096
  [ "$(dd if=${path} bs=1 skip=$((page - 10)) count=10 2>/dev/null | tr -d '\000')" != SWAPSPACE2 ] || file="swap of $1 bytes"
fi`;
}

/** Fails unless more space is free than the file's size; an existing file's space does not count as free. */
export function roomForSwapFile(path: string, size: number): Sh {
  return sh`free=$(df -Pk ${path.slice(0, path.lastIndexOf("/")) || "/"} | { read -r line && read -r a b c free rest && echo "$free"; })
  [ "$free" -gt ${size / 1024} ] || { echo ${`${path} needs ${size / 2 ** 20} MiB, and `}"$((free / 1024)) MiB are free" >&2; exit 1; }`;
}

/**
 * Makes the file if `file` is not as wanted, first under another name, so that the path always has a whole swap area.
 * The kernel refuses a file with holes: ext4 and xfs allocate the space at once, on other filesystems it is written.
 * An old swap file stays in use until swapon has accepted the new one, and is used again if the rename fails. Sets `made`
 * to 1 if the file was made, else to nothing.
 */
export function makeSwapFile(path: string, size: number): Sh {
  const next = `${path}.kcore`;
  return sh`made=
if [ "$file" != ${`swap of ${size} bytes`} ]; then
  safe_parents ${path}
  [ -z "$k_theirs" ] || refuse FILE_PARENT_UNSAFE ${`${path} lies where another user can make names`}
  rm -f ${next} || exit 1
  ${roomForSwapFile(path, size)}
  (umask 077 && set -C && : >${next}) || exit 1
  system=$(stat -f -c %T ${next})
  case $system in
    btrfs) chattr +C ${next} || exit 1 ;;
  esac
  case $system in
    ext* | xfs) fallocate -l ${size} ${next} 2>/dev/null ;;
    *) false ;;
  esac || dd if=/dev/zero of=${next} bs=1048576 count=${size / 2 ** 20} conv=notrunc,fsync 2>"$K_TMP/dd" ||
    { cat "$K_TMP/dd" >&2; rm -f ${next}; exit 1; }
  mkswap ${next} >/dev/null && sync ${next} || exit 1
  was=
  while read -r area kind all used priority; do
    [ "$area" != ${path} ] || was=$priority
  done </proc/swaps
  if [ -n "$was" ]; then
    swapon ${next} && swapoff ${next} && swapoff ${path} || { rm -f ${next}; exit 1; }
  fi
  mv -fT ${next} ${path} || {
    case $was in '') ;; -*) swapon ${path} ;; *) swapon -p "$was" ${path} ;; esac
    rm -f ${next}
    exit 1
  }
  { sync "\${k_cur:-/}" 2>/dev/null || sync; } || exit 1
  made=1 mode="600 0:0"
fi`;
}
