# The command of `kcore exec` (POSIX sh; dash, bash, BusyBox, mksh), after inspect.sh. Given: k_nonce.

# k_exec TEXT: runs a command as the leader of a process group, so that it can be ended. From the frame `raw` on, stdin,
# stdout and stderr are the command's.
k_exec() {
  # sshd makes each login's shell such a leader, and then no process is needed; sudo may not.
  if kill -0 "-$$" 2>/dev/null; then
    unset LC_ALL
    export LANG=C.UTF-8
    echo "$k_nonce raw $$"
    echo "$k_nonce" >&2
    # The command has no arguments, as in a shell of its own.
    k_text=$1
    set --
    eval "$k_text"
    exit
  fi
  command -v setsid >/dev/null 2>&1 || {
    echo "$k_nonce fatal BASELINE_MISSING setsid"
    exit 1
  }
  exec 3<&0
  # Passed in the environment, because every user of the node can read arguments.
  k_raw_nonce=$k_nonce k_raw_text=$1 setsid /bin/sh -c 'exec 3<&-; n=$k_raw_nonce t=$k_raw_text; unset k_raw_nonce k_raw_text LC_ALL; export LANG=C.UTF-8; echo "$n" raw $$; echo "$n" >&2; eval "$t"' <&3 &
  exec </dev/null 3<&-
  wait $!
}
