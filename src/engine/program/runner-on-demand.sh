# Functions of the runner (POSIX sh; dash, bash, BusyBox, mksh) that only some segments need and bring along
# (segment.ts).

# k_tools KEY COMMAND=PACKAGE...: looks for programs that no step before KEY brings, before anything is applied. In a
# dry run a change of an earlier segment may bring them: then the step itself decides.
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
    while read -r k_x k_y; do
      case $k_x in
        [rw]char:)
          k_io="$k_io $k_y"
          # In kB: some shells count to 2^31.
          case $k_y in ????*) k_kb=$((k_kb + ${k_y%???})) ;; esac
          ;;
      esac
    done <"/proc/$1/io"
    k_y=
    read -r k_y <"/proc/$1/stat"
    case ${k_y##*") "} in D*) k_disk=1 ;; esac
    for k_x in "/proc/$1/task"/*/children; do
      k_y=
      read -r k_y <"$k_x"
      set -- "$@" $k_y
    done
    shift
  done 2>/dev/null
  [ -z "$k_disk" ] || while read -r k_x k_y; do
    [ "$k_x" != nr_written ] || { k_io="$k_io $k_y" && break; }
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
  case ,${k_milestones:-}, in *",\"$k_e\","*) return 0 ;; esac
  k_milestones="${k_milestones:+$k_milestones,}\"$k_e\""
  if [ -z "$K_DRY" ]; then
    k_earlier
    case ,$k_reached, in
      *",\"$k_e\","*) ;;
      *)
        k_reached="${k_reached:+$k_reached,}\"$k_e\""
        k_print "$k_reached" >"$K_STATE/.milestones.new" && mv -fT "$K_STATE/.milestones.new" "$K_STATE/milestones"
        ;;
    esac
  fi
  k_flush
  k_event "milestone $i $ms"
  [ -n "$K_DRY" ] || k_status "$ms"
}

# k_doubt VERDICT [KEY...]: in a dry run: reports the step `i` as unknown when its verdict does not survive an earlier
# step's change (dry-run-dependencies.ts). If it survives on a condition, that is reported, too. False: the verdict
# stays. With KEYs, the step depends on those alone. a_KEY = words of the two digits of a survival (effects.ts) and the
# earlier step's key. The verdict `early` comes before the step's probe.
k_doubt() {
  eval "k_x=\${a_$i:-}"
  k_if=
  for k_w in $k_x; do
    case $#:" $* " in 1:* | *" ${k_w#??} "*) ;; *) continue ;; esac
    eval "k_y=\${o_${k_w#??}:-}"
    case $k_y in would* | unknown | *-if) ;; *) continue ;; esac
    case $k_y:${k_w%"${k_w#??}"}$1 in
      *:2?ok | *:2?skipped | would:?2would | unknown:?2would | *:??interrupted) ;;
      *-if:??early | *:[12]?early | *:?[12]early) ;;
      *:1?ok | *:?1would | *-if:??ok | *-if:??skipped | *-if:??would)
        # At most three of them are reported.
        case $k_if in *' '*' '*' '*) ;; *) k_if="$k_if ${k_w#??}" ;; esac
        ;;
      *)
        k_flush
        eval "o_$i=unknown"
        k_event "end $i unknown 14 after ${k_w#??}"
        return 0
        ;;
    esac
  done
  case $k_if:$1 in :* | *:early) return 1 ;; esac
  k_flush
  k_unsure=1
  eval "o_$i=$1-if"
  k_event "end $i $1 0 unless$k_if"
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

# k_trial: the step `i` has ended with k_x and k_rc, and may be on trial. rk_KEY = the seconds in which a new connection
# has to confirm it and the steps on trial before it; - while more follow. Without a confirmation the node reverts the
# changes by itself.
k_trial() {
  eval "k_y=\${rk_$i:-}"
  k_t=$K_STATE/trial
  case $k_y:$k_x in :* | -:ok | -:changed | -:skipped) return 0 ;; esac
  { read -r k_w <"$k_t/run"; } 2>/dev/null && [ "$k_w" = "$K_RUNID" ] || return 0
  k_y=$k_x:$k_y
  # The guard has decided already, at the deadline or in a boot.
  case $(readlink "$k_t/decision"):$k_x in
    ?*:*) ;;
    :failed) ln -s reverted "$k_t/decision" ;;
    *)
      read -r k_w k_z </proc/uptime
      echo "$((${k_w%%.*} + ${k_y#*:}))" >"$k_t/deadline.new" && mv -f "$k_t/deadline.new" "$k_t/deadline" && echo "$i" >"$k_t/asked"
      k_event "trial $i ${k_y#*:}"
      ;;
  esac 2>/dev/null
  until [ -L "$k_t/decision" ]; do
    k_wait
    [ ! -e "$K_RUN/aborted" ] || ln -s reverted "$k_t/decision" 2>/dev/null
  done
  k_x=${k_y%%:*} k_w=$(readlink "$k_t/decision")
  k_event "trial-end $i $k_w"
  if [ "$k_w" = confirmed ]; then
    k_event "note $i a new connection confirmed it"
    k_tried
    return
  fi
  k_back
  k_seen= k_w="the node has gone back to what was before$k_w"
  if [ "$k_x" = failed ]; then
    k_event "note $i $k_w"
  else
    k_event "refused $i CONNECTIVITY_REVERTED no new connection confirmed the change within ${k_y#*:} s: $k_w"
    k_x=failed k_rc=99
  fi
}

# k_back: waits until the guard has reverted, and removes the trial's folder. k_w = the guard's complaint.
k_back() {
  until [ -e "$k_t/over" ]; do
    # If the guard was killed, the runner reverts.
    [ -d "$k_t/going-back" ] || /bin/sh "$k_t/guard" now
    [ -e "$k_t/over" ] || k_wait
  done
  k_w=
  [ ! -s "$k_t/said" ] || { k_json "$(head -c 500 "$k_t/said")" && k_w=", but: $k_e"; }
  k_tried
}

# k_tried: removes a trial that is over. The guard's file goes first, so that a sleeping guard ends; the decision goes
# last.
k_tried() {
  { read -r k_z <"$k_t/boots"; } 2>/dev/null && rm -f "/etc/systemd/system/$k_z" "/etc/systemd/system/sysinit.target.wants/$k_z"
  rm -rf "$k_t/guard" "$k_t"/[0-9]*
  rm -rf "$k_t" 2>/dev/null || rm -rf "$k_t"
}

# k_untried: at the end of a segment of a stopped run, reverts changes on trial that no connection was asked to confirm.
k_untried() {
  k_t=$K_STATE/trial
  { read -r k_w <"$k_t/run"; } 2>/dev/null && [ "$k_w" = "$K_RUNID" ] || return 0
  ln -s reverted "$k_t/decision" 2>/dev/null
  k_back
}
