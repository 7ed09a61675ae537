import { sh, type Sh } from "../sh.ts";

/** Refuses if ZFS's programs or its kernel module are missing; loads nothing, so that a dry run can use it. */
export const requireZfs = sh`[ -d /sys/module/zfs ] || modprobe -n -q zfs 2>/dev/null ||
  refuse ZFS_MODULE_MISSING "the kernel $(uname -r) has no module zfs: on Debian zfs-dkms (contrib) and linux-headers-$(uname -r) make it"
have zpool || refuse TOOL_MISSING 'zpool is not on this node; package zfsutils-linux has it'`;

/** Loads the module, or refuses with modprobe's message. */
export const loadZfs = sh`[ -d /sys/module/zfs ] || output=$(modprobe zfs 2>&1) ||
  refuse ZFS_MODULE_MISSING "the kernel $(uname -r) does not take the module zfs$K_NL$output"`;

/**
 * `read_vdevs POOL` prints a line for each member of a pool: its GUID and state; its top-level vdev's GUID, kind and
 * number of members; its device. Logs, caches and spares are left out.
 */
const readVdevs = sh`read_vdevs() {
  { zpool status -g "$1" && zpool status -LP "$1"; } 2>/dev/null | awk '
    /^config:/ { pass++; inside = 1; n = 0; next }
    /^errors:/ { inside = 0 }
    !inside || !/^\t/ || $1 == "NAME" { next }
    { match($0, /^\t */); depth = (RLENGTH - 1) / 2 }
    depth == 0 { isData = NF > 1 }
    !isData { next }
    { n++ }
    pass == 1 { guid[n] = $1; state[n] = $2; level[n] = depth }
    pass == 2 { name[n] = $1 }
    END {
      for (i = 1; i <= n; i++) {
        if (level[i] == 1) top = i
        if (level[i] == 2) count[top]++
        over[i] = top
      }
      for (i = 1; i <= n; i++) {
        if (level[i] == 0 || level[i + 1] > level[i]) continue
        kind = name[over[i]]
        sub(/-[0-9]+$/, "", kind)
        if (kind != "mirror" && kind !~ /^raidz[123]$/) { kind = "stripe"; count[over[i]] = 1 }
        print guid[i], state[i], guid[over[i]], kind, count[over[i]], name[i]
      }
    }'
}`;

/**
 * `read_pool` sets `pool` (its GUID; empty: none of this name is imported), `health`, `pool_mark` and `vdevs`.
 * `read_member` sets `member` for `device`: the shape of its vdev, `not imported` (then `import` is the pool's GUID),
 * `out` (in the pool, but not online), `faulted`, `unfinished`, or `none`. For a member of the pool it also sets `leaf`,
 * its own GUID, and `top`, `kind` and `count` of its vdev.
 */
export function poolFunctions({ name, mark, making }: { name: string; mark: string; making: string }): Sh {
  return sh`${readVdevs}
making=$K_STATE/fresh/${making}
read_pool() {
  pool= health= pool_mark= vdevs= import=
  set -- $(zpool list -H -p -o guid,health ${name} 2>/dev/null)
  [ $# = 2 ] || return 0
  pool=$1 health=$2 pool_mark=$(zpool get -H -o value comment ${name} 2>/dev/null)
  [ "$pool_mark" != ${mark} ] || vdevs=$(read_vdevs ${name})
}
# For a member that is online, ZFS's answer counts: libblkid may see old contents.
read_member() {
  member=none
  set -- $(printf '%s\n' "$vdevs" | device=$device awk '$6 == ENVIRON["device"]')
  if [ $# != 6 ] || [ "$2" != ONLINE ]; then
    label=$(blkid -p -o export "$device" 2>/dev/null)
    case $label in *TYPE=zfs_member*) ;; *) return 0 ;; esac
    leaf=$(printf '%s\n' "$label" | sed -n 's/^UUID_SUB=//p')
    set -- $(printf '%s\n' "$vdevs" | leaf=$leaf awk '$1 == ENVIRON["leaf"]')
  fi
  if [ $# = 6 ]; then
    leaf=$1 top=$3 kind=$4 count=$5
    case $2 in
      ONLINE | DEGRADED) if [ "$kind" = stripe ]; then member=stripe; else member="$kind of $count"; fi ;;
      FAULTED) member=faulted ;;
      *) member=out ;;
    esac
  elif [ -z "$pool" ]; then
    # A destroyed pool keeps its labels, in state 2.
    label=$(zdb -l "$device" 2>/dev/null)
    comment=$(printf '%s\n' "$label" | sed -n "s/^    comment: '\(.*\)'$/\1/p" | sort -u)
    state=$(printf '%s\n' "$label" | sed -n 's/^    state: //p' | sort -u)
    if [ "$comment" = ${mark} ] && [ "$state" != 2 ]; then
      member='not imported' import=$(printf '%s\n' "$label" | sed -n 's/^    pool_guid: //p' | head -n 1)
    elif [ -e "$making" ] && [ -z "$comment" ] && printf '%s\n' "$label" | grep -q -F -x -e ${`    name: '${name}'`}; then
      member=unfinished
    fi
  fi
}`;
}
