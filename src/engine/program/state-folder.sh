# The hello of the follower and of look.sh (POSIX sh; dash, bash, BusyBox, mksh). Given: K_STATE K_RUNID K_NL, and the
# functions k_fatal and k_say.

# k_unsafe WHY: refuses because of the folder k_dir: the state folder, or one in it or above it.
k_unsafe() {
  k_fatal "STATE_UNSAFE $k_dir $1"
}

# k_hello: says hello, and checks the state folder (requirement S-5): ours, no links, not writable for others. Sets K_RUN,
# k_boot, the boot id, k_uid, and k_clock, the node's time.
k_hello() {
  { read -r k_boot </proc/sys/kernel/random/boot_id; } 2>/dev/null || k_fatal "BASELINE_MISSING /proc"
  k_machine=
  { read -r k_machine </etc/machine-id; } 2>/dev/null
  K_RUN=$K_STATE/runs/$K_RUNID

  # One stat for all: this process (uid and time), the state folder and its contents, and the folders above it. A user who
  # can write to a folder above could swap the state folder, unless the sticky bit prevents that.
  set -- "/proc/$$" "$K_STATE"
  for k_path in "$K_STATE/lock" "$K_STATE/owed" "$K_STATE/runs" "$K_RUN"; do
    if [ -e "$k_path" ] || [ -L "$k_path" ]; then set -- "$@" "$k_path"; fi
  done
  k_dir=$K_STATE
  while k_dir=${k_dir%/*} && [ -n "$k_dir" ] && [ ! -L "$k_dir" ]; do :; done
  # If the path of the state folder has a link in it, the folders above the target count.
  [ -z "$k_dir" ] || k_dir=$(cd -P "$K_STATE" && pwd -P) || k_fatal "STATE_UNUSABLE cannot enter $K_STATE"
  k_dir=${k_dir:-$K_STATE}
  while k_dir=${k_dir%/*} && [ -n "$k_dir" ]; do set -- "$@" "$k_dir"; done
  k_uid= k_count=0
  set -f
  IFS=$K_NL
  for k_line in $(stat -c '%u:%a:%Y:%n' -- "$@" / 2>/dev/null); do
    k_count=$((k_count + 1))
    k_owner=${k_line%%:*} k_line=${k_line#*:}
    k_mode=${k_line%%:*} k_line=${k_line#*:}
    k_dir=${k_line#*:}
    if [ -z "$k_uid" ]; then
      k_uid=$k_owner
      k_clock=${k_line%%:*}
      k_say "hello 1 $k_uid $k_boot ${k_machine:--} $k_clock"
      continue
    fi
    k_who="belongs to uid $k_owner"
    case $k_dir in
      "$K_STATE" | "$K_STATE"/*)
        [ ! -L "$k_dir" ] || k_unsafe "is a symbolic link"
        [ -d "$k_dir" ] || k_unsafe "is not a folder"
        [ "$k_owner" = "$k_uid" ] || k_unsafe "$k_who"
        # Other users may read the state folder itself; its contents are ours alone.
        case ${k_dir#"$K_STATE"}:$k_mode in
          :*[0145][0145] | *00) ;;
          *) k_unsafe "has mode $k_mode" ;;
        esac
        ;;
      *)
        case $k_owner in 0 | "$k_uid") ;; *) k_unsafe "$k_who" ;; esac
        case $k_mode in
          [1357]???) ;;
          *[2367]? | *[2367]) k_unsafe "has mode $k_mode" ;;
        esac
        ;;
    esac
  done
  unset IFS
  set +f
  [ -n "$k_uid" ] || k_fatal "BASELINE_MISSING stat -c"
  [ "$k_count" = $(($# + 1)) ] || k_fatal "STATE_UNUSABLE cannot make $K_STATE"
}
