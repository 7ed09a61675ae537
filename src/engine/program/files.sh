# What texts of modules and the batch lane may call for files, folders and links (POSIX sh; dash, bash, BusyBox, mksh). It follows
# step.sh, and is sent where a step's text or a batch needs it.

# safe_parents FILE [OWNER]: refuses when somebody else could swap a folder or a link on the way to FILE (requirement S-6):
# a folder that is writable for group or others without the sticky bit, or anything that belongs to a user other than root
# and OWNER. Links are followed by hand: a link in a safe place may lead through an unsafe one.
safe_parents() {
  k_file=$1 k_owner=${2:-root} k_todo=${1%/*}/ k_cur= k_links=0
  [ -d "$k_todo" ] || refuse FILE_NO_PARENT "the folder of $1 does not exist"
  set -- /
  while [ -n "$k_todo" ]; do
    k_part=${k_todo%%/*} k_todo=${k_todo#*/}
    case $k_part in
      '' | .) ;;
      ..) k_cur=${k_cur%/*} ;;
      *)
        set -- "$@" "$k_cur/$k_part"
        if [ -L "$k_cur/$k_part" ]; then
          [ $((k_links += 1)) -le 40 ] || refuse FILE_NO_PARENT "the folder of $k_file leads in a circle"
          k_to=$(readlink -- "$k_cur/$k_part") || return 1
          case $k_to in /*) k_cur= ;; esac
          k_todo=$k_to/$k_todo
        else
          k_cur=$k_cur/$k_part
        fi
        ;;
    esac
  done
  k_unsafe=$(stat -c '%U %u %a %f %n' -- "$@" | while read -r k_user k_uid k_mode k_type k_name; do
    # 4-digit octal: leading digit odd = sticky; then the write bits of group and others. A link's mode means nothing.
    case $k_mode in ????) k_special=${k_mode%???} k_mode=${k_mode#?} ;; *) k_special=0 ;; esac
    case $k_type in a???) k_mode=000 ;; esac
    k_group=${k_mode#?} k_group=${k_group%?} k_other=${k_mode##??}
    [ $((k_special & 1)) = 1 ] || [ $(((k_group | k_other) & 2)) = 0 ] || echo "$k_name is writable for others"
    [ "$k_uid" = 0 ] || [ "$k_user" = "$k_owner" ] || [ "$k_uid" = "$k_owner" ] || echo "$k_name belongs to $k_user"
  done)
  [ -z "$k_unsafe" ] || refuse FILE_PARENT_UNSAFE "a folder above $k_file could be swapped by another user$K_NL$k_unsafe"
}

# kind_of PATH: kind = what stands there: absent, symlink, file, directory or special. Links are not followed.
kind_of() {
  if [ -L "$1" ]; then
    kind=symlink
  elif [ -f "$1" ]; then
    kind=file
  elif [ -d "$1" ]; then
    kind=directory
  elif [ -e "$1" ]; then
    kind=special
  else
    kind=absent
  fi
}

# not_nixos PATH: refuses what NixOS makes under /etc from its configuration (links into the store): a change there would be
# lost or fail.
not_nixos() {
  case $1 in /etc/*) [ -e /nix/store ] || [ -e /etc/static ] || return 0 ;; *) return 0 ;; esac
  k_above=$1
  until [ -e "$k_above" ]; do k_above=${k_above%/*}; done
  case $(readlink -f "$k_above") in
    /nix/store/* | /etc/static/*) refuse NIXOS_MANAGED "$1 is made by NixOS from its configuration" ;;
  esac
}

# parent_of PATH MAKE: makes the folder above PATH (MAKE = 1), or refuses when it is not there.
parent_of() {
  k_dir=${1%/*}
  [ ! -d "${k_dir:=/}" ] || return 0
  [ "$2" = 1 ] || refuse FILE_NO_PARENT "the folder $k_dir does not exist: make it first, or makeDirs: true"
  # As it was asked for: 0755, whatever the umask here is.
  (umask 022 && mkdir -p -- "$k_dir") || exit 1
}

# mounts_under FOLDER: prints the mount points at or beneath it, one a line, as the kernel knows them (proc(5), mountinfo).
mounts_under() {
  k_real=$(cd -P "$1" && pwd -P) || exit 1
  while read -r _ _ _ _ k_point _; do
    # The kernel writes blanks and back slashes as \040 and the like.
    case $k_point in *\\*) k_point=$(printf %b "$k_point") ;; esac
    case $k_point/ in "$k_real"/*) printf '%s\n' "$k_point" ;; esac
  done </proc/self/mountinfo
}

# guard_directory PATH, guard_file PATH, guard_symlink PATH FORCE, guard_absent PATH RECURSE: refuse where something stands in
# the way of a folder, a file, a link, of nothing at all.
guard_directory() {
  kind_of "$1"
  case $kind in
    symlink) refuse FILE_IN_THE_WAY "$1 is a symbolic link; manage the folder it points to" ;;
    file | special) refuse FILE_IN_THE_WAY "$1 is there and is not a folder" ;;
  esac
  not_nixos "$1"
}

guard_file() {
  kind_of "$1"
  case $kind in directory | special) refuse FILE_IN_THE_WAY "$1 is a folder or a device, not a file" ;; esac
  not_nixos "$1"
}

guard_symlink() {
  kind_of "$1"
  not_nixos "$1"
  case $kind in
    absent | symlink) return 0 ;;
    file) k_size=$(wc -c <"$1") ;;
    directory) k_size=$(ls -A "$1" | wc -c) ;;
    *) k_size=1 ;;
  esac
  if [ "$k_size" -eq 0 ]; then
    [ "$2" != 1 ] || return 0
    [ "$kind" = file ] || kind=folder
    refuse FILE_IN_THE_WAY "$1 is an empty $kind, not a link (force: true replaces it)"
  fi
  refuse FILE_IN_THE_WAY "$1 is no link and holds something; it is not replaced"
}

guard_absent() {
  kind_of "$1"
  not_nixos "$1"
  [ "$kind" = directory ] || return 0
  k_mounts=$(mounts_under "$1") || exit 1
  [ -z "$k_mounts" ] || refuse FILE_MOUNTED "$1 holds a mount point$K_NL$k_mounts"
  [ "$2" != 1 ] || return 0
  k_entries=$(ls -A "$1") || exit 1
  [ -z "$k_entries" ] || refuse FILE_NOT_EMPTY "$1 is a folder that is not empty (recurse: true removes it)"
}

# put_file SRC DEST MODE OWNER GROUP: replaces DEST by a copy of SRC, all or nothing (requirement S-6): a temporary file
# made with O_EXCL and 0600 in DEST's folder, content flushed, owner and mode set, renamed over DEST, folder flushed.
# "-" keeps DEST's owner, group or mode (root, root and 0644 for a new file).
put_file() {
  k_mode=$3 k_own=$4 k_grp=$5
  if [ -f "$2" ] && [ ! -L "$2" ]; then
    k_now=$(stat -c '%a %U %G' -- "$2") || return 1
    [ "$k_mode" != - ] || k_mode=${k_now%% *}
    k_now=${k_now#* }
    [ "$k_own" != - ] || k_own=${k_now%% *}
    [ "$k_grp" != - ] || k_grp=${k_now#* }
  fi
  [ "$k_mode" != - ] || k_mode=0644
  [ "$k_own" != - ] || k_own=root
  [ "$k_grp" != - ] || k_grp=root
  safe_parents "$2" "$k_own"
  k_tmp=$(dirname "$2")/.kcore-$k_i-$k_unique
  (umask 077 && set -C && : >"$k_tmp") || return 1
  if ! { dd if="$1" of="$k_tmp" bs=65536 conv=notrunc,fsync 2>"$K_TMP/dd" &&
    chown "$k_own:$k_grp" "$k_tmp" && chmod "$k_mode" "$k_tmp" && mv -fT "$k_tmp" "$2"; }; then
    grep -v '^[0-9.]* *[0-9+]* records\|bytes.*copied' "$K_TMP/dd" >&2
    rm -f "$k_tmp"
    return 1
  fi
  sync "$(dirname "$2")" 2>/dev/null || sync
}

# backup_file FILE: keeps FILE as FILE.kcore-TIME and prints that name.
backup_file() {
  k_backup=$1.kcore-$(date +%Y%m%d%H%M%S)
  cp -p -- "$1" "$k_backup" && printf '%s\n' "$k_backup"
}
