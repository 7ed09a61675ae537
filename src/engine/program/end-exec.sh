# Ends the command of `kcore exec` (POSIX sh; dash, bash, BusyBox, mksh).

# k_end PID: ends that process group, after five seconds by KILL.
k_end() {
  kill -TERM "-$1" || return 0
  for k_try in 1 2 3 4 5; do
    sleep 1
    kill -0 "-$1" || return 0
  done
  kill -KILL "-$1"
}
