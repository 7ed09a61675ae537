# Reads a node's lock (docs/runner.md, The lock), for the runner and for `kcore node unlock` (POSIX sh). Given: K_STATE
# K_BOOT_ID.

# k_birth PID: k_born = start time of a living process (proc(5), field 22), fails if there is none or it is a zombie.
k_birth() {
  { IFS= read -r k_stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${k_stat##*) }
  case $1 in Z | X) return 1 ;; esac
  k_born=${20}
}

# k_highest: k_top = the highest generation of the lock, 0 if there is none.
k_highest() {
  k_top=0
  for k_link in "$K_STATE"/lock/*; do
    k_generation=${k_link##*/}
    case $k_generation in '' | *[!0-9]*) continue ;; esac
    [ "$k_generation" -le "$k_top" ] || k_top=$k_generation
  done
}

# k_held PID:BIRTH:BOOT:RUN:WHO: true while that runner, or the process group of the step it left, lives in this boot.
# k_by = runner or step, the one that lives; k_rest = RUN:WHO; k_hpid = its process.
k_held() {
  case $1 in *:*:"$K_BOOT_ID":*) ;; *) return 1 ;; esac
  k_rest=${1#*:*:*:} k_by=runner
  k_hpid=${1%%:*} k_hborn=${1#*:}
  if k_birth "$k_hpid" && [ "$k_born" = "${k_hborn%%:*}" ]; then return 0; fi
  k_by=step
  { read -r k_hpid k_hborn _ <"$K_STATE/runs/${k_rest%%:*}/current"; } 2>/dev/null || return 1
  [ -n "$k_hpid" ] || return 1
  if k_birth "$k_hpid"; then [ "$k_born" = "$k_hborn" ]; else kill -0 "-$k_hpid" 2>/dev/null; fi
}
