# Functions of the runner (POSIX sh; dash, bash, BusyBox, mksh) that only some segments need: those bring them along (segment.ts).

# k_tools KEY COMMAND=PACKAGE...: programs that no step before KEY brings are missed before anything is applied. In a dry run
# what an earlier segment would have changed may bring them: then the step says so itself.
k_tools() {
  i=$1
  shift
  for k_x in "$@"; do
    if [ -n "$k_stop$k_failed$k_unsure" ] || command -v "${k_x%%=*}" >/dev/null 2>&1; then continue; fi
    k_event "start $i"
    k_event "refused $i TOOL_MISSING ${k_x%%=*} is not on the node; the package ${k_x#*=} has it"
    k_end_step failed 13
  done
}

# k_stdout: passes on what the step `i` printed, for those behind it that use it.
k_stdout() {
  printf '%s stdout %s ' "$k_nonce" "$i" >&5
  cat "$K_RUN/out/$i".o.[0-9]* 2>/dev/null | head -c 65536 | tr -d '\000' |
    sed -e 's/\\/\\\\/g' -e 's/$/\\n/' | tr -d '\n' >&5
  echo >&5
}

# k_milestone: the milestone `ms` of the step `i` is reached.
k_milestone() {
  k_json "$ms"
  # Reached once, whichever of several steps brings it.
  case ,${k_milestones:-}, in *",\"$k_e\","*) return 0 ;; esac
  k_milestones="${k_milestones:+$k_milestones,}\"$k_e\""
  k_flush
  k_event "milestone $i $ms"
  [ -n "$K_DRY" ] || k_status "$ms"
}

# k_doubt VERDICT: in a dry run: tells the step `i` as unknown when its verdict does not survive what an earlier one would change, or what
# is not known of that (doubts.ts). a_KEY = words of what survives (1 in order, 2 would change) and the earlier one's key; `early` is
# asked before the step is looked at.
k_doubt() {
  eval "k_x=\${a_$i:-}"
  for k_w in $k_x; do
    eval "k_y=\${o_${k_w#?}:-}"
    case $k_y:${k_w%"${k_w#?}"}$1 in
      *:[13]ok | *:[13]skipped | *:[23]would | *:[123]early | *:?interrupted) ;;
      would:* | unknown:*)
        k_flush
        eval "o_$i=unknown"
        k_event "end $i unknown 14 after ${k_w#?}"
        return 0
        ;;
    esac
  done
  return 1
}

# k_quote TEXT: k_e = TEXT as one word of sh.
k_quote() {
  k_e= k_rest=$1
  while :; do
    case $k_rest in
      *\'*) k_e=$k_e${k_rest%%\'*}"'\\''" k_rest=${k_rest#*\'} ;;
      *) k_e="'$k_e$k_rest'" && return 0 ;;
    esac
  done
}

# k_facts TEXT: gathers the node's facts, in a shell of its own like a step.
k_facts() {
  k_flush
  printf '%s\n' "$K_LIB" "k_nonce=$k_nonce k_i=facts K_STATE='$K_STATE' K_RUN='$K_RUN' k_as= k_found='$K_RUN/tmp/found'" "$1" |
    setsid /bin/sh 8>&- >/dev/null 2>&1
  k_event "facts-end"
}
