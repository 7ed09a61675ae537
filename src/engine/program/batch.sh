# The batch lane (POSIX sh; dash, bash, BusyBox, mksh): one shell applies consecutive steps that are pure data, if the
# evidence shows a difference. Follows step.sh, whose functions it uses.
#
# Given: b_data, a line a step: `TYPE WAVE KEY SECONDS OWES PATH …` (batch.ts), words without blanks, quotes or
# wildcards. Steps of one wave have one type, and none lies beneath another, so one command can serve all of them.
#
# First the shell probes all steps. Then, wave by wave, it checks each folder above once. It makes files beside their
# places, flushes them by one sync, and renames each into place. In the end it flushes the folders; one stat and one
# sha256sum prove the whole batch. Only then it reports the steps as changed. The first step that fails ends the batch:
# earlier steps are finished and proved, later ones untouched. $K_RUN/batch tells the runner how each step ended: `KEY
# begun`, later `KEY OUTCOME STATUS`.

# b_load N: sets b_type, k_key and the other variables from the words of step N.
b_load() {
  eval "set -- \$b_line_$1"
  b_type=$1 b_wave=$2 k_key=$3 b_secs=$4 b_owes=$5 b_path=$6
  b_dir=${b_path%/*} b_user=- b_group=- b_make=0 b_bits=0
  case $b_type in
    d | f) b_mode=$7 b_user=$8 b_group=$9 b_make=${10} b_sum=${11:-} b_bits=${12:-0} ;;
    l) b_target=$7 b_force=$8 b_make=$9 ;;
    a) b_recurse=$7 ;;
  esac
}

# b_octal HEX: b_octal = the permissions in a mode as stat's %f prints it, four octal digits.
b_octal() {
  b_octal=$((0x$1))
  b_octal=$((b_octal >> 9 & 7))$((b_octal >> 6 & 7))$((b_octal >> 3 & 7))$((b_octal & 7))
}

# ---- looking ---------------------------------------------------------------------------------------------------------

# b_inspect N...: probes all these steps at once. facts_N = the facts found, have_N = `KIND MODE SIZE UID GID …`, good_N
# = 1 for a step in order.
b_inspect() {
  b_paths= b_sums= b_links=
  for b_step in "$@"; do
    b_load "$b_step"
    b_paths="$b_paths $b_path"
    [ "$b_type" != l ] || [ ! -L "$b_path" ] || b_links="$b_links $b_path"
    # No hash of a FIFO: reading it would wait for ever.
    [ "$b_type" != f ] || [ -L "$b_path" ] || [ ! -f "$b_path" ] || b_sums="$b_sums $b_path"
    eval "path_$b_step=\$b_path seen_$b_step= hash_$b_step="
  done
  b_lines=$(stat -c "%f %s %u %g %U:%G %n" -- $b_paths 2>/dev/null)
  # stat ends with 1 when a path is absent. A stat that could not run at all would look as if every path were absent.
  [ $? -le 1 ] || exit 98
  b_keep seen "$b_lines" "$@"
  [ -z "$b_sums" ] || b_keep hash "$(sha256sum -- $b_sums 2>/dev/null)" "$@"
  b_targets=$K_NL
  [ -z "$b_links" ] || b_read_links $b_links
  for b_step in "$@"; do
    b_load "$b_step"
    eval "b_have=\$seen_$b_step b_hash=\$hash_$b_step"
    b_compare
    eval "facts_$b_step=\$b_facts have_$b_step=\"\$b_kind \$b_have\" good_$b_step=\$b_good"
  done
}

# b_read_links PATH...: reads the targets of links. BusyBox prints a target as it is, and a line break in it could forge
# lines of other paths. If the lines do not fit, each link is read by itself.
b_read_links() {
  b_lines=$(stat -c %N -- "$@" 2>/dev/null)$K_NL
  b_rest=$b_lines
  for b_link in "$@"; do
    case $b_rest in *"$K_NL"*) b_rest=${b_rest#*"$K_NL"} ;; *) b_rest=- && break ;; esac
  done
  [ -n "$b_rest" ] || b_targets=$K_NL$b_lines
}

# b_keep seen|hash LINES N...: keeps the line of each step, which ends with its path. Lines come in the order of the
# steps, and some may be missing.
b_keep() {
  b_what=$1 b_lines=$2
  shift 2
  set -f
  IFS=$K_NL
  for b_line in $b_lines; do
    IFS=' '
    while [ $# -gt 0 ] && eval "[ \"\$path_$1\" != \"\${b_line##* }\" ]"; do shift; done
    [ $# -gt 0 ] || break
    eval "${b_what}_$1=\$b_line"
    shift
  done
  unset IFS
  set +f
}

# b_compare: compares the loaded step with b_have (a line of stat) and b_hash.
b_compare() {
  b_good=
  case $b_have in
    '') b_kind=absent ;;
    8???\ *) b_kind=file ;;
    4???\ *) b_kind=directory ;;
    a???\ *) b_kind=symlink ;;
    *) b_kind=special ;;
  esac
  b_facts="kind=$b_kind"
  case $b_type:$b_kind in
    a:absent) b_good=1 ;;
    l:symlink)
      case $b_targets in
        *"$K_NL'$b_path' -> '$b_target'$K_NL"*) b_to=$b_target ;;
        *) b_to=$(readlink -- "$b_path") ;;
      esac
      [ "$b_to" != "$b_target" ] || b_good=1
      k_esc "$b_to"
      b_facts="$b_facts${K_NL}target=$k_escaped"
      ;;
    d:directory | f:file)
      # Names may hold blanks, so they are cut out between four numbers and the path.
      b_owners=${b_have% *}
      b_owners=${b_owners#* * * * }
      b_octal "${b_have%% *}"
      b_facts="$b_facts${K_NL}mode=$b_octal${K_NL}owner=${b_owners%%:*}${K_NL}group=${b_owners#*:}"
      case $b_mode in ?) case $b_have in "$b_mode"*) b_good=1 ;; esac ;; *) case $b_have in "$b_mode "*) b_good=1 ;; esac ;; esac
      [ "$b_user" = - ] || [ "$b_user" = "${b_owners%%:*}" ] || b_good=
      [ "$b_group" = - ] || [ "$b_group" = "${b_owners#*:}" ] || b_good=
      [ "$b_type" = f ] || return 0
      b_hash=${b_hash%% *}
      b_facts="$b_facts${K_NL}content=sha256:$b_hash"
      [ "$b_hash" = "$b_sum" ] || b_good=
      ;;
  esac
}

# b_report TYPE N: adds the facts found of step N to b_out, as frames.
b_report() {
  eval "b_rest=\$facts_$2"
  while [ -n "$b_rest" ]; do
    b_out="$b_out$k_nonce $1 $k_key ${b_rest%%"$K_NL"*}$K_NL"
    case $b_rest in *"$K_NL"*) b_rest=${b_rest#*"$K_NL"} ;; *) b_rest= ;; esac
  done
}

# b_show: adds the file's content to b_out, for the diff; at most 64 KiB.
b_show() {
  b_shown=
  case $b_kind:$b_size in
    file:0) ;;
    file:*) b_shown=$({ if b_is_plain; then head -c 65536 "$b_path"; else open_file "$b_path" && head -c 65536 <&9; fi; } | tr -d '\000' | sed -e 's/\\/\\\\/g' -e 's/$/\\n/' | tr -d '\n') ;;
  esac
  b_out="$b_out$k_nonce show $k_key $b_shown$K_NL"
}

# ---- one step's turn -------------------------------------------------------------------------------------------------

# b_begin N: begins step N: records it as running, and refuses it where something is in its way. Before any change,
# reactions are owed to the steps that watch it.
b_begin() {
  b_load "$1"
  eval "set -- $1 \$have_$1"
  b_kind=$2 b_found=${3:-} b_size=${4:-0} b_found_user=${5:-} b_found_group=${6:-}
  # Written over the old bytes: a reader takes the first line alone, and emptying the file first costs ext4 a flush.
  echo "$$ $k_born $b_secs $k_key" 1<>"$K_RUN/current"
  b_attribute_output || return 1
  echo "$k_key begun" >>"$K_RUN/batch" || return 1
  b_out="$k_nonce start $k_key$K_NL"
  b_report have "$1"
  case $b_type:$b_bits in f:[13]) b_show ;; esac
  printf %s "$b_out" >&5 || return 1
  b_is_clear || b_try b_guard || return
  [ -z "$K_DRY" ] || return 0
  if [ "$b_owes" != - ]; then
    [ -d "$K_STATE/owed" ] || mkdir -m 700 "$K_STATE/owed" || return 1
    b_rest=$b_owes,
    while [ -n "$b_rest" ]; do
      command : >|"$K_STATE/owed/${b_rest%%,*}" || return 1
      b_rest=${b_rest#*,}
    done
  fi
  printf '%s apply %s apply\n' "$k_nonce" "$k_key" >&5
}

# b_attribute_output: output from now on belongs to the loaded step.
b_attribute_output() {
  b_move_output && b_writer=$k_key
}

# b_move_output: moves the shared output file to the step that wrote it. Most steps print nothing, so all share one file.
b_move_output() {
  [ -n "$b_writer" ] && [ ! -s "$K_RUN/out/batch" ] && return
  [ -z "$b_writer" ] || cat "$K_RUN/out/batch" >>"$K_RUN/out/$b_writer.e.0"
  # `command`: without it, a failed redirection of a special builtin would end this shell.
  command exec 2>|"$K_RUN/out/batch"
}

# b_on_term: handles TERM; see k_on_term.
b_on_term() {
  trap '' TERM
  b_move_output
  k_on_term
}

# b_is_clear: true if nothing can be in the way of the loaded step.
b_is_clear() {
  case $b_path in /etc/*) [ ! -e /nix/store ] && [ ! -e /etc/static ] || return 1 ;; esac
  case $b_type:$b_kind in
    ?:absent | d:directory | [fla]:symlink | [fa]:file | a:special) return 0 ;;
    *) return 1 ;;
  esac
}

# b_guard: refuses if something is in the loaded step's way (files.sh).
b_guard() {
  case $b_type in
    d) guard_directory "$b_path" ;;
    f) guard_file "$b_path" ;;
    l) guard_symlink "$b_path" "$b_force" ;;
    a) guard_absent "$b_path" "$b_recurse" ;;
  esac
}

# b_try FUNCTION ARG...: calls a function that may refuse, in a shell of its own.
b_try() {
  ("$@") 3>|"$k_found" </dev/null
  k_status=$?
  k_read '' || return 1
  [ "$k_status" = 0 ]
}

# b_fail STATUS: reports the loaded step as failed.
b_fail() {
  b_failed=$k_key
  printf '%s rc %s %s\n' "$k_nonce" "$k_key" "$1" >&5
}

# ---- folders above (requirement S-6) ---------------------------------------------------------------------------------

# b_above N...: one stat of all folders above these steps, and of this process, which shows our own user.
b_above() {
  b_dirs=' ' b_safe= b_mates=$*
  for b_mate in "$@"; do
    b_load "$b_mate"
    b_up=$b_dir
    while [ -n "$b_up" ]; do
      # The folders above this one are in the list already.
      case $b_dirs in *" $b_up "*) break ;; esac
      b_dirs="$b_dirs$b_up "
      b_up=${b_up%/*}
    done
  done
  b_folders=$K_NL$(stat -c '%u %g %a %f %n' -- /proc/$$ / $b_dirs 2>/dev/null)$K_NL
}

# b_parents: makes sure that the folder of the loaded step exists. b_plain = 1: only root can make or swap a name in it,
# or above it. For other folders files.sh takes over, which is safe in a hostile user's folder, and refuses where it
# cannot be.
b_parents() {
  if [ ! -d "${b_dir:-/}" ]; then
    b_try parent_of "$b_path" "$b_make" "$b_user" || return 1
    # A new stat of the folders above, for the other steps of the wave that lie beneath the new folder.
    b_above $b_mates
    b_load "$b_step"
  fi
  b_is_plain
  return 0
}

# b_is_plain: sets b_plain, and is true if it is 1.
b_is_plain() {
  b_plain=
  case "$b_safe " in *" ${b_dir:-/} "*) b_plain=1 && return ;; esac
  b_up=$b_dir
  while :; do
    case $b_folders in *" ${b_up:-/}$K_NL"*) ;; *) return 1 ;; esac
    b_before=${b_folders%%" ${b_up:-/}$K_NL"*}
    set -- ${b_before##*"$K_NL"}
    case $4:$1:$3 in
      4???:0:*[2367]? | 4???:0:*[2367])
        # A sticky folder is safe only above the step's own folder.
        case $b_up:$3 in "$b_dir":*) return 1 ;; *:[1357]???) ;; *) return 1 ;; esac
        ;;
      4???:0:*) ;;
      *) return 1 ;;
    esac
    [ -n "$b_up" ] || break
    b_up=${b_up%/*}
  done
  b_safe="$b_safe ${b_dir:-/}" b_plain=1
}

# b_is_ours USER:GROUP: true if a file that root makes in the loaded step's plain folder gets this owner without chown.
b_is_ours() {
  case $1 in root:root | 0:0) ;; *) return 1 ;; esac
  case $b_folders in *" ${b_dir:-/}$K_NL"*) ;; *) return 1 ;; esac
  b_before=${b_folders%%" /proc/$$$K_NL"*}
  case ${b_before##*"$K_NL"} in "0 0 "*) ;; *) return 1 ;; esac
  b_before=${b_folders%%" ${b_dir:-/}$K_NL"*}
  set -- ${b_before##*"$K_NL"}
  # A setgid folder passes its group on to new files.
  case $3 in [2367]???) return 1 ;; esac
}

# ---- applying --------------------------------------------------------------------------------------------------------

# b_wave N...: the steps of one wave, in their order, until one fails.
b_wave() {
  [ $# -gt 0 ] && [ -z "$b_failed$b_halted" ] || return 0
  b_above "$@"
  b_staged= b_modes=
  for b_step in "$@"; do
    eval "b_is_good=\$good_$b_step"
    if [ -n "$b_is_good" ]; then
      b_load "$b_step"
      echo "$k_key ok 0" >>"$K_RUN/batch"
      continue
    fi
    if ! b_may_go || b_waits; then b_halted=1 && break; fi
    b_begin "$b_step" && b_apply
    b_status=$?
    [ "$b_status" = 0 ] || { b_fail $b_status; break; }
  done
  [ -n "$b_staged" ] || return 0
  b_take_time
  if [ "$b_type" = d ]; then b_make; else b_put; fi
}

# b_waits: true if the folder `b_step` may lie, by another name, beneath one of this wave that has to be made first. Then
# its turn comes again.
b_waits() {
  [ -n "$b_staged" ] || return 1
  b_load "$b_step"
  [ "$b_type" = d ] && [ ! -d "${b_dir:-/}" ] || return 1
  b_up=$b_dir
  while [ -n "$b_up" ] && [ ! -d "$b_up" ]; do b_up=${b_up%/*}; done
  [ "$(cd -P "${b_up:-/}" && pwd -P)" != "${b_up:-/}" ]
}

# b_may_go: true while the run is not stopped and a bastion watches; else no further step begins.
b_may_go() {
  [ ! -e "$K_RUN/stop" ] && { read -r b_bastion <"$K_RUN/attached"; } 2>/dev/null && kill -0 "$b_bastion" 2>/dev/null
}

# b_apply: applies the loaded step, or stages it for the wave's common commands; in a dry run only foresees.
b_apply() {
  if [ -n "$K_DRY" ]; then
    b_foresee || return
    echo "$k_key would 11" >>"$K_RUN/batch"
    return
  fi
  case $b_type in
    d) b_plan && b_staged="$b_staged $b_step" && return ;;
    f) b_stage && b_staged="$b_staged $b_step" && return ;;
    l) b_link ;;
    a) b_remove ;;
  esac && b_done="$b_done $b_step"
}

# b_wanted MODE: sets b_perm, b_to_user and b_to_group to the loaded step's mode, owner and group. Defaults: MODE, root
# and root.
b_wanted() {
  b_perm=$1 b_to_user=$b_user b_to_group=$b_group
  case $b_mode in ?) ;; *) b_octal "$b_mode" && b_perm=$b_octal ;; esac
  [ "$b_to_user" != - ] || b_to_user=root
  [ "$b_to_group" != - ] || b_to_group=root
}

# b_flush_later PATH...: adds the paths to those that the sync at the end flushes.
b_flush_later() {
  for b_place in "$@"; do
    case "$b_flush " in *" $b_place "*) ;; *) b_flush="$b_flush $b_place" ;; esac
  done
}

# b_plan: decides how a folder is made. mode_N = its mode if one mkdir makes it with others, or - if it is made alone.
b_plan() {
  b_parents || return
  b_wanted 0755
  if [ "$b_kind" = absent ] && [ -n "$b_plain" ] && b_is_ours "$b_to_user:$b_to_group"; then b_want_mode; else b_perm=-; fi
  [ -z "$b_plain" ] || b_flush_later "${b_dir:-/}" "$b_path"
  eval "mode_$b_step=\$b_perm kind_$b_step=\$b_kind"
}

# b_want_mode: adds the mode b_perm to b_modes.
b_want_mode() {
  case "$b_modes " in *" $b_perm "*) ;; *) b_modes="$b_modes $b_perm" ;; esac
}

# b_make: makes the folders of a wave, by one mkdir a mode. If one mkdir fails, each folder is tried by itself, to find
# the step at fault.
b_make() {
  for b_mo in $b_modes; do
    set --
    for b_step in $b_staged; do
      eval "[ \"\$mode_$b_step\" != $b_mo ] || set -- \"\$@\" \"\$path_$b_step\""
    done
    mkdir -m "$b_mo" "$@" 2>/dev/null
  done
  b_rest=
  for b_step in $b_staged; do
    eval "b_perm=\$mode_$b_step b_kind=\$kind_$b_step"
    b_load "$b_step"
    b_attribute_output
    if [ -z "$b_rest" ] && b_folder; then
      b_done="$b_done $b_step"
      continue
    fi
    # Folders after the failed one are undone: the common mkdir made only absent folders, below folders that root alone
    # can write to.
    [ -z "$b_rest" ] || [ "$b_perm" = - ] || rmdir "$b_path" 2>/dev/null
    b_give_up
  done
}

# b_folder: makes the loaded folder unless the common mkdir has made it, or mends it.
b_folder() {
  if [ "$b_perm" != - ]; then
    [ -d "$b_path" ] || mkdir -m "$b_perm" "$b_path"
    return
  fi
  b_wanted -
  b_try keep_folder "$b_path" "$b_perm" "$b_user" "$b_group"
}

# b_aside: b_tmp = a new name in the folder of the loaded step. Remains of a killed shell there are removed.
b_aside() {
  for b_old in "$b_dir/.kcore-$k_key-"*; do [ ! -e "$b_old" ] && [ ! -L "$b_old" ] || rm -rf "$b_old"; done
  b_tmp=$b_dir/.kcore-$k_key-$k_unique
}

# b_write: prints the content of the loaded step. Small contents come as an assignment, which the shell itself writes.
# b_error = the reason for a failure. Print it only after the copy is removed: a full disk has no room for it before.
b_write() {
  case $b_bits in
    [23])
      command . "$K_RUN/blobs/$b_sum" || return
      printf %s "$b_text" 2>/dev/null && return
      # The shell's own message about a full disk is useless; cat's is clear.
      { b_error=$({ printf %s "$b_text" | cat >&3; } 2>&1); } 3>&1
      return 1
      ;;
    *) { b_error=$(cat "$K_RUN/blobs/$b_sum" 2>&1 >&3); } 3>&1 ;;
  esac
}

# b_stage: makes the new file beside the old one, with O_EXCL and 0600; b_put sets the modes of all such files.
b_stage() {
  b_wanted 0644
  if [ "$b_kind" = file ]; then
    # An attribute that the step does not manage stays as it is.
    b_octal "$b_found"
    case $b_mode in ?) b_perm=$b_octal ;; esac
    [ "$b_user" != - ] || b_to_user=$b_found_user
    [ "$b_group" != - ] || b_to_group=$b_found_group
  fi
  b_parents || return
  if [ -z "$b_plain" ]; then
    # In another user's folder no temporary file may wait for the common flush.
    eval "mode_$b_step=- tmp_$b_step="
    return
  fi
  b_aside
  b_error=
  if b_write >"$b_tmp" &&
    { b_is_ours "$b_to_user:$b_to_group" || { chown -h "$b_to_user:$b_to_group" "$b_tmp" && chmod "$b_perm" "$b_tmp" && b_perm=-; }; }; then
    eval "mode_$b_step=\$b_perm tmp_$b_step=\$b_tmp"
    b_want_mode
    b_flush_later "${b_dir:-/}"
    return
  fi
  rm -f "$b_tmp"
  [ -z "$b_error" ] || echo "$b_error" >&2
  return 1
}

# b_give_up [FILE]: gives up the loaded step, and removes FILE, which was made for it. The first such step of a wave has
# failed; later ones are interrupted, and their paths untouched.
b_give_up() {
  if [ -z "$b_rest" ]; then b_fail 1; else echo "$k_key interrupted 0" >>"$K_RUN/batch"; fi
  b_rest=1
  [ $# = 0 ] || rm -f "$1"
}

# b_put: gives the files made aside their modes, flushes them, and renames them into place one after the other. If a
# common command fails, b_put tries the files one by one, to find the step at fault.
b_put() {
  b_tmps=
  for b_mo in $b_modes; do
    set --
    for b_step in $b_staged; do
      eval "[ \"\$mode_$b_step\" != $b_mo ] || set -- \"\$@\" \"\$tmp_$b_step\""
    done
    [ "$b_mo" = - ] || chmod "$b_mo" "$@" 2>/dev/null || b_one_by_one chmod
    b_tmps="$b_tmps $*"
  done
  [ -z "$b_tmps" ] || sync $b_tmps 2>/dev/null || b_one_by_one sync
  b_rest=
  for b_step in $b_staged; do
    eval "b_tmp=\$tmp_$b_step"
    b_load "$b_step"
    b_attribute_output
    if [ -n "$b_rest" ] || ! if [ -n "$b_tmp" ]; then mv -fT "$b_tmp" "$b_path"; else b_try b_put_alone; fi; then
      b_give_up "$b_tmp"
    else
      b_done="$b_done $b_step"
    fi
  done
}

# b_put_alone: puts the file of the loaded step into a folder that other users can change.
b_put_alone() {
  b_wanted -
  b_from=$K_RUN/blobs/$b_sum
  case $b_bits in
    [23])
      b_from=$K_TMP/text
      b_write >|"$b_from" || return
      ;;
  esac
  put_file "$b_from" "$b_path" "$b_perm" "$b_user" "$b_group"
}

# b_one_by_one chmod|sync: runs the command for each staged file; only the files before the first failure stay staged.
b_one_by_one() {
  b_good= b_rest=
  for b_step in $b_staged; do
    eval "b_tmp=\$tmp_$b_step b_perm=\$mode_$b_step"
    b_load "$b_step"
    b_attribute_output
    if [ -n "$b_rest" ] || ! case $1:$b_perm:$b_tmp in chmod:-:* | *:) ;; chmod:*) chmod "$b_perm" "$b_tmp" ;; *) sync "$b_tmp" ;; esac; then
      b_give_up "$b_tmp"
    else
      b_good="$b_good $b_step"
    fi
  done
  b_staged=$b_good
}

# b_take_time: gives the next common commands the time limit of all steps of the batch together.
b_take_time() {
  echo "$$ $k_born $b_all_secs ${b_failed:-$k_key}+" 1<>"$K_RUN/current"
}

b_link() {
  b_parents || return
  if [ -z "$b_plain" ]; then
    b_try put_link "$b_target" "$b_path"
    return
  fi
  b_flush_later "${b_dir:-/}"
  case $b_kind in
    absent)
      # An earlier step may have made a folder here by another path: the link would land inside it.
      [ ! -e "$b_path" ] && [ ! -L "$b_path" ] || return
      ln -s -- "$b_target" "$b_path"
      return
      ;;
    directory) rmdir "$b_path" || return ;;
  esac
  b_aside
  ln -s -- "$b_target" "$b_tmp" && mv -fT "$b_tmp" "$b_path" && return
  b_status=$?
  rm -f "$b_tmp"
  return $b_status
}

b_remove() {
  b_parents || return
  [ -z "$b_plain" ] || b_flush_later "${b_dir:-/}"
  case $b_plain:$b_kind:$b_recurse in
    1:directory:0) rmdir "$b_path" ;;
    1:[!d]*) rm -f "$b_path" ;;
    *) b_try remove_path "$b_path" "$b_recurse" ;;
  esac
}

# b_prove: flushes all applied steps, probes all of them again at once, and reports each as changed or failed.
b_prove() {
  [ -n "$b_done" ] || return 0
  exec 2>/dev/null
  b_take_time
  # A folder that a later step removed cannot be flushed.
  [ -z "$b_flush" ] || sync $b_flush || sync
  b_inspect $b_done
  for b_step in $b_done; do
    b_load "$b_step"
    b_out=
    b_report now "$b_step"
    printf '%s' "$b_out$k_nonce rc $k_key 0$K_NL" >&5 || return 1
    eval "b_is_good=\$good_$b_step"
    if [ -n "$b_is_good" ]; then echo "$k_key changed 10"; else echo "$k_key failed 15"; fi >>"$K_RUN/batch"
  done
}

b_main() {
  trap b_on_term TERM
  set -C
  k_found=$K_TMP/found b_all= b_done= b_failed= b_halted= b_flush= b_count=0 b_all_secs=0 b_writer=
  IFS=$K_NL
  for b_words in $b_data; do
    b_count=$((b_count + 1)) b_all="$b_all $b_count"
    eval "b_line_$b_count=\$b_words"
  done
  unset IFS
  for b_next in $b_all; do
    b_load "$b_next"
    b_all_secs=$((b_all_secs + b_secs))
  done
  b_inspect $b_all
  b_list= b_at=
  for b_next in $b_all; do
    b_load "$b_next"
    if [ "$b_wave" != "$b_at" ]; then
      b_at=$b_wave
      b_wave $b_list
      b_list=
    fi
    b_list="$b_list $b_next"
  done
  b_wave $b_list
  [ -z "$b_writer" ] || b_move_output
  b_prove || exit 98
  [ -z "$b_failed" ] || { echo "$b_failed failed 13" >>"$K_RUN/batch" || exit 98; exit 13; }
}
b_main
