# The steps of pure data that are in order (POSIX sh; dash, bash, BusyBox, mksh): one stat and one sha256sum show it for
# many steps, without a process for each. For the runner and look.sh.
#
# Given: K_NL; k_names, k_links: a step has names of owners, or a link. A step is given by its words (batch.ts).

# k_begin_evidence: forgets all evidence, for calls of k_add_evidence.
k_begin_evidence() {
  k_stats= k_sums= k_more= k_moresums= k_proved=1 k_expected_stat=$K_NL k_expected_sums=
}

# k_take_evidence: k_ev = the output of one stat and one sha256sum over the evidence of the added steps. If all is in
# order, the output equals the expected text, and is compared as a whole (k_proved).
k_take_evidence() {
  k_ev=$K_NL k_format="m %f %n"
  [ -z "$k_names" ] || k_format="$k_format${K_NL}u %U %n${K_NL}g %G %n"
  [ -z "$k_links" ] || k_format="$k_format${K_NL}l %N"
  [ -z "$k_stats$k_more" ] || k_ev=$k_ev$(stat -c "$k_format" -- $k_stats $k_more 2>/dev/null)$K_NL
  if [ -z "$k_more" ]; then
    [ "$k_ev" = "$k_expected_stat" ] || k_proved=
  else
    case $k_ev in "$k_expected_stat"*) ;; *) k_proved= ;; esac
  fi
  case $k_links:$k_more:$k_proved in 1::1 | :*) ;; *) k_check_links $k_stats $k_more ;; esac
  [ -n "$k_sums$k_moresums" ] || return 0
  k_lines=$(sha256sum -- $k_sums $k_moresums 2>/dev/null)$K_NL
  case $k_lines in "$k_expected_sums"*) ;; *) k_proved= ;; esac
  k_ev=$k_ev$k_lines
}

# k_add_evidence TYPE WAVE KEY SECONDS OWES PATH ...: adds one step's paths, and the lines that its evidence has when it
# is in order (k_expected_stat, k_expected_sums).
k_add_evidence() {
  case $1 in [ae]) return 0 ;; esac
  if ! k_exists "$6"; then k_proved= && return 0; fi
  k_file=
  if [ "$1" = f ]; then
    if [ -f "$6" ]; then k_file=$6; else k_proved=; fi
  fi
  if ! k_foreseen "$@"; then k_more="$k_more $6" k_moresums="$k_moresums${k_file:+ $k_file}" && return 0; fi
  k_stats="$k_stats $6"
  [ -z "$k_file" ] || k_sums="$k_sums $6" k_expected_sums="$k_expected_sums${11}  $6$K_NL"
  case $1:$k_names in
    l:) k_expected_stat="${k_expected_stat}m a1ff $6${K_NL}l '$6' -> '$7'$K_NL" && return 0 ;;
    *:) k_expected_stat="${k_expected_stat}m $7 $6$K_NL" ;;
    *) k_expected_stat="${k_expected_stat}m $7 $6${K_NL}u $8 $6${K_NL}g $9 $6$K_NL" ;;
  esac
  [ -z "$k_links" ] || k_expected_stat="${k_expected_stat}l '$6'$K_NL"
}

# k_foreseen TYPE WAVE KEY SECONDS OWES PATH ...: true if the output of stat for this step in order is known as a
# whole.
k_foreseen() {
  case $1:$k_names:$7:$8:$9 in [df]::????:-:- | [df]:1:????:[!-]*:[!-]* | l::*) ;; *) return 1 ;; esac
}

# k_exists PATH: true if something is there, also a dangling link.
k_exists() {
  [ -e "$1" ] || [ -L "$1" ]
}

# k_check_links PATH...: reads the targets of links. BusyBox prints a target as it is, and a line break in it could
# forge lines of other paths. So each path must have its exact number of lines, or none of them counts.
k_check_links() {
  k_rest=${k_ev#?} k_each=2
  [ -z "$k_names" ] || k_each=4
  for k_link in "$@"; do
    k_count=$k_each
    while [ "$k_count" -gt 0 ]; do
      case $k_rest in *"$K_NL"*) k_rest=${k_rest#*"$K_NL"} k_count=$((k_count - 1)) ;; *) k_rest=- k_count=0 ;; esac
    done
  done
  [ -z "$k_rest" ] || k_ev=$K_NL k_proved=
}

# k_holds TYPE WAVE KEY SECONDS OWES PATH ...: true if the evidence shows the step of these words (batch.ts) in order.
k_holds() {
  [ -z "$k_proved" ] || ! k_foreseen "$@" || return 0
  case $1 in
    a) if k_exists "$6"; then return 1; else return 0; fi ;;
    e) if k_exists "$6"; then return 0; else return 1; fi ;;
    l) case $k_ev in *"${K_NL}l '$6' -> '$7'$K_NL"*) return 0 ;; *) return 1 ;; esac ;;
  esac
  case $7 in
    ?) case $k_ev in *"${K_NL}m $7"???" $6$K_NL"*) ;; *) return 1 ;; esac ;;
    *) case $k_ev in *"${K_NL}m $7 $6$K_NL"*) ;; *) return 1 ;; esac ;;
  esac
  [ "$8" = - ] || case $k_ev in *"${K_NL}u $8 $6$K_NL"*) ;; *) return 1 ;; esac
  [ "$9" = - ] || case $k_ev in *"${K_NL}g $9 $6$K_NL"*) ;; *) return 1 ;; esac
  [ "$1" = d ] || case $k_ev in *"$K_NL${11}  $6$K_NL"*) ;; *) return 1 ;; esac
}
