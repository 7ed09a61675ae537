# Ends the command of `kcore exec` (POSIX sh; dash, bash, BusyBox, mksh).

# k_end PID: sends TERM to the process group PID, and KILL if the group still lives after five seconds.
k_end() {
  kill -TERM "-$1" || return 0
  for k_try in 1 2 3 4 5; do
    sleep 1
    kill -0 "-$1" || return 0
  done
  kill -KILL "-$1"
}
