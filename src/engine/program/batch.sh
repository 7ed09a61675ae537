# A batch (POSIX sh; dash, bash, BusyBox, mksh): one shell applies consecutive steps that are pure data, if the
# evidence shows a difference. Follows step.sh, whose functions it uses.
#
# Given: b_data, a line a step: `TYPE WAVE KEY SECONDS OWES PATH …` (batch.ts), words without blanks, quotes or
# wildcards. The steps of a wave have one type. Only folders lie above other paths of a batch, and no path comes twice.
#
# One stat looks at all steps, and at the folders above them. Then the shell makes all things aside: in a folder of its own
# beside their places, which only root can enter, under their final names. New folders hold the things beneath them. It
# flushes the files by one sync, and one mv a folder moves all into place (b_commit). In the end it flushes the folders; one
# stat and one sha256sum prove the whole batch. Only then it reports the steps as changed. The first step that fails ends the
# batch: earlier steps are finished and proved, later ones untouched. $K_RUN/batch tells the runner how each step ended:
# `KEY begun`, later `KEY OUTCOME STATUS`.

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
    eval "path_$b_step=\$b_path seen_$b_step= hash_$b_step="
    # No hash of a FIFO: reading it would wait for ever.
    [ "$b_type" != f ] || [ -L "$b_path" ] || [ ! -f "$b_path" ] || b_is_as_made || b_sums="$b_sums $b_path"
  done
  b_lines=$(stat -c "%f %s %u %g %U:%G %n" -- $b_paths $b_above 2>/dev/null)
  # stat ends with 1 when a path is absent. A stat that could not run at all would look as if every path were absent.
  [ $? -le 1 ] || exit 98
  b_folders=$K_NL$b_lines$K_NL
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

# b_is_as_made: true if the loaded step's file is the large one that this shell made, and unchanged since; sets its hash.
b_is_as_made() {
  eval "b_made=\${stamp_$b_step-}"
  [ -n "$b_made" ] && b_stamp "$b_path" && [ "$b_stamp" = "$b_made" ] && eval "hash_$b_step=\$b_sum"
}

# b_stamp PATH: b_stamp = the file's device, inode and size, and the time of the last write to it.
b_stamp() {
  b_stamp=$(stat -c '%d:%i %s %y' -- "$1" 2>/dev/null)
  # In whole seconds, as of BusyBox and ext3, a second write to the file can have the same time.
  case $b_stamp in *.000000000*) return 1 ;; esac
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
  b_turn_to "$1" || return 1
  echo "$k_key begun" >>"$K_RUN/batch" || return 1
  b_out="$k_nonce start $k_key$K_NL"
  b_report have "$1"
  case $b_type:$b_bits in f:[135]) b_show ;; esac
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

# b_turn_to N: loads step N with its facts found. The time limit and output from now on are those of this step.
b_turn_to() {
  b_load "$1"
  eval "set -- \$have_$1"
  b_kind=$1 b_found=${2:-} b_size=${3:-0} b_found_user=${4:-} b_found_group=${5:-}
  # Written over the old bytes: a reader takes the first line alone, and emptying the file first costs ext4 a flush.
  echo "$$ $k_born $b_secs $k_key" 1<>"$K_RUN/current"
  b_attribute_output
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

# b_fail STATUS: reports the loaded step as failed. A later step that failed before is interrupted.
b_fail() {
  [ -z "$b_failed" ] || echo "$b_failed interrupted 0" >>"$K_RUN/batch"
  b_failed=$k_key
  printf '%s rc %s %s\n' "$k_nonce" "$k_key" "$1" >&5
}

# ---- folders above (requirement S-6) ---------------------------------------------------------------------------------

# b_list_above: b_above = all folders above the steps, and this process, which shows our own user.
b_list_above() {
  b_above=' '
  for b_step in $b_all; do
    b_load "$b_step"
    b_up=$b_dir
    while [ -n "$b_up" ]; do
      # The folders above this one are in the list already.
      case $b_above in *" $b_up "*) break ;; esac
      b_above="$b_above$b_up "
      b_up=${b_up%/*}
    done
  done
  b_above="/proc/$$ / $b_above"
}

# b_line_above PATH: b_line = the line of the folder in b_folders, without the path.
b_line_above() {
  IFS=$K_NL
  set -- ${b_folders%%" $1$K_NL"*}
  unset IFS
  eval "b_line=\${$#}"
}

# b_locate: makes sure that the folder of the loaded step exists, or is made aside. b_tmp = the path aside for the step. b_tmp is
# empty in folders that other users can change. There files.sh takes over, which is safe in a hostile user's folder, and
# refuses where it cannot be.
b_locate() {
  b_plain=1
  ! b_find_place || return 0
  if [ ! -d "${b_dir:-/}" ]; then
    # A step of this batch may make the folder by another name.
    [ -z "$b_staged" ] || b_first b_commit || return
    [ -d "${b_dir:-/}" ] || b_try parent_of "$b_path" "$b_make" "$b_user" || return
    b_folders=
  fi
  if b_goes_aside; then b_open "$b_step" && b_find_place; else b_is_plain; fi || :
}

# b_find_place: b_tmp = the path aside for the loaded step; b_in = the number of its folder, empty beneath a new folder.
# b_places has words `ASIDE>NUMBER<FOLDER`, for a new folder of another user's `ASIDE>@USER<FOLDER`: only things of that user
# are made in it, as files.sh puts no others there. Shells cut at `%%WORD*` and split fast; `#*WORD` takes dash the square of the length.
b_find_place() {
  b_tmp= b_in=
  case $b_places in *"<$b_dir "*) ;; *) return 1 ;; esac
  set -- ${b_places%%"<$b_dir "*}
  eval "b_rest=\${$#}"
  b_tmp=${b_rest%>*}/${b_path##*/} b_in=${b_rest##*>}
  case $b_in in "@$b_user") b_in= ;; @*) b_tmp= b_in= && return 1 ;; esac
}

# b_goes_aside: true if the loaded step is made aside: a new folder, a file, a link that replaces something or comes with others.
# A link replaces an empty folder at its place, so that the folder is not gone before.
b_goes_aside() {
  case $b_type$b_kind:$b_staged in ldirectory:*) return 1 ;; f* | dabsent:* | l[!a]* | labsent:?*) return 0 ;; *) return 1 ;; esac
}

# b_open N...: gives each folder in which these steps make something a folder aside, if only root can change it. A setgid
# folder passes its group on, so files.sh makes its things one by one.
b_open() {
  for b_one in "$@"; do
    eval "b_is_good=\$good_$b_one b_kind=\${have_$b_one%% *}"
    b_load "$b_one"
    if [ -n "$b_is_good" ] || ! b_goes_aside || b_find_place || [ ! -d "${b_dir:-/}" ] || ! b_is_plain; then continue; fi
    b_line_above "${b_dir:-/}"
    case $b_line in 4[4567cdef]*) b_plain= && continue ;; esac
    b_sweep
    b_tmp=$b_dir/.kcore.$$.$k_born b_opened=$((b_opened + 1))
    # If this shell is killed, the next runner removes the folder when it is empty.
    echo "$b_tmp" >>"$K_STATE/aside" || continue
    eval "folder_$b_opened=\$b_dir into_$b_opened="
    b_base="$b_base$b_tmp>$b_opened<$b_dir " b_places="$b_places$b_tmp>$b_opened<$b_dir "
    b_fresh="$b_fresh $b_tmp" b_asides="$b_asides $b_tmp"
  done
}

# b_sweep: removes the folders aside that killed shells left in the folder of the loaded step.
b_sweep() {
  for b_old in "$b_dir"/.kcore.*.*; do [ ! -d "$b_old" ] || b_lives "${b_old##*/.kcore.}" || rm -rf "$b_old"; done
}

# b_lives PID.START_TIME: true if that very process lives.
b_lives() {
  { IFS= read -r k_stat <"/proc/${1%.*}/stat"; } 2>/dev/null || return 1
  b_since=${1#*.}
  set -- ${k_stat##*) }
  [ "${20}" = "$b_since" ]
}

# b_is_plain: sets b_plain, and is true if it is 1.
b_is_plain() {
  b_plain=
  [ -n "$b_folders" ] || b_folders=$K_NL$(stat -c "%f %s %u %g %U:%G %n" -- $b_above 2>/dev/null)$K_NL b_safe=
  case "$b_safe " in *" ${b_dir:-/} "*) b_plain=1 && return ;; esac
  b_up=$b_dir
  while :; do
    case $b_folders in *" ${b_up:-/}$K_NL"*) ;; *) return 1 ;; esac
    b_line_above "${b_up:-/}"
    set -- $b_line
    case $1:$3 in
      4??[2367abef]:0 | 4?[13579bdf]?:0)
        # Others or the group can write to it. A sticky folder is safe only above the step's own folder.
        case $b_up:$1 in "$b_dir":*) return 1 ;; *:4[2367abef]??) ;; *) return 1 ;; esac
        ;;
      4???:0) ;;
      *) return 1 ;;
    esac
    [ -n "$b_up" ] || break
    b_up=${b_up%/*}
  done
  b_safe="$b_safe ${b_dir:-/}" b_plain=1
}

# ---- applying --------------------------------------------------------------------------------------------------------

# b_wave N...: the steps of one wave, in their order, until one fails.
b_wave() {
  [ $# -gt 0 ] && [ -z "$b_failed$b_halted" ] || return 0
  b_load "$1"
  # A step that removes comes after all before it. In a dry run nothing is made.
  case $b_type:$K_DRY in a:) b_commit ;; *:) b_open "$@" ;; esac
  for b_step in "$@"; do
    [ -z "$b_failed" ] || break
    eval "b_is_good=\$good_$b_step"
    if [ -n "$b_is_good" ]; then
      b_load "$b_step"
      echo "$k_key ok 0" >>"$K_RUN/batch"
      continue
    fi
    if ! b_may_go; then b_halted=1 && break; fi
    b_begin "$b_step" && b_apply
    b_status=$?
    [ "$b_status" = 0 ] || [ -n "$b_failed" ] || b_fail $b_status
  done
}

# b_first b_make|b_commit: brings the steps before the present one further. If one of them fails, the present step is interrupted.
b_first() {
  "$1"
  b_turn_to "$b_step"
  [ -n "$b_failed" ] || return 0
  echo "$k_key interrupted 0" >>"$K_RUN/batch"
  return 1
}

# b_may_go: true while the run is not stopped and a bastion watches; else no further step begins.
b_may_go() {
  [ ! -e "$K_RUN/stop" ] && { read -r b_bastion <"$K_RUN/attached"; } 2>/dev/null && kill -0 "$b_bastion" 2>/dev/null
}

# b_apply: applies the loaded step, or makes its thing aside; in a dry run only foresees.
b_apply() {
  if [ -n "$K_DRY" ]; then
    b_foresee || return
    echo "$k_key would 11" >>"$K_RUN/batch"
    return
  fi
  if [ "$b_type" = a ]; then
    b_remove && b_done="$b_done $b_step"
    b_status=$?
    [ "$b_kind" != directory ] || b_forget_folders
    return $b_status
  fi
  b_locate || return
  b_goes_aside || b_tmp=
  if [ -z "$b_tmp" ]; then
    [ -z "$b_staged" ] || b_first b_commit || return
    b_apply_alone && b_done="$b_done $b_step"
    b_status=$?
    # A folder may have another owner now, so all folders above count anew.
    [ "$b_type" != d ] || b_forget_folders
    return $b_status
  fi
  case $b_type:$b_fresh in [fl]:?*) b_first b_make && b_find_place || return ;; esac
  b_does=
  case $b_type in
    d) b_plan ;;
    f) b_stage ;;
    l) b_link "$b_tmp" ;;
  esac || return
  # A flush goes to no name in a new folder, where another user may swap names as soon as it is in place.
  [ -z "$b_in" ] || b_flush_later "${b_dir:-/}"
  eval "tmp_$b_step=\$b_tmp in_$b_step=\$b_in does_$b_step=\$b_does"
  b_staged="$b_staged $b_step"
}

# b_forget_folders: has later steps look at all folders above them anew.
b_forget_folders() {
  b_places=' ' b_base=' ' b_fresh= b_folders=
}

# b_apply_alone: applies the loaded step by itself, at its place.
b_apply_alone() {
  case $b_type:$b_plain in
    l:1)
      b_flush_later "${b_dir:-/}"
      b_sweep
      b_link "$b_path"
      ;;
    l:) b_try put_link "$b_target" "$b_path" ;;
    f:*) b_try b_put_alone ;;
    d:*)
      b_wanted -
      b_try keep_folder "$b_path" "$b_perm" "$b_user" "$b_group"
      ;;
  esac
}

# b_wanted MODE: sets b_perm, b_to_user and b_to_group to the loaded step's mode, owner and group. Defaults: MODE, root
# and root.
b_wanted() {
  b_perm=$1 b_to_user=$b_user b_to_group=$b_group
  case $b_mode in ?) ;; *) b_octal "$b_mode" && b_perm=$b_octal ;; esac
  [ "$b_to_user" != - ] || b_to_user=root
  [ "$b_to_group" != - ] || b_to_group=root
}

# b_flush_later PATH: adds the path to those that the sync at the end flushes.
b_flush_later() {
  case "$b_flush " in *" $1 "*) ;; *) b_flush="$b_flush $1" ;; esac
}

# b_plan: has the next mkdir make the loaded folder, and later steps make their things in it.
b_plan() {
  b_wanted 0755
  b_want mkdir,-p
  [ "$b_perm" = 0700 ] || b_want "chmod,$b_perm"
  b_own
  b_fresh="$b_fresh $b_tmp"
  # Into a folder that others can write to, files.sh puts things one by one, or refuses.
  case $b_perm:$b_to_user in
    *[2367]?:* | *[2367]:*) ;;
    *:root | *:0) b_places="$b_places$b_tmp><$b_path " ;;
    *) b_places="$b_places$b_tmp>@$b_to_user<$b_path " ;;
  esac
}

# b_want COMMAND...: adds commands, with commas for blanks, to those that the loaded step shares with others.
b_want() {
  for b_word in "$@"; do
    b_does="$b_does $b_word"
    case $b_word in chmod*) case "$b_commons " in *" $b_word "*) ;; *) b_commons="$b_commons $b_word" ;; esac ;; esac
  done
}

# b_own: gives the loaded step's thing its owner, which comes before its mode.
b_own() {
  case $b_to_user:$b_to_group:$b_us in root:root:0:0 | 0:0:0:0) return 0 ;; esac
  b_word=chown,-h,$b_to_user:$b_to_group
  b_does="$b_does $b_word"
  case "$b_owners " in *" $b_word "*) return 0 ;; esac
  b_owners="$b_owners $b_word"
  # The first file of an owner shows that the owner exists, before a further step begins.
  [ "$b_type" = d ] || b_run "$b_word" "$b_tmp"
}

# b_run COMMAND PATH...: runs a command that has commas for blanks.
b_run() {
  b_word=$1
  shift
  IFS=,
  set -- $b_word "$@"
  unset IFS
  "$@"
}

# b_make: makes the new folders, and those aside, by one mkdir. `-m` keeps them private where a folder has a default ACL;
# on vfat BusyBox makes them, and fails then.
b_make() {
  [ -n "$b_fresh" ] || return 0
  # shellcheck disable=SC2174 # the umask serves the folders above
  mkdir -p -m 0700 $b_fresh 2>/dev/null || { mkdir -p $b_asides && chmod 0700 $b_asides; b_one_by_one mkdir,-p; }
  b_fresh=
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

# b_stage: makes the new file aside, with O_EXCL and 0600.
b_stage() {
  b_wanted 0644
  if [ "$b_kind" = file ]; then
    # An attribute that the step does not manage stays as it is.
    b_octal "$b_found"
    case $b_mode in ?) b_perm=$b_octal ;; esac
    [ "$b_user" != - ] || b_to_user=$b_found_user
    [ "$b_group" != - ] || b_to_group=$b_found_group
  fi
  b_error=
  if b_write >"$b_tmp" && b_own; then
    b_want "chmod,$b_perm" sync
    # A large content was verified when it arrived: the proof does not read it again, unless the file changed since now.
    case $b_bits in [45]) b_stamp "$b_tmp" && eval "stamp_$b_step=\$b_stamp" ;; esac
    return 0
  fi
  rm -f "$b_tmp"
  [ -z "$b_error" ] || echo "$b_error" >&2
  return 1
}

# b_give_up: gives up the loaded step, and removes its thing aside, for a folder with all in it. The first such step has failed;
# later ones are interrupted, and their paths untouched.
b_give_up() {
  if [ -z "$b_rest" ]; then b_fail 1; else echo "$k_key interrupted 0" >>"$K_RUN/batch"; fi
  b_rest=1 b_given_up="$b_given_up $b_tmp"
  rm -rf "$b_tmp" 2>/dev/null
}

# b_is_given_up: true if the loaded step's thing was in a folder aside that was given up.
b_is_given_up() {
  for b_one in $b_given_up; do
    case $b_tmp in "$b_one"/*) return 0 ;; esac
  done
  return 1
}

# b_commit: gives all things made aside owners and modes, flushes the files, and moves all into place by one mv a folder. If
# a common command fails, b_commit tries the steps one by one, to find the one at fault.
b_commit() {
  b_make
  [ -n "$b_staged" ] || return 0
  b_take_time
  for b_command in $b_owners $b_commons sync; do
    set --
    for b_each in $b_staged; do
      eval "b_tmp=\$tmp_$b_each b_its=\$does_$b_each"
      case "$b_its " in *" $b_command "*) set -- "$@" "$b_tmp" ;; esac
    done
    [ $# = 0 ] || b_run "$b_command" "$@" 2>/dev/null || b_one_by_one "$b_command"
  done
  for b_each in $b_staged; do
    eval "b_in=\$in_$b_each"
    [ -z "$b_in" ] || eval "into_$b_in=\"\$into_$b_in \$tmp_$b_each\""
  done
  b_count=0 b_rest= b_given_up=
  while [ $((b_count += 1)) -le "$b_opened" ]; do
    eval "set -- \$into_$b_count; b_dir=\$folder_$b_count into_$b_count="
    [ $# = 0 ] || [ -n "$b_rest" ] || mv -f "$@" "$b_dir/" 2>/dev/null || b_rest=1
  done
  b_rest=
  for b_each in $b_staged; do
    eval "b_tmp=\$tmp_$b_each"
    b_load "$b_each"
    b_attribute_output
    # mv goes on after a failure, so a later thing of its folder may be in place.
    if b_is_given_up; then
      b_give_up
    elif [ ! -e "$b_tmp" ] && [ ! -L "$b_tmp" ] || { [ -z "$b_rest" ] && mv -fT "$b_tmp" "$b_path"; }; then
      b_done="$b_done $b_each"
    else
      b_give_up
    fi
  done
  b_staged= b_owners= b_commons= b_places=$b_base b_folders=
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

# b_one_by_one COMMAND: runs the command for each step that wants it; only steps before the first failure stay.
b_one_by_one() {
  b_keep= b_rest= b_given_up=
  for b_each in $b_staged; do
    eval "b_tmp=\$tmp_$b_each b_its=\$does_$b_each"
    b_load "$b_each"
    b_attribute_output
    if [ -z "$b_rest" ] && case "$b_its " in *" $1 "*) b_run "$1" "$b_tmp" ;; esac; then
      b_keep="$b_keep $b_each"
    else
      b_give_up
    fi
  done
  b_staged=$b_keep
}

# b_take_time: gives the next common commands the time limit of all steps of the batch together.
b_take_time() {
  echo "$$ $k_born $b_all_secs ${b_failed:-$k_key}+" 1<>"$K_RUN/current"
}

# b_link PATH: makes the link of the loaded step at PATH, which is aside or its place.
b_link() {
  case $b_kind in
    # An earlier step may have made a folder here by another path: the link would land inside it.
    absent) [ ! -e "$b_path" ] && [ ! -L "$b_path" ] || return ;;
    directory) rmdir "$b_path" || return ;;
  esac
  ln -s -- "$b_target" "$1"
}

b_remove() {
  [ -d "${b_dir:-/}" ] || b_try parent_of "$b_path" 0 || return
  b_is_plain
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
  b_above=
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
  b_places=' ' b_base=' ' b_staged= b_owners= b_commons= b_fresh= b_asides= b_opened=0 b_safe=
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
  b_list_above
  b_inspect $b_all
  b_line_above /proc/$$
  set -- $b_line
  b_us=$3:$4
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
  b_commit
  [ -z "$b_asides" ] || { rmdir $b_asides 2>/dev/null; : >|"$K_STATE/aside"; }
  [ -z "$b_writer" ] || b_move_output
  b_prove || exit 98
  [ -z "$b_failed" ] || { echo "$b_failed failed 13" >>"$K_RUN/batch" || exit 98; exit 13; }
}
b_main
