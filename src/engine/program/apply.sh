# The runner's half of batches (POSIX sh; dash, bash, BusyBox, mksh). One blob has this text and, after it, the library of
# the batch's shell (batch.ts). The runner asks for it when a batch is not in order, sources it, and stops reading before the library.

# k_apply: applies the steps k_todo of the batch k_all; k_in_order are those that a change may still affect. Leaves in
# k_keys the steps whose evidence has to be gathered again. False when the run is stopped.
k_apply() {
  k_data= k_wanted= k_secs=0
  for i in $k_todo; do
    k_load
    k_data=$k_data$d$K_NL
    k_want $K_BATCH $d
    set -- $d
    k_secs=$((k_secs + $4))
  done
  i=${k_todo# }
  i=${i%% *}
  k_load
  k_await_bastion
  [ -z "$k_stop" ] || return 1
  k_flush
  k_tick
  k_need $k_wanted || return 1
  k_step_n=$((k_step_n + 1))
  k_due= k_looks= as= live= sk= to=$k_secs
  tx="b_data='$k_data'$K_NL. \"\$K_RUN/blobs/$K_BATCH\""
  : >"$K_RUN/batch"
  k_child
  k_reap
  # Steps that had not begun come again. After a failure only the steps before the failed one are checked again.
  k_keys=
  for i in $k_all; do
    [ "$i" != "$k_failed" ] || break
    case "$k_in_order " in *" $i "*) k_keys="$k_keys $i" ;; esac
    case "$k_reported$k_begun " in *" $i "*) continue ;; esac
    case "$k_todo " in *" $i "*) [ -n "$k_failed" ] || k_keys="$k_keys $i" ;; esac
  done
}

# k_reap: reports how each step of the batch ended, and wakes the followers once for all of them. If the batch's shell was
# killed, the last step that had begun has failed or was stopped. Earlier steps without a proof are interrupted.
k_reap() {
  k_begun= k_reported=' ' k_mute=1
  # Status 13: the batch ran to its end, and reported which step failed.
  [ "$k_rc" != 13 ] || k_rc=0
  while read -r i k_outcome k_exit; do
    if [ "$k_outcome" = begun ]; then
      k_begun="$k_begun $i"
    else
      k_reported="$k_reported$i "
      if [ "$k_outcome" = ok ]; then k_load && k_ok; else k_end_step "$k_outcome" "$k_exit"; fi
    fi
  done <"$K_RUN/batch"
  # k_next = the failed step: the last one that had begun; if the batch's shell died between two steps, the next step.
  k_next=
  for k_key in $k_begun; do case $k_reported in *" $k_key "*) ;; *) k_next=$k_key ;; esac; done
  if [ -z "$k_next$k_failed" ] && [ "$k_rc" != 0 ]; then
    for k_key in $k_todo; do
      case $k_reported in *" $k_key "*) ;; *) k_next=$k_key && k_begun="$k_begun $k_key" && break ;; esac
    done
  fi
  # Output from before the kill belongs to the failed step.
  [ -z "$k_next" ] || [ ! -s "$K_RUN/out/batch" ] || { cat "$K_RUN/out/batch" >>"$K_RUN/out/$k_next.e.0" && : >"$K_RUN/out/batch"; }
  for k_key in $k_begun; do
    case $k_reported in *" $k_key "*) continue ;; esac
    i=$k_key
    k_outcome=interrupted
    [ "$i" != "$k_next" ] || { k_outcome=failed && [ ! -e "$K_RUN/late" ] || k_rc=timeout; }
    k_end_step "$k_outcome" "$k_rc"
  done
  k_mute= && k_poke
  [ -n "$k_seen" ] || k_outcome=changed
  [ -n "$K_DRY" ] || k_status running
}
