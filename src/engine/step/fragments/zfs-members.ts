import type { StepContext } from "../define.ts";
import { sh, type Sh } from "../sh.ts";
import { eachPartition } from "./disk.ts";
import { grantFunctions } from "./granted.ts";
import { requireZfs } from "./zfs.ts";

/** The wanted state of a pool. */
interface WantedPool {
  readonly name: string;
  /** The comment of a pool that kcore made. */
  readonly mark: string;
  readonly layout: string;
  /** The number of consecutive members that make one vdev. */
  readonly width: number;
  /** The value of `member` for a member in order; see `read_member` in zfs.ts. */
  readonly shape: string;
  readonly ashift: number;
  readonly members: Parameters<typeof eachPartition>[0];
}

/**
 * The function `judge`: refuses, or sets `wipe`, `used` (marks of new members) and, for a new pool, `vdev_words`. It
 * sets `import` to a pool that must be imported, after which `judge` runs again. The file `todo` gets the changes of an
 * existing pool.
 */
export function judgePool({ name, mark, layout, width, shape, ashift, members }: WantedPool, context: StepContext): Sh {
  const isEncrypted = members.some(({ encrypted = false }) => encrypted);
  const kind = layout === "stripe" ? [] : [layout];
  const sector = ["-o", `ashift=${ashift}`];
  // A mirror may lack members, down to a single one; no other vdev can gain any.
  const fits =
    layout === "mirror"
      ? sh`{ [ "$kind" = mirror ] && [ "$count" -le ${width} ]; } || [ "$kind" = stripe ]`
      : sh`[ "$member" = ${shape} ] || [ "$member:$kind:$count" = ${`out:${layout}:${width}`} ]`;
  return sh`${grantFunctions}
judge_new() {
  used="$used $part"
  refuse_users "$name"
  if [ "$member" = unfinished ]; then
    found=
  elif { [ -e "$K_STATE/fresh/$part" ] && [ ! -s "$K_STATE/fresh/$part" ]; } || { [ -e "$making" ] && [ -z "$pool" ]; }; then
    found=$(signatures_of "$device")
  else
    found=$(contents_of "$name")
  fi
  [ -z "$found" ] || is_granted "$disk_name" "$1" "$K_STATE/fresh/$part" "$found" "$name" || refuse FILESYSTEM_DIFFERS ${`a member of the pool ${name} is wanted on `}"$device, which holds something else; if that may go: --grant $grant$K_NL$found"
  if [ -n "$found" ] || { [ -e "$making" ] && [ -z "$pool" ]; }; then
    [ -n "$found" ] || judged=$(contents_sum "$name"):
    wipe="$wipe $name=$judged"
  fi
  new="$new ${isEncrypted ? sh`/dev/mapper/luks-` : sh`/dev/disk/by-partuuid/`}$part"
}
judge_old() {
  ${fits} || refuse ZFS_POOL_DIFFERS ${`the pool ${name} is there, but not as wanted (${shape}), and kcore reshapes none: `}"$device is in a $kind of $count"
  [ -z "$place" ] || [ "$place" = "$top" ] || refuse ZFS_POOL_DIFFERS "$device is not in one $kind with the disks named beside it"
  [ "$member" != out ] || echo "online "${name}" $leaf" >>"$K_TMP/todo"
  place=$top room=$((width - count)) beside=$leaf claimed="$claimed $leaf "
}
# New members make a whole vdev; in an existing vdev a new member replaces a lost one, or fills a free place.
judge_vdev() {
  if [ -z "$place" ]; then
    vdev_words="$vdev_words "${kind}"$new"
    [ -z "$new" ] || echo "add "${sector}" "${name}" "${kind}"$new" >>"$K_TMP/todo"
  else
    for path in $new; do
      lost=$(printf '%s\n' "$vdevs" | top=$place claimed=$claimed awk '
        $3 == ENVIRON["top"] && $2 != "ONLINE" && $2 != "DEGRADED" && !index(ENVIRON["claimed"], " " $1 " ") { print $1; exit }')
      if [ -n "$lost" ]; then
        claimed="$claimed $lost "
        echo "replace "${sector}" "${name}" $lost $path" >>"$K_TMP/todo"
      elif [ "$room" -gt 0 ]; then
        room=$((room - 1))
        echo "attach "${sector}" "${name}" $beside $path" >>"$K_TMP/todo"
      else
        refuse ZFS_POOL_DIFFERS ${`no member of the pool ${name} is missing, and kcore takes none out: zpool detach, or zpool offline, makes room for `}"$path"
      fi
    done
  fi
  new= place= claimed=
}
judge() {
  ${requireZfs}
  read_pool
  : >"$K_TMP/todo"
  if [ -n "$pool" ]; then
    [ "$pool_mark" = ${mark} ] || refuse ZFS_POOL_TAKEN ${`there is a pool ${name} already that kcore did not make`}"$K_NL$(zpool status ${name})"
    case $health in
      ONLINE | DEGRADED) ;;
      *) refuse ZFS_POOL_DIFFERS ${`the pool ${name} is `}"$health$K_NL$(zpool status ${name})" ;;
    esac
  fi
  wipe= used= vdev_words= new= place= claimed= old= number=0 width=${width}
  ${eachPartition(
    members,
    context,
    sh`read_member
  case $member in
    'not imported') ;;
    faulted) refuse ZFS_POOL_DIFFERS "$device is in the pool, and faulted: zpool clear takes it in again, or another disk its place" ;;
    none | unfinished) judge_new "$2" ;;
    *)
      old=yes
      judge_old
      ;;
  esac
  number=$((number + 1))
  [ $((number % width)) != 0 ] || judge_vdev`,
  )}
  [ -z "$pool" ] || [ -n "$old" ] || refuse ZFS_POOL_TAKEN ${`there is a pool ${name} already, and none of the disks named are in it`}"$K_NL$(zpool status ${name})"
}`;
}
