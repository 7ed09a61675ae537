# The text that `kcore node unlock` and `kcore runs abort` run on a node, after lock.sh (POSIX sh). Given: k_nonce.

{ read -r K_BOOT_ID </proc/sys/kernel/random/boot_id; } 2>/dev/null

# k_find_holder: k_holder = the runner that holds the node, as its lock names it. k_pid = that runner's process, empty if
# it died. k_group = the process group of its running step. Fails if no runner holds the node.
k_find_holder() {
  k_highest
  k_holder=$(readlink "$K_STATE/lock/$k_top") && k_held "$k_holder" || return 1
  K_RUN=$K_STATE/runs/${k_rest%%:*} k_pid= k_group=
  [ "$k_by" = step ] || k_pid=$k_hpid
  { read -r k_group k_gborn _ <"$K_RUN/current"; } 2>/dev/null
  # Another process may have the number of a step that ended.
  if k_birth "$k_group" && [ "$k_born" != "$k_gborn" ]; then k_group=; fi
}

# k_unlock STATE RUN LOOK: ends the run that holds the node; if RUN is not empty, only that run. With LOOK it only names
# the holder.
k_unlock() {
  K_STATE=$1
  k_find_holder || {
    echo "$k_nonce holder"
    return 0
  }
  k_first_holder=$k_holder
  echo "$k_nonce holder $k_holder"
  k_run=${K_RUN##*/}
  [ -z "$3" ] && case $2 in '' | "$k_run") ;; *) false ;; esac || return 0
  for k_file in stop aborted; do { true >"$K_RUN/$k_file"; } 2>/dev/null; done
  { echo interrupted >"$K_RUN/fin"; } 2>/dev/null || ln -sfn interrupted "$K_RUN/fin"
  for k_try in 1 2 3 4 5 6 7 8 9 10; do
    [ ! -p "$K_RUN/ctl" ] || echo . 1<>"$K_RUN/ctl"
    [ -z "$k_group" ] || case $k_try in [1-5]) kill -TERM "-$k_group" ;; *) kill -KILL "-$k_group" ;; esac
    # A runner that does not react is killed, so that it starts no further step.
    [ "$k_try" -lt 9 ] || [ -z "$k_pid" ] || kill -KILL "$k_pid"
    sleep 1
    if ! k_find_holder || [ "$k_holder" != "$k_first_holder" ]; then
      echo "$k_nonce freed"
      return 0
    fi
  done 2>/dev/null
}
