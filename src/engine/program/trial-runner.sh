# The runner's half of changes on trial (POSIX sh; dash, bash, BusyBox, mksh; docs/runner.md, On trial). Segments with
# such a step bring these functions along (segment.ts).

# k_trial: the step `i` has ended with k_verdict and k_rc, and may be on trial. rk_KEY = the seconds in which a new connection
# has to confirm it and the steps on trial before it; - while more follow. Without a confirmation the node reverts the
# changes by itself.
k_trial() {
  eval "k_risk=\${rk_$i:-}"
  k_trial=$K_STATE/trial
  case $k_risk:$k_verdict in :* | -:ok | -:changed | -:skipped) return 0 ;; esac
  { read -r k_its_run <"$k_trial/run"; } 2>/dev/null && [ "$k_its_run" = "$K_RUNID" ] || return 0
  k_risk=$k_verdict:$k_risk
  # The guard has decided already, at the deadline or in a boot.
  case $(readlink "$k_trial/decision"):$k_verdict in
    ?*:*) ;;
    :failed) ln -s reverted "$k_trial/decision" ;;
    *)
      read -r k_up _ </proc/uptime
      echo "$((${k_up%%.*} + ${k_risk#*:}))" >"$k_trial/deadline.new" && mv -f "$k_trial/deadline.new" "$k_trial/deadline" && echo "$i" >"$k_trial/asked"
      k_event "trial $i ${k_risk#*:}"
      ;;
  esac 2>/dev/null
  until [ -L "$k_trial/decision" ]; do
    k_wait
    [ ! -e "$K_RUN/aborted" ] || ln -s reverted "$k_trial/decision" 2>/dev/null
  done
  k_verdict=${k_risk%%:*} k_decision=$(readlink "$k_trial/decision")
  k_event "trial-end $i $k_decision"
  if [ "$k_decision" = confirmed ]; then
    k_event "note $i a new connection confirmed it"
    k_remove_trial
    return
  fi
  k_await_revert
  k_seen= k_reverted="the node has gone back to what was before$k_reverted"
  if [ "$k_verdict" = failed ]; then
    k_event "note $i $k_reverted"
  else
    k_event "refused $i CONNECTIVITY_REVERTED no new connection confirmed the change within ${k_risk#*:} s: $k_reverted"
    k_verdict=failed k_rc=99
  fi
}

# k_await_revert: waits until the guard has reverted, and removes the trial's folder. k_reverted = the output of the
# revert, empty if it printed nothing.
k_await_revert() {
  until [ -e "$k_trial/over" ]; do
    # If the guard was killed, the runner reverts.
    [ -d "$k_trial/going-back" ] || /bin/sh "$k_trial/guard" now 3>&- 4>&-
    [ -e "$k_trial/over" ] || k_wait
  done
  k_reverted=
  [ ! -s "$k_trial/said" ] || { k_json "$(head -c 500 "$k_trial/said")" && k_reverted=", but: $k_escaped"; }
  k_remove_trial
}

# k_remove_trial: removes a trial that is over. The guard's file goes before the decision, so that a sleeping guard ends.
k_remove_trial() {
  { read -r k_unit <"$k_trial/boots"; } 2>/dev/null && rm -f "/etc/systemd/system/$k_unit" "/etc/systemd/system/sysinit.target.wants/$k_unit"
  rm -rf "$k_trial/guard" "$k_trial"/[0-9]*
  rm -rf "$k_trial" 2>/dev/null || rm -rf "$k_trial"
}

# k_revert_unconfirmed: at the end of a segment of a stopped run, reverts changes on trial that no connection was asked to confirm.
k_revert_unconfirmed() {
  k_trial=$K_STATE/trial
  { read -r k_its_run <"$k_trial/run"; } 2>/dev/null && [ "$k_its_run" = "$K_RUNID" ] || return 0
  ln -s reverted "$k_trial/decision" 2>/dev/null
  k_await_revert
}
