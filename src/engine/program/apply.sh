# The runner's half of the batch lane (POSIX sh; dash, bash, BusyBox, mksh): it stands before the lane's library and comes with
# it, when the evidence showed that some batch is not in order. The runner sources it, and stops reading before the library.

# k_apply: the steps k_todo of the batch k_all, of which k_left were in order. k_keys = what is to be looked at again; false when
# the run is stopped.
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
  k_lease
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
  # What was not begun comes again; after a failure only those before it are looked at.
  k_keys=
  for i in $k_all; do
    [ "$i" != "$k_failed" ] || break
    case "$k_left " in *" $i "*) k_keys="$k_keys $i" ;; esac
    case "$k_told$k_begun " in *" $i "*) continue ;; esac
    case "$k_todo " in *" $i "*) [ -n "$k_failed" ] || k_keys="$k_keys $i" ;; esac
  done
}

# k_reap: tells how each step of the batch ended. The last one that had begun when its shell was killed has failed, or was
# stopped; what others had done before is proved by no look, so they were interrupted.
k_reap() {
  k_begun= k_told=' '
  # It came to its end, and has told which step failed.
  [ "$k_rc" != 13 ] || k_rc=0
  while read -r i k_o2 k_x; do
    if [ "$k_o2" = begun ]; then
      k_begun="$k_begun $i"
    else
      k_told="$k_told$i "
      if [ "$k_o2" = ok ]; then k_load && k_ok; else k_end_step "$k_o2" "$k_x"; fi
    fi
  done <"$K_RUN/batch"
  # It died before it began another one: that one has failed.
  k_next=
  for k_k in $k_begun; do case $k_told in *" $k_k "*) ;; *) k_next=$k_k ;; esac; done
  if [ -z "$k_next$k_failed" ] && [ "$k_rc" != 0 ]; then
    for k_k in $k_todo; do
      case $k_told in *" $k_k "*) ;; *) k_next=$k_k && k_begun="$k_begun $k_k" && break ;; esac
    done
  fi
  # What it had printed before it was killed is that one's.
  [ -z "$k_next" ] || [ ! -s "$K_RUN/out/batch" ] || { cat "$K_RUN/out/batch" >>"$K_RUN/out/$k_next.e.0" && : >"$K_RUN/out/batch"; }
  for k_k in $k_begun; do
    case $k_told in *" $k_k "*) continue ;; esac
    i=$k_k
    k_o2=interrupted
    [ "$i" != "$k_next" ] || { k_o2=failed && [ ! -e "$K_RUN/late" ] || k_rc=timeout; }
    k_end_step "$k_o2" "$k_rc"
  done
  [ -n "$k_seen" ] || k_o2=changed
  [ -n "$K_DRY" ] || k_status running
}
