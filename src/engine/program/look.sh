# What `kcore ping`, `facts` and `exec` give to the node's shell (POSIX sh; dash, bash, BusyBox, mksh): it leaves nothing there, and
# needs no room. Given: k_nonce.

export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nix/var/nix/profiles/default/bin:/run/wrappers/bin:/run/current-system/sw/bin
unset CDPATH ENV IFS

# k_facts TEXT: the node's facts, a frame each.
k_facts() {
  # Facts come as lines “F NAME=VALUE” at descriptor 3, of the shell (step.sh) and of awk.
  (eval "$1") 3>&1 </dev/null >/dev/null 2>&1 |
    while IFS= read -r k_x; do
      case $k_x in 'F '*) printf "%s fact facts %s\n" "$k_nonce" "${k_x#F }" ;; esac
    done
}

# k_exec TEXT: a command in a group of its own, so that it can be ended; stdin, stdout and stderr are its own from the frame raw on.
k_exec() {
  command -v setsid >/dev/null 2>&1 || {
    echo "$k_nonce fatal BASELINE_MISSING setsid"
    exit 1
  }
  exec 3<&0
  # Not as arguments, which everybody on the node may read.
  k_n=$k_nonce k_t=$1 setsid /bin/sh -c 'exec 3<&-; n=$k_n t=$k_t; unset k_n k_t LC_ALL; export LANG=C.UTF-8; echo "$n" raw $$; echo "$n" >&2; eval "$t"' <&3 &
  exec </dev/null 3<&-
  wait $!
}

# k_end PID: ends that group, by force where it does not end by itself.
k_end() {
  kill -TERM "-$1" || return 0
  for k_x in 1 2 3 4 5; do
    sleep 1
    kill -0 "-$1" || return 0
  done
  kill -KILL "-$1"
}

# k_birth PID: k_born = start time of a living process (proc(5), field 22).
k_birth() {
  { IFS= read -r k_s <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${k_s##*) }
  case $1 in Z | X) return 1 ;; esac
  k_born=${20}
}

# k_holder: k_held = who holds the node (docs/runner.md, The lock): its runner lives, or the step that one left; k_group = that step's group.
k_holder() {
  k_top=0 k_held= k_group=
  for k_l in "$K_STATE"/lock/*; do
    k_n=${k_l##*/}
    case $k_n in '' | *[!0-9]*) continue ;; esac
    [ "$k_n" -le "$k_top" ] || k_top=$k_n
  done
  k_held=$(readlink "$K_STATE/lock/$k_top") || return 1
  { read -r k_boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
  case $k_held in *:*:"$k_boot":*) ;; *) return 1 ;; esac
  k_pid=${k_held%%:*} k_rest=${k_held#*:} k_run=${k_held#*:*:*:}
  K_RUN=$K_STATE/runs/${k_run%%:*}
  { read -r k_group k_gborn k_x <"$K_RUN/current"; } 2>/dev/null
  # The number may be another's by now.
  if [ -n "$k_group" ] && k_birth "$k_group" && [ "$k_born" != "$k_gborn" ]; then k_group=; fi
  if k_birth "$k_pid" && [ "$k_born" = "${k_rest%%:*}" ]; then return 0; fi
  k_pid=
  [ -n "$k_group" ] && kill -0 "-$k_group" 2>/dev/null
}

# k_unlock STATE RUN LOOK: ends the run that holds the node; only RUN, unless that is empty. LOOK: only says who it is.
k_unlock() {
  K_STATE=$1
  k_holder || {
    echo "$k_nonce holder"
    return 0
  }
  k_first=$k_held
  echo "$k_nonce holder $k_held"
  k_run=${K_RUN##*/}
  [ -z "$3" ] && case $2 in '' | "$k_run") ;; *) false ;; esac || return 0
  for k_x in stop aborted; do { true >"$K_RUN/$k_x"; } 2>/dev/null; done
  { echo interrupted >"$K_RUN/fin"; } 2>/dev/null || ln -sfn interrupted "$K_RUN/fin"
  for k_x in 1 2 3 4 5 6 7 8 9 10; do
    [ ! -p "$K_RUN/ctl" ] || echo . 1<>"$K_RUN/ctl"
    [ -z "$k_group" ] || case $k_x in [1-5]) kill -TERM "-$k_group" ;; *) kill -KILL "-$k_group" ;; esac
    # One that does not hear: nothing of it starts any more.
    [ "$k_x" -lt 9 ] || [ -z "$k_pid" ] || kill -KILL "$k_pid"
    sleep 1
    if ! k_holder || [ "$k_held" != "$k_first" ]; then
      echo "$k_nonce freed"
      return 0
    fi
  done 2>/dev/null
}

echo "$k_nonce hello"
