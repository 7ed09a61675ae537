import { sh, type Sh } from "../sh.ts";

/** A port as /proc/net/tcp writes it: four upper-case hex digits. */
export function hexPort(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, "0");
}

/**
 * Sets `sockets` to the inodes of the sockets that listen on a TCP port of this node (proc(5), state 0A = LISTEN); with
 * `loopback` only of sockets that accept connections to 127.0.0.1 or ::1. grep selects the lines, since a shell reads byte
 * by byte, which takes seconds for thousands of connections.
 */
export function listening(port: number, { loopback = false }: { loopback?: boolean } = {}): Sh {
  const local = loopback
    ? // Any, 127.0.0.1, ::1 and ::ffff:127.0.0.1, as little-endian and big-endian kernels write them.
      sh`00000000 | 0100007F | 7F000001 | 00000000000000000000000000000000 | 00000000000000000000000001000000 | 00000000000000000000000000000001 | 0000000000000000FFFF00000100007F | 00000000000000000000FFFF7F000001`
    : sh`*`;
  return sh`sockets=$(grep -hs ${`:${hexPort(port)} [0-9A-F]*:[0-9A-F]* 0A `} /proc/net/tcp /proc/net/tcp6 |
  while read -r _ local _ _ _ _ _ _ _ inode _; do
    case \${local%:*} in ${local}) printf ' %s' "$inode" ;; esac
  done)`;
}

/**
 * Sets `owner` (the program), `pid` and `unit` of a process that has one of the sockets of {@link listening}; empty if
 * none is found (not root, another namespace). Each candidate is checked twice: a process that is about to execute a
 * program has its parent's sockets for a moment.
 */
export const socketOwner: Sh = sh`owner= unit= pid=
for candidate in $(ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v sockets="$sockets " '
  /^\/proc\// { split($1, path, "/") }
  $NF ~ /^socket:/ && index(sockets, " " substr($NF, 9, length($NF) - 9) " ") { print path[3] }'); do
  { IFS= read -r owner <"/proc/$candidate/comm"; } 2>/dev/null || continue
  ls -l "/proc/$candidate/fd" 2>/dev/null | awk -v sockets="$sockets " '
    $NF ~ /^socket:/ && index(sockets, " " substr($NF, 9, length($NF) - 9) " ") { held = 1 }
    END { exit !held }' || { owner=; continue; }
  pid=$candidate
  unit=$(sed -n 's,.*/\([^/]*\.\(service\|socket\|scope\)\)$,\1,p' "/proc/$pid/cgroup" | head -n 1)
  break
done`;

/**
 * The shell function `tcp HOST PORT SECONDS`: true if a connection is accepted; 3 if it is refused. Uses nc (BusyBox's,
 * which has no -z, or another) or bash's /dev/tcp; with neither it returns 2.
 */
export const tcpFunction: Sh = sh`tcp() {
  have nc || have bash || return 2
  said=$(
    exec 2>&1 </dev/null
    if ! have nc; then
      limit=$(have timeout && echo "timeout $3")
      $limit bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2"
    else
      case $(nc --help 2>&1) in
        BusyBox*) nc -w "$3" "$1" "$2" -e true ;;
        *) nc -zv -w "$3" "$1" "$2" ;;
      esac
    fi
  ) && return 0
  case $said in *[Rr]efused*) return 3 ;; esac
  return 1
}`;
