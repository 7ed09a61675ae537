# The program of a step's own shell (POSIX sh; dash, bash, BusyBox, mksh). Follows step-functions.sh. The runner writes
# both, and the variables and texts of the step, to a file of the run: none of them is ever in argv or in the environment.
#
# Given: K_STATE K_RUN K_NODE K_BOOT_ID K_DRY K_GRANTED, k_key (key of the step), k_nonce, the texts kt_*, fd 5 (the
# journal). Every text runs in a subshell with stdin /dev/null and fd 3 on a file of its own.

k_looks= k_as= k_always= k_ends= k_creates= k_late= k_owes= k_attempts=1 k_interval=1 k_want= k_secrets= k_env=
kt_probe= kt_apply= kt_guard= kt_react= kt_show= kt_onlyif= kt_unless=

# k_text NAME: runs the text kt_NAME in a subshell; its facts and refusal go to $k_found, its exit status is returned. An
# operator's condition is parsed as a subshell, whose last program needs no process of its own; a syntax error ends the step.
k_text() {
  eval "k_text=\$kt_$1"
  [ "$1" != unless ] || k_text="exec >/dev/null 2>&1$K_NL$k_text"
  if [ "$k_as$1" = onlyif ] || [ "$k_as$1" = unless ]; then
    eval "(umask 022
$k_env
$k_text
)" 3>"$k_found" </dev/null
  elif [ -z "$k_as" ]; then
    (
      umask 022
      eval "$k_env"
      eval "$k_text"
    ) 3>"$k_found" </dev/null
  else
    # su gets the texts on stdin; the user it becomes can read nothing of the run's folder. The step gets a temporary
    # folder of its own, because any user can make names in /tmp.
    printf '%s\n' "$K_LIB" "k_key=$k_key k_nonce= k_as=$k_as K_DRY=$K_DRY K_NODE='$K_NODE'" "$k_secrets" "exec </dev/null 5>&-" "$k_env" "$k_text" |
      k_have=$k_have su -s /bin/sh "$k_as" -c 'umask 022; K_TMP=$(mktemp -d) && (eval "$(cat)"); s=$?; rm -rf "$K_TMP"; exit $s' 3>"$k_found" 5>&-
  fi
}

# k_read TYPE: passes the facts of the last text on to the journal as TYPE, unless that is empty, and keeps them in k_facts.
# k_code = the exit code of its command (reported-change.sh: and whether that was a change). Returns 99 if the text refused.
k_read() {
  k_facts=$K_NL k_code=
  while IFS= read -r k_line; do
    case $k_line in
      'F '*) k_facts=$k_facts${k_line#F }$K_NL && [ -z "$1" ] || printf '%s %s %s %s\n' "$k_nonce" "$1" "$k_key" "${k_line#F }" >&5 ;;
      'C '*) k_code=${k_line#C } ;;
      'R '*) printf '%s refused %s %s\n' "$k_nonce" "$k_key" "${k_line#R }" >&5 && return 99 ;;
    esac
  done <"$k_found"
}

# k_inspect TYPE: probes; 0 = in order, 1 = differs, 2 = cannot tell, 99 = refused.
k_inspect() {
  # The step keys `creates` and `unless`: if one holds, the step is in order without its probe.
  if [ -n "$k_creates" ] && { [ -e "$k_creates" ] || [ -L "$k_creates" ]; }; then return 0; fi
  if [ -n "$kt_unless" ]; then k_text unless && return 0; fi
  for k_tool in $k_tools; do
    have "${k_tool%%=*}" && continue
    [ -z "$k_unsure" ] || return 2
    printf '%s refused %s TOOL_MISSING %s\n' "$k_nonce" "$k_key" "${k_tool%%=*} is not on the node; the package ${k_tool#*=} has it" >&5
    return 99
  done
  [ -z "$k_always" ] || return 1
  k_text probe
  k_status=$?
  k_read "$1" || return 99
  [ "$k_status" = 0 ] || return 2
  k_equal
}

# k_show: reports the output of the text `show`, for the diff; at most 64 KiB.
k_show() {
  [ -n "$kt_show" ] || return 0
  printf '%s show %s ' "$k_nonce" "$k_key" >&5
  (eval "$kt_show") 3>"$k_found" 2>/dev/null </dev/null | head -c 65536 | tr -d '\000' |
    sed -e 's/\\/\\\\/g' -e 's/$/\\n/' | tr -d '\n' >&5
  echo >&5
}

# k_blobs: exit status 20 asks the runner for the blobs that are not here yet; it runs the step again when they are.
k_blobs() {
  # This pass only looks. A step that is not in order runs again, with readers for its output.
  [ -z "$k_looks" ] || exit 20
  for k_blob in $k_late; do [ -e "$K_RUN/blobs/$k_blob" ] || exit 20; done
}

# k_change TEXT: runs `apply`, after the guard, or `react`. First a reaction is owed to every step that watches this
# step: a crash in between must not forget it (docs/runner.md, Owed reactions). k_new_owed = the watchers to whom nothing was
# owed before (files.sh, nothing_done).
k_change() {
  if [ -n "$kt_guard" ] && [ "$1" = apply ]; then
    k_text guard
    k_status=$?
    k_read '' && [ "$k_status" = 0 ] || exit 13
  fi
  [ -z "$K_DRY" ] || exit 11
  [ -z "$k_owes" ] || [ -d "$K_STATE/owed" ] || mkdir -m 700 "$K_STATE/owed" || exit 13
  k_blobs
  k_new_owed=
  for k_watcher in $k_owes; do
    [ -e "$K_STATE/owed/$k_watcher" ] || k_new_owed="$k_new_owed $k_watcher"
    : >"$K_STATE/owed/$k_watcher" || exit 13
  done
  printf '%s apply %s %s\n' "$k_nonce" "$k_key" "$1" >&5
  k_text "$1"
  k_status=$?
  k_read '' || k_status=99
  printf '%s rc %s %s\n' "$k_nonce" "$k_key" "${k_code:-$k_status}" >&5
  return $k_status
}

# Exit statuses of a step's shell:
# 0 in order, 10 changed, 11 would change, 12 skipped by onlyIf, 13 failed, 14 unknown;
# 15 did not converge, 16 the probe failed, 17 an assertion that does not hold, 20 blobs are missing.
#
# k_others: true while another process of this shell's group lives.
k_others() {
  for k_file in /proc/[0-9]*/stat; do
    { IFS= read -r k_stat <"$k_file"; } 2>/dev/null || continue
    [ "${k_stat%% *}" != $$ ] || continue
    set -- ${k_stat##*) }
    case $1:$3 in [ZX]:*) ;; *:$$) return 0 ;; esac
  done
  return 1
}

# k_on_term: handles TERM. This shell, whose pid and start time stand for the group, outlives processes that ignore TERM. So
# the KILL that follows still finds its target.
k_on_term() {
  trap '' TERM
  while k_others; do sleep 1; done
  exit 143
}

k_main() {
  trap k_on_term TERM
  k_found=$K_TMP/found k_have=
  # Another user's leftover process may keep this file open: no later step may read from it.
  [ -z "$k_as" ] || k_found=$K_TMP/found-as
  k_attempts_left=$k_attempts
  [ -z "$k_looks" ] || k_attempts_left=1
  if [ -n "$kt_onlyif" ] && ! k_text onlyif; then exit 12; fi
  while :; do
    k_attempts_left=$((k_attempts_left - 1))
    # The last attempt needs no shell of its own, because no attempt comes after it.
    [ "$k_attempts_left" -gt 0 ] || k_once
    (k_once)
    k_result=$?
    # A further attempt follows a wait that does not hold yet, and a probe or change that failed; never in a dry run.
    case $k_result:$K_DRY in 1[3567]:) ;; *) exit $k_result ;; esac
    printf '%s retry %s %s\n' "$k_nonce" "$k_key" "$k_attempts_left" >&5
    sleep "$k_interval"
  done
}

# k_once: one attempt: probes, applies if the step differs, probes again. Exits with a status of the list above.
k_once() {
  k_inspect have
  case $? in
    0)
      [ -n "$k_due" ] || exit 0
      k_have=$k_facts
      [ -n "$kt_react$kt_apply" ] || exit 0
      k_what=${kt_react:+react}
      k_change "${k_what:-apply}" || exit 13
      ;;
    1)
      k_have=$k_facts
      if [ -z "$kt_apply" ]; then
        [ -z "$k_unsure" ] || exit 14
        exit 17
      fi
      k_show
      k_change apply || exit 13
      [ -z "$k_due" ] || [ -z "$kt_react" ] || k_change react || exit 13
      ;;
    2)
      [ -z "$k_unsure" ] || exit 14
      exit 16
      ;;
    *) exit 13 ;;
  esac
  # A step that ends the boot cannot look again; one without a probe has nothing to look at.
  [ -z "$k_ends" ] || exit 10
  if [ -n "$k_always" ] && [ -z "$k_creates$kt_unless" ]; then exit 10; fi
  k_inspect now
  case $? in 0) exit 10 ;; 1) exit 15 ;; 2) exit 16 ;; *) exit 13 ;; esac
}
