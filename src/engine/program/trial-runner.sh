# The runner's half of changes on trial (POSIX sh; dash, bash, BusyBox, mksh; docs/runner.md, On trial). Segments with
# such a step bring these functions along (segment.ts).

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
