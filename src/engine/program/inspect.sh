# The functions that `kcore ping`, `facts` and `exec` give to the node's shell (POSIX sh; dash, bash, BusyBox, mksh).
# They leave nothing there and need no room. Given: k_nonce.

export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nix/var/nix/profiles/default/bin:/run/wrappers/bin:/run/current-system/sw/bin
unset CDPATH ENV IFS

# k_facts TEXT: prints the node's facts, a frame each.
k_facts() {
  # Facts come as lines “F NAME=VALUE” at descriptor 3, of the shell (step-functions.sh) and of awk.
  (eval "$1") 3>&1 </dev/null >/dev/null 2>&1 |
    while IFS= read -r k_line; do
      case $k_line in 'F '*) printf "%s fact facts %s\n" "$k_nonce" "${k_line#F }" ;; esac
    done
}

# k_exec TEXT: runs a command in a group of its own, so that it can be ended. From the frame `raw` on, stdin, stdout and
# stderr are the command's.
k_exec() {
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

# k_end PID: ends that process group, after five seconds by KILL.
k_end() {
  kill -TERM "-$1" || return 0
  for k_try in 1 2 3 4 5; do
    sleep 1
    kill -0 "-$1" || return 0
  done
  kill -KILL "-$1"
}

echo "$k_nonce hello"
