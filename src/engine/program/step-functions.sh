# The functions that the texts of modules may call (POSIX sh; dash, bash, BusyBox, mksh). A step's own shell has them
# before step.sh; look.sh has them when a step needs them. A text's facts and refusal go to fd 3.
#
# Given: k_nonce, k_key (key of the step), k_unsure, k_have, and fd 5 (the journal) where there is one.

K_NL='
'

# mksh has no printf of its own. Every user can read a program's arguments, and the kernel limits their length.
if [ -n "${KSH_VERSION-}" ]; then
  printf() {
    case $1 in *%[!s]* | *\\*\\*) command printf "$@" && return 0 || return 1 ;; esac
    k_fmt=$1
    shift
    while :; do
      k_pr=${k_fmt%\\n} k_pf= k_pn=-rn
      [ "$k_pr" = "$k_fmt" ] || k_pn=-r
      while case $k_pr in *%s*) ;; *) false ;; esac do
        k_pf=$k_pf${k_pr%%%s*}${1-} k_pr=${k_pr#*%s}
        [ $# = 0 ] || shift
      done
      print "$k_pn" -- "$k_pf$k_pr" || return 1
      [ $# -gt 0 ] || return 0
    done
  }
fi

# k_esc VALUE: k_escaped = VALUE on one line (back slash and line break escaped), the form in which facts travel.
k_esc() {
  k_escaped=$1
  case $k_escaped in *\\* | *"$K_NL"*) ;; *) return 0 ;; esac
  k_rest=$k_escaped k_escaped=
  while :; do
    case $k_rest in
      *\\* | *"$K_NL"*)
        k_head=${k_rest%%\\*}
        case $k_head in
          *"$K_NL"*) k_head=${k_head%%"$K_NL"*} k_escaped=$k_escaped$k_head'\n' k_rest=${k_rest#*"$K_NL"} ;;
          *) k_escaped=$k_escaped$k_head'\\' k_rest=${k_rest#*\\} ;;
        esac
        ;;
      *) k_escaped=$k_escaped$k_rest && return 0 ;;
    esac
  done
}

# fact NAME VALUE: reports one found fact.
fact() {
  k_esc "$2"
  # A fact lost to a full disk would look like a difference, so the step fails.
  printf 'F %s=%s\n' "$1" "$k_escaped" >&3 || exit 98
}

# refuse CODE TEXT: ends this text; the step fails with problem CODE. The first line of TEXT is its message.
refuse() {
  k_esc "$2"
  printf 'R %s %s\n' "$1" "$k_escaped" >&3
  exit 99
}

# note TEXT: reports one line of progress.
note() {
  k_esc "$1"
  # A step that runs as another user has no journal: its notes are output.
  { printf '%s note %s %s\n' "$k_nonce" "$k_key" "$k_escaped" >&5; } 2>/dev/null || printf '%s\n' "$1"
}

# wiping GRANT: reports that the granted wipe begins here, unless GRANT is empty; GRANT is its fingerprint, or the whole
# grant.
wiping() {
  [ -z "$1" ] || printf '%s wiping %s %s\n' "$k_nonce" "$k_key" "$1" >&5
}

# had NAME: prints the fact's value from before apply; fails if the probe did not report the fact.
had() {
  case $k_have in
    *"$K_NL$1="*) k_value=${k_have#*"$K_NL$1="} && printf '%s\n' "${k_value%%"$K_NL"*}" ;;
    *) return 1 ;;
  esac
}

# have CMD: true if CMD can be run.
have() {
  command -v "$1" >/dev/null 2>&1
}

# unsure: true in a dry run after a step that would change: that step may make the missing thing. A probe then ends with
# exit 1 instead of refusing, and the step is unknown.
unsure() {
  [ -n "$k_unsure" ]
}

# kind_of PATH: kind = absent, symlink, file, directory or special. Links are not followed.
kind_of() {
  if [ -L "$1" ]; then
    kind=symlink
  elif [ -f "$1" ]; then
    kind=file
  elif [ -d "$1" ]; then
    kind=directory
  elif [ -e "$1" ]; then
    kind=special
  else
    kind=absent
  fi
}

# k_equal: true if every line of k_want is in k_facts.
k_equal() {
  k_rest=$k_want
  while [ -n "$k_rest" ]; do
    case $k_facts in *"$K_NL${k_rest%%"$K_NL"*}$K_NL"*) ;; *) return 1 ;; esac
    case $k_rest in *"$K_NL"*) k_rest=${k_rest#*"$K_NL"} ;; *) k_rest= ;; esac
  done
}
