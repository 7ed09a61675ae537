# Checks of a dry run that change nothing (POSIX sh; dash, bash, BusyBox, mksh): would apply fail? Follows files.sh, and
# precedes batch.sh, in dry runs alone; in a real run apply itself fails.

k_folder_made= k_made= b_foreseen=

# foresee_place PATH TYPE MAKE OWNER GROUP: refuses where PATH could not be made, changed or removed. TYPE = the first
# digit of stat's %f of the wanted type, - for a link or nothing. MAKE = 1: missing folders above it will be made, by
# this step or an earlier one (k_folder_made). OWNER, GROUP: - for any.
foresee_place() {
  foresee_owner "$4" "$5"
  k_default_attributes
  [ "$2" = - ] || k_attributes "$1" "$2"
  [ "$4" = - ] || k_own=$4
  k_dir=${1%/*}
  if [ -d "${k_dir:-/}" ]; then
    safe_parents "$1" "$k_own"
  else
    [ "$3$k_folder_made" != 0 ] || refuse FILE_NO_PARENT "the folder $k_dir does not exist: make it first, or makeDirs: true"
    until [ -d "${k_dir:-/}" ]; do k_dir=${k_dir%/*}; done
    safe_parents "$k_dir/new" "$k_own"
  fi
  [ -w "${k_cur:-/}" ] || { echo "${k_cur:-/} cannot be written to" >&2 && exit 1; }
}

# foresee_owner USER GROUP: fails unless both exist or an earlier step makes them (k_made). A number and - need no
# account.
foresee_owner() {
  case $1 in
    - | root) ;;
    *[!0-9]*) foresee_account /etc/passwd passwd "$1" || { echo "there is no user $1" >&2 && exit 1; } ;;
  esac
  case $2 in
    - | root) ;;
    *[!0-9]*) foresee_account /etc/group group "$2" || { echo "there is no group $2" >&2 && exit 1; } ;;
  esac
}

# foresee_account FILE DATABASE NAME: true if a user or group of that name will exist.
foresee_account() {
  case " $k_made " in *" $3 "*) return 0 ;; esac
  while IFS=: read -r k_account _; do [ "$k_account" != "$3" ] || return 0; done <"$1"
  # Accounts of a directory service, where the node can ask one.
  getent "$2" "$3" >/dev/null 2>&1
}

# b_foresee: foresee_place for the loaded step of a batch. In a folder that only root can change, the batch's common probe is
# enough.
b_foresee() {
  if [ -d "${b_dir:-/}" ] && b_is_plain; then
    case $b_type:$b_user:$b_group in [la]:* | ?:-:- | ?:root:- | ?:-:root | ?:root:root) return 0 ;; esac
  fi
  case "$b_foreseen " in *" ${b_dir:-/}:$b_type:$b_user:$b_group "*) return 0 ;; esac
  case $b_type in
    d) b_try foresee_place "$b_path" 4 "$b_make" "$b_user" "$b_group" ;;
    f) b_try foresee_place "$b_path" 8 "$b_make" "$b_user" "$b_group" ;;
    l) b_try foresee_place "$b_path" - "$b_make" - - ;;
    a) b_try foresee_place "$b_path" - 0 - - ;;
  esac || return
  # The verdict on an absent path holds for all absent ones beside it. An existing one may belong to another user.
  [ "$b_kind" != absent ] || b_foreseen="$b_foreseen ${b_dir:-/}:$b_type:$b_user:$b_group"
}
