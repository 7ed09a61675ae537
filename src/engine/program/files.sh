# Functions for files, folders and links, called by texts of modules and by batches (POSIX sh; dash, bash,
# BusyBox, mksh). The bastion sends this file after step.sh, where a step's text or a batch needs it.

# ---- folders that another user can change (requirement S-6) ------------------------------------------------------------------
#
# The owner of such a folder can swap any file in it at any moment. So root enters the folder and asks the
# kernel for the folder's path (k_enter, k_below). Root writes and changes only in a subfolder of root's own, 0700
# (k_aside). On the owner's names root only links, renames and unlinks, which follow nothing. k_enter, k_below and k_aside
# change the working folder: call them in a subshell. k_as = the user of a step with runAs, empty for root.

# safe_parents FILE [OWNER]: refuses if another user could swap a folder or a link on the way to FILE. Unsafe are
# folders writable for group or others without the sticky bit, and names of users other than root, us and OWNER. Links
# are followed by hand: a link in a safe place may lead through an unsafe one.
# k_cur = the folder, without links. k_theirs = 1: OWNER, or users of a sticky folder, can make names on the way.
# k_linked = 1: a link lies there. k_sticky = 1: FILE lies in a sticky folder itself.
safe_parents() {
  k_file=$1 k_owner=${2:-${k_as:-root}} k_todo=${1%/*}/ k_cur= k_links=0 k_followed=$K_NL
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
          k_to=$(readlink -- "$k_cur/$k_part") || k_swapped
          k_followed=$k_followed$k_cur/$k_part$K_NL
          case $k_to in *"$K_NL"*) k_swapped ;; /*) k_cur= ;; esac
          k_todo=$k_to/$k_todo
        else
          k_cur=$k_cur/$k_part
        fi
        ;;
    esac
  done
  k_theirs= k_linked= k_sticky= k_unsafe=
  k_rest=$(stat -c '%u %U %a %f %n' -- "$@") || exit 1
  while [ -n "$k_rest" ]; do
    k_name=${k_rest%%"$K_NL"*}
    case $k_rest in *"$K_NL"*) k_rest=${k_rest#*"$K_NL"} ;; *) k_rest= ;; esac
    k_uid=${k_name%% *} k_name=${k_name#* }
    k_user=${k_name%% *} k_name=${k_name#* }
    k_perm=${k_name%% *} k_name=${k_name#* }
    k_type=${k_name%% *} k_name=${k_name#* }
    case $k_uid:$k_user in
      0:* | *:"${k_as:-root}") ;;
      "$k_owner":* | *:"$k_owner") k_theirs=1 ;;
      *) k_unsafe="$k_unsafe$K_NL$k_name belongs to $k_user" ;;
    esac
    # $k_followed decides, not the type: a link that was followed may be a folder by now.
    case $k_followed in *"$K_NL$k_name$K_NL"*) [ -z "$k_theirs$k_sticky" ] || k_theirs=1 k_linked=1 ;; esac
    case $k_type:$k_perm in
      # A link's mode means nothing.
      a???:*) k_sticky= ;;
      *[2367]? | *[2367])
        # Sticky, if the first of four digits is odd.
        case $k_perm in [1357]???) k_sticky=1 ;; *) k_unsafe="$k_unsafe$K_NL$k_name is writable for others" ;; esac
        ;;
      *) k_sticky= ;;
    esac
  done
  [ -z "$k_unsafe" ] || refuse FILE_PARENT_UNSAFE "a folder above $k_file could be swapped by another user$k_unsafe"
  [ -z "$k_sticky" ] || k_theirs=1
}

# k_enter FILE [OWNER]: enters the folder of FILE. If OWNER can change the way to it, k_enter proves that it entered
# that very folder, or one of OWNER's, who could write there anyway. k_at = its device and number, empty where only we
# can change it.
k_enter() {
  safe_parents "$@" || exit 1
  k_at=
  cd -P -- "${k_cur:-/}" || exit 1
  [ -n "$k_theirs" ] || return 0
  k_here
  [ -n "$k_linked" ] || [ "$(readlink /proc/self/cwd)" != "${k_cur:-/}" ] || return 0
  case $k_stat_line in *" 0 "*) ;; *" $k_owner "* | *" $k_owner") return 0 ;; esac
  k_swapped
}

# k_here: k_at = device and number of the current folder.
k_here() {
  k_stat_line=$(stat -c '%d:%i %u %U' .) || exit 1
  k_at=${k_stat_line%% *}
}

# k_swapped: refuses, because the way to k_file is not the one that was checked.
k_swapped() {
  refuse FILE_PARENT_UNSAFE "a folder on the way to $k_file leads elsewhere, or was swapped just now"
}

# k_below NAME: enters a subfolder of the folder that k_at stands for.
k_below() {
  cd -P -- "$1" || exit 1
  [ -n "$k_at" ] || return 0
  k_stat_line=$(stat -c %d:%i . ..) || exit 1
  [ "${k_stat_line#*"$K_NL"}" = "$k_at" ] || k_swapped
  k_at=${k_stat_line%%"$K_NL"*}
}

# k_private NAME: enters a subfolder, if it is ours and only we can change names in it. The parent's owner can rename such a
# folder, but not move it to another parent.
k_private() {
  cd -P "$1" || return 1
  [ -n "$k_at" ] || return 0
  k_stat_line=$(stat -c '%d:%i %u %f %N' . .. /proc/self/cwd) || return 1
  # A link NAME to another subfolder has the same `..`. A mount point cannot be renamed to NAME.
  case $k_stat_line in *"/${1#./}'" | *"/${1#./}\"") ;; *) return 1 ;; esac
  set -f
  set -- $k_stat_line
  set +f
  case $2:$3:$5 in "${10}":4?c0:"$k_at") ;; *) return 1 ;; esac
}

# k_aside: enters a new folder of our own in the current one. Remains of a killed shell are removed first.
k_aside() {
  for k_new in ./.kcore-"$k_key"-*; do
    if [ -d "$k_new" ] && [ ! -L "$k_new" ]; then
      (k_private "$k_new" && k_empty)
      rmdir "$k_new" 2>/dev/null
    elif [ -f "$k_new" ] || [ -L "$k_new" ]; then
      rm -f "$k_new"
    fi
  done
  k_new=$(mktemp -d "./.kcore-$k_key-XXXXXX") || exit 1
  # After a kill the file may be in order already, so no step clears the folder: the next runner removes the folders that
  # $K_STATE/aside names.
  [ -n "$k_as" ] || printf '%s\n' "$k_cur/${k_new#./}" >>"$K_STATE/aside" || exit 1
  k_private "$k_new" || k_swapped
}

# k_empty: removes all files of the folder aside.
k_empty() {
  rm -f ./* ./.[!.]* ./..?*
}

# k_leave: removes the folder aside.
k_leave() {
  k_empty
  rmdir "../$k_new" 2>/dev/null
  # A batch may have folders aside of its own; it empties the file at its end.
  [ -n "$k_as${b_asides-}" ] || : >|"$K_STATE/aside"
}

# k_leave_flushed STATUS: removes the folder aside, and flushes the folder above it; exits if STATUS is not 0.
k_leave_flushed() {
  k_leave
  [ "$1" = 0 ] || exit "$1"
  sync .. 2>/dev/null || sync
}

# k_need_protected_hardlinks: refuses where a user could hard-link another user's file here, and so have root change it.
k_need_protected_hardlinks() {
  [ -n "$k_at" ] && [ -z "$k_as" ] || return 0
  k_protected=
  { read -r k_protected </proc/sys/fs/protected_hardlinks; } 2>/dev/null
  [ "$k_protected" = 1 ] ||
    refuse FILE_PARENT_UNSAFE "other users can make links to files that are not theirs here: set the sysctl fs.protected_hardlinks to 1"
}

# k_attributes PATH TYPE: k_mode, k_own and k_grp = mode, owner and group of PATH; if PATH is not of TYPE, the defaults
# for a new file. TYPE is the first digit of stat's %f. One stat decides: a link is never taken for its target.
k_attributes() {
  k_default_attributes
  k_stat_line=$(stat -c '%f %a %u %g' -- "$1" 2>/dev/null) || return 1
  case $k_stat_line in "$2"*) ;; *) return 1 ;; esac
  k_stat_line=${k_stat_line#* }
  k_mode=${k_stat_line%% *} k_stat_line=${k_stat_line#* }
  k_own=${k_stat_line% *} k_grp=${k_stat_line#* }
}

# k_default_attributes: sets k_mode, k_own and k_grp to the defaults for a new file.
k_default_attributes() {
  k_mode=0644 k_own=${k_as:-root} k_grp=root
  [ -z "$k_as" ] || k_grp=
}

# k_walk DO: runs DO in all folders beneath the current one, on its file system, and then in itself.
k_walk() {
  [ $((k_depth = ${k_depth:-0} + 1)) -le 200 ] || { echo "more than 200 folders deep" >&2 && exit 1; }
  for k_sub in ./* ./.[!.]* ./..?*; do
    [ -d "$k_sub" ] && [ ! -L "$k_sub" ] || continue
    (
      k_dev=${k_at%%:*}
      k_below "$k_sub"
      [ "${k_at%%:*}" != "$k_dev" ] || k_walk "$1"
    ) || exit
  done
  "$1"
}

# k_is_shared NAME: true if another user can change some folder of this tree.
k_is_shared() {
  [ -n "$k_at" ] || [ -n "$(find "$1" -xdev -type d \( ! -user 0 -o -perm -020 -o -perm -002 \) -print | head -n 1)" ]
}

# nothing_done: for an apply that refuses before any change. It removes the owed reactions ($k_new_owed) that only this apply
# caused.
nothing_done() {
  for k_watcher in $k_new_owed; do rm -f "$K_STATE/owed/$k_watcher"; done
}

# not_nixos PATH: refuses a path under /etc that NixOS makes from its configuration (links into the store): a change
# there would be lost or fail.
not_nixos() {
  case $1 in /etc/*) [ -e /nix/store ] || [ -e /etc/static ] || return 0 ;; *) return 0 ;; esac
  k_above=$1
  until [ -e "$k_above" ]; do k_above=${k_above%/*}; done
  case $(readlink -f "$k_above") in
    /nix/store/* | /etc/static/*) refuse NIXOS_MANAGED "$1 is made by NixOS from its configuration" ;;
  esac
}

# parent_of PATH MAKE [OWNER]: makes the folder above PATH (MAKE = 1), or refuses when it is not there.
parent_of() {
  k_dir=${1%/*}
  [ ! -d "${k_dir:=/}" ] || return 0
  [ "$2" = 1 ] || refuse FILE_NO_PARENT "the folder $k_dir does not exist: make it first, or makeDirs: true"
  (
    k_up=${k_dir%/*}
    until [ -d "${k_up:=/}" ]; do k_up=${k_up%/*}; done
    k_dir=${k_dir#"${k_up%/}"/}/
    k_enter "${k_up%/}/${k_dir%%/*}" "${3:-}"
    # New folders get 0755 under any umask.
    umask 022
    while [ -n "$k_dir" ]; do
      [ -d "./${k_dir%%/*}" ] || mkdir -- "./${k_dir%%/*}" || exit 1
      k_below "./${k_dir%%/*}"
      k_dir=${k_dir#*/}
    done
  ) || exit
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

# guard_directory PATH, guard_file PATH, guard_symlink PATH FORCE, guard_absent PATH RECURSE: refuse if something is in
# the way of a folder, a file, a link, or its absence.
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

# put_file SRC DEST MODE OWNER GROUP: replaces DEST by a copy of SRC, all or nothing. The copy is made with O_EXCL and
# 0600 in a folder aside. put_file flushes the copy, gives it owner and mode, renames it over DEST, and flushes the folder.
# "-" keeps DEST's owner, group or mode; a new file gets root, root and 0644. In a sticky folder, where any user can make
# DEST, a file of users other than us and OWNER counts as new.
put_file() {
  (
    k_attributes "$2" 8
    k_present=$k_own
    [ "$4" = - ] || k_own=$4
    k_enter "$2" "$k_own"
    case $k_sticky:$k_present in
      :* | 1:"$(id -u)" | 1:"$4" | 1:"$(id -u -- "$4" 2>/dev/null)") ;;
      *)
        k_default_attributes
        [ "$4" = - ] || k_own=$4
        ;;
    esac
    [ "$3" = - ] || k_mode=$3
    [ "$5" = - ] || k_grp=$5
    k_aside
    umask 077
    set -C
    : >./f || exit 1
    k_dd_message=$(dd if="$1" of=./f bs=65536 conv=notrunc,fsync 2>&1) &&
      chown "$k_own:$k_grp" ./f && chmod "$k_mode" ./f && mv -fT ./f "../${2##*/}"
    k_status=$?
    # A full disk has room for the reason only when the copy is removed.
    [ $k_status = 0 ] || { rm -f ./f && printf '%s\n' "$k_dd_message" | grep -v '^[0-9.]* *[0-9+]* records\|bytes.*copied' >&2; }
    k_leave_flushed $k_status
  )
}

# own_file PATH MODE OWNER GROUP: gives mode and owner to the present file; "-" keeps its group.
own_file() {
  (
    k_enter "$1" "$3"
    if [ -n "$k_at" ]; then k_need_protected_hardlinks && k_aside && ln -- "../${1##*/}" .; fi
    k_name=./${1##*/}
    [ -f "$k_name" ] && [ ! -L "$k_name" ] && chown -h "$3" "$k_name" && { [ "$4" = - ] || chgrp -h "$4" "$k_name"; } && chmod "$2" "$k_name"
    k_status=$?
    [ -z "$k_at" ] || k_leave_flushed $k_status
    exit $k_status
  )
}

# keep_folder PATH MODE OWNER GROUP: makes the folder, or changes each attribute that is not "-" (0755, root and root
# for a new one). A new folder has its owner and mode before another user can enter it.
keep_folder() {
  (
    k_attributes "$1" 4
    [ "$3" = - ] || k_own=$3
    k_enter "$1" "$k_own"
    k_name=./${1##*/}
    if [ -d "$k_name" ]; then
      k_below "$k_name"
      [ "$3" = - ] || chown "$3" . || exit
      [ "$4" = - ] || chgrp "$4" . || exit
      [ "$2" = - ] || chmod "$2" .
    else
      mkdir -m 0700 -- "$k_name" || exit
      k_below "$k_name"
      [ "$4" = - ] || k_grp=$4
      [ "$2" != - ] || set -- "$1" 0755
      chown "$k_own:$k_grp" . && chmod "$2" .
    fi || exit
    sync . .. 2>/dev/null || sync
  )
}

# put_link TARGET PATH: puts a link at PATH by one rename, over a link or a file. An empty folder there is removed first.
put_link() {
  (
    k_enter "$2"
    k_name=${2##*/}
    if [ -d "./$k_name" ] && [ ! -L "./$k_name" ]; then rmdir -- "./$k_name" || exit 1; fi
    k_aside
    ln -s -- "$1" ./l && mv -fT ./l "../$k_name"
    k_leave_flushed $?
  )
}

# remove_path PATH RECURSE: removes a file, a link or a folder.
remove_path() {
  (
    k_enter "$1"
    k_name=./${1##*/}
    if [ ! -d "$k_name" ] || [ -L "$k_name" ]; then
      rm -f -- "$k_name"
    elif [ "$2" != 1 ]; then
      rmdir -- "$k_name"
    elif k_is_shared "$k_name"; then
      (k_here && k_below "$k_name" && k_walk k_remove_here) && rmdir -- "$k_name"
    else
      rm -rf -- "$k_name"
    fi || exit
    sync . 2>/dev/null || sync
  )
}

# k_remove_here: removes everything in the current folder, whose subfolders are empty.
k_remove_here() {
  find . -mindepth 1 -maxdepth 1 ! -type d -exec rm -f -- {} + && find . -mindepth 1 -maxdepth 1 -type d -exec rmdir -- {} +
}

# mend_tree PATH OWNER: mends everything beneath PATH. The caller defines two functions: `mend FIND_WORD...` mends each
# difference that find(1) finds with these words. `differing FOLDER FIND_WORD...` finds the differing files that lie directly
# in a folder.
mend_tree() {
  (
    k_enter "$1" "$2"
    k_name=./${1##*/}
    if k_is_shared "$k_name"; then
      k_here
      k_need_protected_hardlinks
      k_below "$k_name"
      k_walk k_mend_here
    else
      # A folder comes after its contents: root never works in a folder that it has given to another user.
      mend "$k_name" -xdev -depth -mindepth 1
    fi
  )
}

# k_mend_here: mends the differing files of the current folder through hard links in a folder aside, where no other user can
# swap them; then the folder itself.
k_mend_here() {
  [ -z "$(differing . -print | head -n 1)" ] || (
    k_aside
    differing .. -exec sh -c 'ln -- "$@" .' sh {} + && mend . -mindepth 1
    k_status=$?
    k_leave
    exit $k_status
  ) || exit
  mend . -maxdepth 0
}

# backup_file FILE [OWNER]: copies or links FILE to FILE.kcore-TIME and prints that name. A later replacement of FILE leaves the
# backup untouched.
backup_file() {
  (
    k_backup=$1.kcore-$(date +%Y%m%d%H%M%S)
    k_attributes "$1" 8
    [ "${2:--}" = - ] || k_own=$2
    k_enter "$1" "$k_own"
    k_aside
    if [ -n "$k_at" ]; then ln -- "../${1##*/}" ./f; else cp -p -- "../${1##*/}" ./f; fi && mv -fT ./f "../${k_backup##*/}"
    k_leave_flushed $?
    printf '%s\n' "$k_backup"
  )
}
