# Functions of the runner (POSIX sh; dash, bash, BusyBox, mksh) that only some segments need and bring along
# (segment.ts).

# k_tools KEY COMMAND=PACKAGE...: looks for programs that no step before KEY brings, before anything is applied. In a
# dry run a change of an earlier segment may bring them: then the step itself decides.
k_tools() {
  i=$1
  shift
  for k_tool in "$@"; do
    if [ -n "$k_stop$k_failed$k_unsure" ] || command -v "${k_tool%%=*}" >/dev/null 2>&1; then continue; fi
    k_event "start $i"
    k_event "refused $i TOOL_MISSING ${k_tool%%=*} is not on the node; the package ${k_tool#*=} has it"
    k_end_step failed 13
  done
}

# k_forget: forgets the steps k_portion that k_go ran, before others are declared. Later steps may ask only for the ends of steps that
# changed something, would or failed.
k_forget() {
  k_flush
  for i in $k_portion; do
    eval "k_its_outcome=\${o_$i-}"
    case $k_its_outcome in ok | skipped) unset "o_$i" ;; esac
    unset "d_$i" "nb_$i" "title_$i" "ms_$i" "tx_$i" "sk_$i" "q_$i" "early_$i" "late_$i" "big_$i" "as_$i" "rs_$i" "ch_$i" "fo_$i" "to_$i" "live_$i" "look_$i" "rg_$i" "ck_$i" "rq_$i"
  done
}

# k_stdout: passes on the output of the step `i`, for later steps that use it.
k_stdout() {
  printf '%s stdout %s ' "$k_nonce" "$i" >&5
  cat "$K_RUN/out/$i".o.[0-9]* 2>/dev/null | head -c 65536 | tr -d '\000' |
    sed -e 's/\\/\\\\/g' -e 's/$/\\n/' | tr -d '\n' >&5
  echo >&5
}

# k_watch: sets k_limit, the time limit, to the present second once the running step has moved no byte for the seconds
# after the slash. The bytes are those of the step and all its children (proc(5), io: rchar and wchar; ended children
# count for their parent). It looks every fifth second, by builtins alone. Where the kernel shows no bytes, only the
# time limit counts. A process that waits for a disk (state D), as sync does, counts no bytes: then the kernel's writes
# count.
k_watch() {
  [ "$k_for" = "$k_watched" ] || k_watched=$k_for k_moved= k_still=0
  k_stall=${k_limit#*/} k_limit=${k_limit%/*}
  [ -z "$k_over" ] || k_limit=$k_dead
  [ "$((k_secs % 5))$k_over" = 0 ] && [ -e "/proc/$$/task/$$/children" ] || return 0
  k_io= k_kb=0 k_disk=
  set -- "$k_cpid"
  while [ $# -gt 0 ]; do
    while read -r k_counter k_bytes; do
      case $k_counter in
        [rw]char:)
          k_io="$k_io $k_bytes"
          # In kB: some shells count to 2^31.
          case $k_bytes in ????*) k_kb=$((k_kb + ${k_bytes%???})) ;; esac
          ;;
      esac
    done <"/proc/$1/io"
    k_stat=
    read -r k_stat <"/proc/$1/stat"
    case ${k_stat##*") "} in D*) k_disk=1 ;; esac
    for k_file in "/proc/$1/task"/*/children; do
      k_children=
      read -r k_children <"$k_file"
      set -- "$@" $k_children
    done
    shift
  done 2>/dev/null
  [ -z "$k_disk" ] || while read -r k_counter k_bytes; do
    [ "$k_counter" != nr_written ] || { k_io="$k_io $k_bytes" && break; }
  done </proc/vmstat
  if [ "$k_io" != "$k_moved" ]; then
    k_moved=$k_io k_still=0
  elif [ -n "$k_io" ] && [ $((k_still += 5)) -ge "$k_stall" ]; then
    k_over=stalled:$k_still:$k_kb k_dead=$k_secs k_limit=$k_secs
  fi
}

# k_milestone: records that the milestone `ms` of the step `i` is reached.
k_milestone() {
  k_json "$ms"
  # Recorded once, even if several steps bring it.
  case ,${k_milestones:-}, in *",\"$k_escaped\","*) return 0 ;; esac
  k_milestones="${k_milestones:+$k_milestones,}\"$k_escaped\""
  if [ -z "$K_DRY" ]; then
    k_read_milestones
    case ,$k_reached, in
      *",\"$k_escaped\","*) ;;
      *)
        k_reached="${k_reached:+$k_reached,}\"$k_escaped\""
        k_print "$k_reached" >"$K_STATE/.milestones.new" && mv -fT "$K_STATE/.milestones.new" "$K_STATE/milestones"
        ;;
    esac
  fi
  k_flush
  k_event "milestone $i $ms"
  [ -n "$K_DRY" ] || k_status "$ms"
}

# k_quote TEXT: k_escaped = TEXT as one word of sh.
k_quote() {
  k_escaped= k_rest=$1
  while :; do
    case $k_rest in
      *\'*) k_escaped=$k_escaped${k_rest%%\'*}"'\\''" k_rest=${k_rest#*\'} ;;
      *) k_escaped="'$k_escaped$k_rest'" && return 0 ;;
    esac
  done
}

# k_facts TEXT: gathers the node's facts, in a shell of its own like a step.
k_facts() {
  k_flush
  printf '%s\n' "$K_LIB" "k_nonce=$k_nonce k_key=facts K_STATE='$K_STATE' K_RUN='$K_RUN' k_as= k_found='$K_RUN/tmp/found'" "$1" |
    setsid /bin/sh 3>&- 4>&- 8>&- >/dev/null 2>&1
  k_event "facts-end"
}
