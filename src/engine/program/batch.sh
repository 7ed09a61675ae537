# The batch lane (POSIX sh; dash, bash, BusyBox, mksh): consecutive steps that are pure data, kept in order by one shell for
# all of them. It follows step.sh, whose functions it uses, when the evidence showed that a batch is not in order.
#
# Given: b_data, a line a step: `TYPE WAVE KEY SECONDS OWES PATH …` (batch.ts), words without blanks, quotes or wildcards.
# Steps of one wave are of one type, and none lies beneath another, so they may share what is asked of the node.
#
# All are looked at first. Then, wave by wave: parents are checked once a folder; files are made aside, flushed by one sync and
# put in place by one rename each. In the end the folders are flushed, one stat and one sha256sum prove the whole batch, and only
# then its steps are told as changed. The first step that fails ends it: those before it are finished and proved, those behind it
# are not touched. $K_RUN/batch tells the runner how each fared: `KEY begun`, later `KEY OUTCOME STATUS`.

# b_load N: the words of step N: b_t (type) and so on.
b_load() {
  eval "set -- \$b_line_$1"
  b_t=$1 b_w=$2 k_i=$3 b_secs=$4 b_owes=$5 b_path=$6
  b_dir=${b_path%/*} b_user=- b_group=- b_make=0 b_show=0
  case $b_t in
    d | f) b_mode=$7 b_user=$8 b_group=$9 b_make=${10} b_sum=${11:-} b_show=${12:-0} ;;
    l) b_target=$7 b_force=$8 b_make=$9 ;;
    a) b_recurse=$7 ;;
  esac
}

# b_octal HEX: b_o = the permissions in a mode as stat's %f prints it, four octal digits.
b_octal() {
  b_o=$((0x$1))
  b_o=$((b_o >> 9 & 7))$((b_o >> 6 & 7))$((b_o >> 3 & 7))$((b_o & 7))
}

# ---- looking ---------------------------------------------------------------------------------------------------------

# b_look N...: looks at all these steps at once; facts_N = what was found, have_N = `KIND MODE SIZE UID GID …`, good_N = 1 when
# it is as wanted.
b_look() {
  b_paths= b_sums=
  for b_n in "$@"; do
    b_load "$b_n"
    b_paths="$b_paths $b_path"
    # A hash is not asked of a FIFO: it would wait for ever.
    [ "$b_t" != f ] || [ -L "$b_path" ] || [ ! -f "$b_path" ] || b_sums="$b_sums $b_path"
    eval "path_$b_n=\$b_path seen_$b_n= hash_$b_n="
  done
  b_x=$(stat -c "%f %s %u %g %U:%G %n" -- $b_paths 2>/dev/null)
  # It fails when a path is not there; a stat that could not run would look as if none were.
  [ $? -le 1 ] || exit 98
  b_keep seen "$b_x" "$@"
  [ -z "$b_sums" ] || b_keep hash "$(sha256sum -- $b_sums 2>/dev/null)" "$@"
  for b_n in "$@"; do
    b_load "$b_n"
    eval "b_have=\$seen_$b_n b_hash=\$hash_$b_n"
    b_judge
    eval "facts_$b_n=\$b_facts have_$b_n=\"\$b_kind \$b_have\" good_$b_n=\$b_good"
  done
}

# b_keep seen|hash LINES N...: keeps the line of each step, which ends with its path; they come in the order of the steps, and some
# may be missing.
b_keep() {
  b_what=$1 b_lines=$2
  shift 2
  set -f
  IFS=$K_NL
  for b_x in $b_lines; do
    IFS=' '
    while [ $# -gt 0 ] && eval "[ \"\$path_$1\" != \"\${b_x##* }\" ]"; do shift; done
    [ $# -gt 0 ] || break
    eval "${b_what}_$1=\$b_x"
    shift
  done
  unset IFS
  set +f
}

# b_judge: what b_have (a line of stat) and b_hash say of the loaded step.
b_judge() {
  b_good=
  case $b_have in
    '') b_kind=absent ;;
    8???\ *) b_kind=file ;;
    4???\ *) b_kind=directory ;;
    a???\ *) b_kind=symlink ;;
    *) b_kind=special ;;
  esac
  b_facts="kind=$b_kind"
  case $b_t:$b_kind in
    a:absent) b_good=1 ;;
    l:symlink)
      b_x=$(readlink -- "$b_path")
      [ "$b_x" != "$b_target" ] || b_good=1
      k_esc "$b_x"
      b_facts="$b_facts${K_NL}target=$k_e"
      ;;
    d:directory | f:file)
      # Names may hold blanks: they stand behind four numbers, and before the path.
      b_x=${b_have% *}
      b_x=${b_x#* * * * }
      b_octal "${b_have%% *}"
      b_facts="$b_facts${K_NL}mode=$b_o${K_NL}owner=${b_x%%:*}${K_NL}group=${b_x#*:}"
      case $b_mode in ?) case $b_have in "$b_mode"*) b_good=1 ;; esac ;; *) case $b_have in "$b_mode "*) b_good=1 ;; esac ;; esac
      [ "$b_user" = - ] || [ "$b_user" = "${b_x%%:*}" ] || b_good=
      [ "$b_group" = - ] || [ "$b_group" = "${b_x#*:}" ] || b_good=
      [ "$b_t" = f ] || return 0
      b_hash=${b_hash%% *}
      b_facts="$b_facts${K_NL}content=sha256:$b_hash"
      [ "$b_hash" = "$b_sum" ] || b_good=
      ;;
  esac
}

# b_tell TYPE N: adds the facts found of step N to b_out, as frames.
b_tell() {
  eval "b_rest=\$facts_$2"
  while [ -n "$b_rest" ]; do
    b_out="$b_out$k_nonce $1 $k_i ${b_rest%%"$K_NL"*}$K_NL"
    case $b_rest in *"$K_NL"*) b_rest=${b_rest#*"$K_NL"} ;; *) b_rest= ;; esac
  done
}

# b_show: adds what the file holds to b_out, for the diff; at most 64 KiB.
b_show() {
  b_x=
  case $b_kind:$b_size in
    file:0) ;;
    file:*) b_x=$(head -c 65536 "$b_path" | tr -d '\000' | sed -e 's/\\/\\\\/g' -e 's/$/\\n/' | tr -d '\n') ;;
  esac
  b_out="$b_out$k_nonce show $k_i $b_x$K_NL"
}

# ---- one step's turn -------------------------------------------------------------------------------------------------

# b_begin N: the turn of step N has come: it is the running one, refused where something is in its way; a reaction is owed to
# the steps that watch it before anything of it is done.
b_begin() {
  b_load "$1"
  eval "set -- $1 \$have_$1"
  b_kind=$2 b_found=${3:-} b_size=${4:-0} b_found_user=${5:-} b_found_group=${6:-}
  echo "$$ $k_born $b_secs $k_i" >|"$K_RUN/current"
  # A redirection of a special builtin that fails would end this shell: hence `command`.
  command exec 2>|"$K_RUN/out/$k_i.e.0" || return 1
  echo "$k_i begun" >>"$K_RUN/batch" || return 1
  b_out="$k_nonce start $k_i$K_NL"
  b_tell have "$1"
  [ "$b_t:$b_show" != f:1 ] || b_show
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
  printf '%s apply %s apply\n' "$k_nonce" "$k_i" >&5
}

# b_is_clear: plainly nothing is in the way of the loaded step.
b_is_clear() {
  case $b_path in /etc/*) [ ! -e /nix/store ] && [ ! -e /etc/static ] || return 1 ;; esac
  case $b_t:$b_kind in
    ?:absent | d:directory | [fla]:symlink | [fa]:file | a:special) return 0 ;;
    *) return 1 ;;
  esac
}

b_guard() {
  case $b_t in
    d) guard_directory "$b_path" ;;
    f) guard_file "$b_path" ;;
    l) guard_symlink "$b_path" "$b_force" ;;
    a) guard_absent "$b_path" "$b_recurse" ;;
  esac
}

# b_try FUNCTION ARG...: calls what may refuse, in a shell of its own.
b_try() {
  ("$@") 3>|"$k_found" </dev/null
  k_status=$?
  k_read '' || return 1
  [ "$k_status" = 0 ]
}

# b_fail STATUS: the loaded step has failed.
b_fail() {
  b_failed=$k_i
  printf '%s rc %s %s\n' "$k_nonce" "$k_i" "$1" >&5
}

# ---- folders above (requirement S-6) ---------------------------------------------------------------------------------

# b_above N...: one look at all the folders above these steps, and at this process, which stands for who we are.
b_above() {
  b_dirs=' ' b_safe= b_mates=$*
  for b_a in "$@"; do
    b_load "$b_a"
    b_x=$b_dir
    while [ -n "$b_x" ]; do
      # Its own parents are in the list as well.
      case $b_dirs in *" $b_x "*) break ;; esac
      b_dirs="$b_dirs$b_x "
      b_x=${b_x%/*}
    done
  done
  b_folders=$K_NL$(stat -c '%u %g %a %f %U %n' -- /proc/$$ / $b_dirs 2>/dev/null)$K_NL
}

# b_parents OWNER: the folder of the loaded step is there, and nobody but root and OWNER could swap it or one above it. What is
# not plainly so is left to safe_parents, which follows links and tells why it refuses.
b_parents() {
  if [ ! -d "${b_dir:-/}" ]; then
    b_try parent_of "$b_path" "$b_make" || return 1
    # It is one of those that were looked at for the others too.
    b_above $b_mates
    b_load "$b_n"
  fi
  case "$b_safe " in *" $1:$b_dir "*) return 0 ;; esac
  b_x=$b_dir
  while :; do
    case $b_folders in *" ${b_x:-/}$K_NL"*) ;; *) break ;; esac
    b_y=${b_folders%%" ${b_x:-/}$K_NL"*}
    b_is_safe "$1" ${b_y##*"$K_NL"} || break
    [ -n "$b_x" ] || { b_safe="$b_safe $1:$b_dir" && return 0; }
    b_x=${b_x%/*}
  done
  b_try safe_parents "$b_path" "$1"
}

# b_is_safe OWNER UID GID PERMISSIONS MODE USER
b_is_safe() {
  case $5 in 4???) ;; *) return 1 ;; esac
  [ "$2" = 0 ] || [ "${6:-}" = "$1" ] || return 1
  # Sticky, or not writable for group and others.
  case $4 in [1357]???) ;; *[2367]? | *[2367]) return 1 ;; esac
}

# b_is_ours USER:GROUP: what we make in the folder of the loaded step belongs to these by itself, and the folder is root's.
b_is_ours() {
  case $1 in root:root | 0:0) ;; *) return 1 ;; esac
  case $b_folders in *" ${b_dir:-/}$K_NL"*) ;; *) return 1 ;; esac
  b_x=${b_folders%%" /proc/$$$K_NL"*}
  case ${b_x##*"$K_NL"} in "0 0 "*) ;; *) return 1 ;; esac
  b_x=${b_folders%%" ${b_dir:-/}$K_NL"*}
  set -- ${b_x##*"$K_NL"}
  [ "$1" = 0 ] || return 1
  # A folder that hands its group on.
  case $3 in [2367]???) return 1 ;; esac
}

# ---- applying --------------------------------------------------------------------------------------------------------

# b_wave N...: the steps of one wave, in their order, until one fails.
b_wave() {
  [ $# -gt 0 ] && [ -z "$b_failed$b_halted" ] || return 0
  [ -n "$K_DRY" ] || b_above "$@"
  b_staged= b_modes=
  for b_n in "$@"; do
    eval "b_x=\$good_$b_n"
    if [ -n "$b_x" ]; then
      b_load "$b_n"
      echo "$k_i ok 0" >>"$K_RUN/batch"
      continue
    fi
    b_may_go || { b_halted=1 && break; }
    b_begin "$b_n" && b_apply
    b_status=$?
    [ "$b_status" = 0 ] || { b_fail $b_status; break; }
  done
  [ -z "$b_staged" ] || b_put
}

# b_may_go: nobody stopped the run, and somebody watches it; else no further step begins.
b_may_go() {
  [ ! -e "$K_RUN/stop" ] && { read -r b_x <"$K_RUN/attached"; } 2>/dev/null && kill -0 "$b_x" 2>/dev/null
}

b_apply() {
  if [ -n "$K_DRY" ]; then
    echo "$k_i would 11" >>"$K_RUN/batch"
    return
  fi
  case $b_t in
    d) b_folder ;;
    f) b_stage && b_staged="$b_staged $b_n" && return ;;
    l) b_link ;;
    a) b_remove ;;
  esac && b_done="$b_done $b_n"
}

# b_wish MODE: b_m b_u b_g = what the loaded step shall have; MODE, root and root where nothing is said.
b_wish() {
  b_m=$1 b_u=$b_user b_g=$b_group
  case $b_mode in ?) ;; *) b_octal "$b_mode" && b_m=$b_o ;; esac
  [ "$b_u" != - ] || b_u=root
  [ "$b_g" != - ] || b_g=root
}

# b_flush_later PATH...: what the sync at the end has to write down.
b_flush_later() {
  for b_x in "$@"; do
    case "$b_flush " in *" $b_x "*) ;; *) b_flush="$b_flush $b_x" ;; esac
  done
}

b_folder() {
  if [ "$b_kind" = absent ]; then
    b_wish 0755
    b_parents "$b_u" || return
    b_flush_later "$b_path" "${b_dir:-/}"
    if b_is_ours "$b_u:$b_g"; then
      mkdir -m "$b_m" "$b_path"
    else
      # It has its owner and mode before anybody else can enter it.
      mkdir -m 0700 "$b_path" && chown "$b_u:$b_g" "$b_path" && chmod "$b_m" "$b_path"
    fi
    return
  fi
  b_flush_later "$b_path"
  [ "$b_user" = - ] || chown "$b_user" "$b_path" || return
  [ "$b_group" = - ] || chgrp "$b_group" "$b_path" || return
  case $b_mode in ?) return 0 ;; esac
  b_octal "$b_mode"
  chmod "$b_o" "$b_path"
}

# b_aside: b_tmp = a name in the folder of the loaded step; what a killed shell left there goes.
b_aside() {
  for b_x in "$b_dir/.kcore-$k_i-"*; do [ ! -f "$b_x" ] && [ ! -L "$b_x" ] || rm -f "$b_x"; done
  b_tmp=$b_dir/.kcore-$k_i-$k_unique
}

# b_stage: the new file beside the old one, made with O_EXCL and 0600; its mode comes with that of the others (b_put).
b_stage() {
  b_wish 0644
  if [ "$b_kind" = file ]; then
    # What is not managed stays as it is.
    b_octal "$b_found"
    case $b_mode in ?) b_m=$b_o ;; esac
    [ "$b_user" != - ] || b_u=$b_found_user
    [ "$b_group" != - ] || b_g=$b_found_group
  fi
  b_parents "$b_u" || return
  b_aside
  # In somebody else's folder it does not wait for the others.
  if cat "$K_RUN/blobs/$b_sum" >"$b_tmp" &&
    { b_is_ours "$b_u:$b_g" || { chown -h "$b_u:$b_g" "$b_tmp" && chmod "$b_m" "$b_tmp" && b_m=-; }; }; then
    eval "mode_$b_n=\$b_m tmp_$b_n=\$b_tmp"
    case "$b_modes " in *" $b_m "*) ;; *) b_modes="$b_modes $b_m" ;; esac
    b_flush_later "${b_dir:-/}"
    return
  fi
  b_status=$?
  rm -f "$b_tmp"
  return $b_status
}

# b_give_up: the first file that cannot be put in place has failed; those behind it were begun, and are left as they were.
b_give_up() {
  if [ -z "$b_rest" ]; then b_fail 1; else echo "$k_i interrupted 0" >>"$K_RUN/batch"; fi
  b_rest=1
  rm -f "$b_tmp"
}

# b_put: gives the files made aside their modes, flushes them, and puts one after the other in place. What fails for all of
# them is tried one by one, to know whose fault it is.
b_put() {
  b_tmps=
  b_take_time
  for b_mo in $b_modes; do
    set --
    for b_n in $b_staged; do
      eval "[ \"\$mode_$b_n\" != $b_mo ] || set -- \"\$@\" \"\$tmp_$b_n\""
    done
    [ "$b_mo" = - ] || chmod "$b_mo" "$@" 2>/dev/null || b_one_by_one chmod
    b_tmps="$b_tmps $*"
  done
  sync $b_tmps 2>/dev/null || b_one_by_one sync
  b_rest=
  for b_n in $b_staged; do
    eval "b_tmp=\$tmp_$b_n"
    b_load "$b_n"
    command exec 2>>"$K_RUN/out/$k_i.e.0"
    if [ -n "$b_rest" ] || ! mv -fT "$b_tmp" "$b_path"; then
      b_give_up
    else
      b_done="$b_done $b_n"
    fi
  done
}

# b_one_by_one chmod|sync: only what stands before the first that fails stays among the staged.
b_one_by_one() {
  b_good= b_rest=
  for b_n in $b_staged; do
    eval "b_tmp=\$tmp_$b_n b_m=\$mode_$b_n"
    b_load "$b_n"
    command exec 2>>"$K_RUN/out/$k_i.e.0"
    if [ -n "$b_rest" ] || ! case $1:$b_m in chmod:-) ;; chmod:*) chmod "$b_m" "$b_tmp" ;; *) sync "$b_tmp" ;; esac; then
      b_give_up
    else
      b_good="$b_good $b_n"
    fi
  done
  b_staged=$b_good
}

# b_take_time: what is done for all steps together may take as long as all of them.
b_take_time() {
  echo "$$ $k_born $b_all_secs ${b_failed:-$k_i}+" >|"$K_RUN/current"
}

b_link() {
  b_parents root || return
  b_flush_later "${b_dir:-/}"
  case $b_kind in
    absent)
      # By another way to it something may have come to be there: a folder would take the link into it.
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
  b_parents root || return
  b_flush_later "${b_dir:-/}"
  case $b_kind:$b_recurse in
    directory:1) rm -rf "$b_path" ;;
    directory:*) rmdir "$b_path" ;;
    *) rm -f "$b_path" ;;
  esac
}

# b_prove: what was applied is flushed and looked at again, all of it at once.
b_prove() {
  [ -n "$b_done" ] || return 0
  exec 2>/dev/null
  b_take_time
  # A folder that a later step removed cannot be flushed.
  sync $b_flush || sync
  b_look $b_done
  for b_n in $b_done; do
    b_load "$b_n"
    b_out=
    b_tell now "$b_n"
    printf '%s' "$b_out$k_nonce rc $k_i 0$K_NL" >&5 || return 1
    eval "b_x=\$good_$b_n"
    if [ -n "$b_x" ]; then echo "$k_i changed 10"; else echo "$k_i failed 15"; fi >>"$K_RUN/batch"
  done
}

b_main() {
  trap k_ended TERM
  set -C
  k_found=$K_TMP/found b_all= b_done= b_failed= b_halted= b_flush= b_count=0 b_all_secs=0
  IFS=$K_NL
  for b_x in $b_data; do
    b_count=$((b_count + 1)) b_all="$b_all $b_count"
    eval "b_line_$b_count=\$b_x"
  done
  unset IFS
  for b_k in $b_all; do
    b_load "$b_k"
    b_all_secs=$((b_all_secs + b_secs))
  done
  b_look $b_all
  b_list= b_at=
  for b_k in $b_all; do
    b_load "$b_k"
    if [ "$b_w" != "$b_at" ]; then
      b_at=$b_w
      b_wave $b_list
      b_list=
    fi
    b_list="$b_list $b_k"
  done
  b_wave $b_list
  b_prove || exit 98
  [ -z "$b_failed" ] || echo "$b_failed failed 13" >>"$K_RUN/batch" || exit 98
}
b_main
