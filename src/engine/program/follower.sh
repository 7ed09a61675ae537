# The follower (POSIX sh; dash, bash, BusyBox, mksh): the shell at the node's end of a channel. It makes the run's
# folder, starts the runner or finds it alive, streams journal and output to the bastion, and receives the bastion's
# commands. Each process costs time (docs/performance.md): where a builtin can do it, use a builtin.
#
# Follows state-folder.sh. Given: k_nonce K_STATE K_RUNID K_ATTEMPT K_WHO K_NODE K_DRY K_GRANTED, k_login (user of the login),
# k_offset (bytes of the journal that the bastion has). Also k_seen: the output that it has, as
# `KEY.STREAM.CHUNK:BYTES ...`. The bastion ignores everything outside frames that begin with the nonce: it is noise of
# login shells.

export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/wrappers/bin:/run/current-system/sw/bin
umask 077
# shellcheck disable=SC3045
ulimit -Sc 0
unset CDPATH ENV IFS
K_NL='
'
# k_print TEXT: prints a line by a builtin. mksh has no printf of its own, and every user can read a program's
# arguments.
if [ -n "${KSH_VERSION-}" ]; then
  k_print() { print -r -- "$1"; }
  k_put() { print -rn -- "$2" >"$k_me/in/$1" || k_full=1; }
else
  k_print() { printf '%s\n' "$1"; }
  k_put() { printf %s "$2" >"$k_me/in/$1" || k_full=1; }
fi
k_say() { k_print "$k_nonce $1"; }
# k_refuse WHY: refuses the run. The bastion gives up this node and hangs up at this frame, so the runner gets its `fin`
# first: it must not keep the lock. A link needs no room on a full disk. Without a runner, its files only take room.
k_refuse() {
  if [ -p "${K_RUN-}/ctl" ]; then
    ln -sfn failed "$K_RUN/fin" 2>/dev/null
    [ -n "$k_alive" ] || rm -f "$K_RUN/runner" "$K_RUN/room"
  fi
  k_say "fatal $1"
}
k_fatal() {
  k_refuse "$1"
  exit 1
}

# ---- hello, and the state folder ----------------------------------------------------------------------------------------

k_lacks=
for k_tool in setsid env sha256sum stat readlink mv dd mkfifo ln rm mkdir head tail tr sed grep cat sleep date chown chmod sync; do
  command -v "$k_tool" >/dev/null 2>&1 || k_lacks="$k_lacks $k_tool"
done
[ -z "$k_lacks" ] || k_fatal "BASELINE_MISSING$k_lacks"
[ -d "$K_STATE" ] || mkdir -p "$K_STATE" 2>/dev/null
k_hello
# The runner tells the time by the seconds since then.
read -r k_up _ </proc/uptime

# ---- the run's folder --------------------------------------------------------------------------------------------------

# k_lives PID BIRTH BOOT: true if that very process lives, and not a later one with its number.
k_lives() {
  [ "$3" = "$k_boot" ] && { IFS= read -r k_stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  k_birth=$2
  set -- ${k_stat##*) }
  [ "${20}" = "$k_birth" ] && [ "$1" != Z ]
}

# k_runs RUN_ID: true if the runner of that run in this boot lives, by the locks; k_pid is empty if there was none.
k_runs() {
  k_pid=
  for k_link in "$K_STATE"/lock/*; do
    k_holder=$(readlink "$k_link")
    case $k_holder in *:"$k_boot:$1":*) ;; *) continue ;; esac
    k_pid=${k_holder%%:*} k_born=${k_holder#*:}
    ! k_lives "$k_pid" "${k_born%%:*}" "$k_boot" || return 0
  done
  return 1
}

# k_clear_out RUN_FOLDER: removes kept output. One half of a killed follower may wait: it checks whether its other half lives.
k_clear_out() {
  for k_pipe in "$1"/followers/*/poke; do [ ! -p "$k_pipe" ] || echo . 1<>"$k_pipe"; done
  rm -rf "$1/out"
}

# k_over RUN_ID: true if that run's follower, which left the mark, is dead, and so are its runner and the runner's step.
k_over() {
  { read -r k_pid k_born k_its_boot <"$K_STATE/runs/$1/mark"; } 2>/dev/null || return 1
  if k_lives "$k_pid" "$k_born" "$k_its_boot" || k_runs "$1"; then return 1; fi
  [ -n "$k_pid" ] || return 0
  k_pid=
  { read -r k_pid k_born <"$K_STATE/runs/$1/current"; } 2>/dev/null
  [ -z "$k_pid" ] || ! kill -0 "-$k_pid" 2>/dev/null
}

# The folder's name says which process this is, and for which attempt.
IFS= read -r k_stat <"/proc/$$/stat"
set -- ${k_stat##*) }
k_began=${20} k_me=$K_RUN/followers/$K_ATTEMPT.$$.${20}.$k_boot k_first=1
[ ! -d "$K_RUN" ] || k_first=
set --
for k_path in "$K_STATE/lock" "$K_STATE/runs" "$K_RUN" "$K_RUN/followers" "$k_me" "$k_me/in" "$K_RUN/tmp" "$K_RUN/blobs" "$K_RUN/out"; do
  [ -d "$k_path" ] || set -- "$@" "$k_path"
done
# Another run may have made the first two folders a moment ago.
mkdir "$@" 2>/dev/null

# Attempts (docs/runner.md): own folder, own file, then the look. Of two followers that begin at once, the lower one
# sees the higher one's file, or the higher one sees the lower one's folder. Names of equal length sort as their numbers do.
{ true >>"$K_RUN/job.$K_ATTEMPT"; } 2>/dev/null || { k_say "fatal STATE_UNUSABLE cannot make $K_RUN" && exit 1; }
for k_path in "$K_RUN"/job.*; do :; done
if [ "${k_path##*.}" != "$K_ATTEMPT" ]; then
  rm -rf "$k_me"
  k_say "fatal RUN_SUPERSEDED"
  exit 1
fi
for k_path in "$K_RUN"/followers/*; do
  k_of=${k_path##*/}
  case $k_of in "$K_ATTEMPT".*) break ;; esac
  k_of=${k_of#*.} k_pid=${k_of%%.*} k_of=${k_of#*.}
  while k_lives "$k_pid" "${k_of%%.*}" "${k_of#*.}"; do kill -KILL "$k_pid"; done
  # The sending half of that follower waits at the FIFO, and ends without the folder.
  { rm -rf "$k_path" && echo .; } 1<>"$k_path/poke"
done 2>/dev/null

# This file in the folder shows that a follower lives, so that this run may be about to take the lock.
{ echo "$$ $k_began $k_boot" >"$K_RUN/mark"; } 2>/dev/null || k_fatal "STATE_UNUSABLE cannot make $K_RUN"

# Clear the remains of dead runs: their secrets and blobs at once. A run that ended regularly has left its journal
# alone.
for k_path in "$K_STATE"/runs/*/mark; do
  k_path=${k_path%/mark}
  if [ "$k_path" = "$K_RUN" ] || [ ! -d "$k_path" ] || ! k_over "${k_path##*/}"; then continue; fi
  # All but journal and attempts; the mark last, so that a kill in between leaves nothing unseen.
  k_clear_out "$k_path"
  # Changes outside of the run's folder are undone (peer-transfer.sh).
  [ ! -f "$k_path/undo" ] || (. "$k_path/undo") || continue
  rm -rf "${k_path:?}"/[!jm]* && rm -f "$k_path/mark"
done
# Of more than thirty run folders, only the newest twenty and those of unfinished runs (with a mark) stay.
set -- "$K_STATE"/runs/*
if [ $# -gt 30 ]; then
  k_count=0
  set --
  for k_old in $(ls -t "$K_STATE/runs"); do
    k_count=$((k_count + 1))
    [ "$k_count" -le 20 ] || [ -s "$K_STATE/runs/$k_old/mark" ] || set -- "$@" "${K_STATE:?}/runs/$k_old"
  done
  rm -rf "$@"
fi

# ---- the runner: alive already, or started now ---------------------------------------------------------------------------

k_alive= k_start=0
if [ -p "$K_RUN/ctl" ]; then
  ! k_runs "$K_RUNID" || k_alive=1
  # An earlier follower may have started a runner a moment ago that has not got the lock yet.
  if [ -z "$k_alive" ] && [ -e "$K_RUN/launched" ]; then sleep 1 && k_runs "$K_RUNID" && k_alive=1; fi
fi
if [ -z "$k_alive$k_first" ]; then
  k_clear_out "$K_RUN"
  rm -rf "$K_RUN/ctl" "$K_RUN"/seg.* "$K_RUN"/blobs/* "$K_RUN/fin" "$K_RUN/stop" "$K_RUN/aborted" "$K_RUN/runner" "$K_RUN/launched" "$K_RUN/pid" "$K_RUN/over"
  mkdir "$K_RUN/out"
fi
set -- "$k_me/poke"
# The runner has FIFOs for the output of steps from here: one mkfifo less (runner.sh, k_start_readers).
[ -p "$K_RUN/ctl" ] || set -- "$@" "$K_RUN/ctl" "$K_RUN"/out/o.fifo "$K_RUN"/out/o.steps "$K_RUN"/out/e.fifo "$K_RUN"/out/e.steps
mkfifo "$@" && { true >>"$K_RUN/journal" && echo $$ >"$K_RUN/attached"; } 2>/dev/null || k_fatal "STATE_UNUSABLE cannot write to $K_RUN"
exec 6<>"$k_me/poke"
k_wake() { [ ! -p "$K_RUN/ctl" ] || echo . 1<>"$K_RUN/ctl"; }
k_leave() {
  [ -z "$k_streamer" ] || kill "$k_streamer" 2>/dev/null
  [ ! -d "$k_me" ] || rm -rf "$k_me"
  # A shell that is being forked at this moment forgets the signal.
  echo . >&6
  { read -r k_attached <"$K_RUN/attached"; } 2>/dev/null && [ "$k_attached" = $$ ] && true >"$K_RUN/attached"
  k_wake
}
k_streamer=
trap k_leave EXIT
trap 'exit 1' HUP TERM PIPE

if [ -z "$k_alive" ]; then
  # A power cut tears the journal: bytes that were never written read as NUL, or the file is shorter than the bastion's
  # copy. Line feeds take their places, so that offsets stay and every line has an end.
  if [ -s "$K_RUN/journal" ]; then
    [ "$(tr -d '\000' <"$K_RUN/journal" | wc -c)" -eq "$(stat -c %s "$K_RUN/journal")" ] ||
      { tr '\000' '\n' <"$K_RUN/journal" >"$K_RUN/journal.new" && mv -f "$K_RUN/journal.new" "$K_RUN/journal"; } || k_fatal "STATE_UNUSABLE cannot mend $K_RUN/journal"
    [ "$(tail -c 1 "$K_RUN/journal" | wc -l)" -eq 1 ] || echo >>"$K_RUN/journal"
    k_start=$(stat -c %s "$K_RUN/journal")
  fi
  if [ "$k_offset" -gt "$k_start" ]; then
    dd if=/dev/zero bs=$((k_offset - k_start)) count=1 2>/dev/null | tr '\000' '\n' >>"$K_RUN/journal"
    k_start=$(stat -c %s "$K_RUN/journal")
  fi
  # The offset at which this runner's part of the journal begins, after the parts of earlier runners.
  if [ "$k_start" != 0 ] || [ -e "$K_RUN/start" ]; then echo "$k_start" >"$K_RUN/start"; fi
  k_say "runner new $k_start"
else
  { read -r k_start <"$K_RUN/start"; } 2>/dev/null
  k_say "runner alive $k_start"
  k_wake
fi

k_launch() {
  [ -z "$k_alive" ] || return 0
  # Reserves the room that the runner needs to end on a disk that fills up later, or refuses the run.
  { echo "$$ 0" >"$K_RUN/beat" && printf %16384s . >"$K_RUN/room" && echo "$k_clock ${k_up%%.*}" >"$K_RUN/launched"; } 2>/dev/null || { k_lost; return 0; }
  k_alive=1
  # Steps find the same environment with every kind of login (docs/states.md); SUDO_USER is the login's user, as with
  # sudo(8).
  k_home=~root
  set -- env -i ${K_LEASE:+"K_LEASE=$K_LEASE"} "HOME=$k_home" USER=root LOGNAME=root SHELL=/bin/sh LANG=C.UTF-8 TERM=dumb
  [ "$k_login" = root ] || set -- "$@" "SUDO_USER=$k_login"
  # logind may kill all processes of a login that is not root's when it ends (KillUserProcesses).
  if [ "$k_login" != root ] && [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then
    systemd-run -Gu"kcore-run-$K_RUNID-$$" "$@" /bin/sh "$K_RUN/runner" >/dev/null 2>&1 || k_fatal "RUNNER_FAILED systemd-run"
  else
    setsid "$@" /bin/sh "$K_RUN/runner" </dev/null >/dev/null 2>&1 6>&- &
  fi
}

# ---- towards the bastion: the journal's lines, and the output of steps --------------------------------------------------

# k_send KEY: sends the new output of this step. Complete pieces come in their order (runner.sh, k_reader); of a small one
# the bastion has all or nothing. Then come the chunks that grow. Names are never searched for: a run may keep the
# output of many steps.
k_send() {
  k_base=$K_RUN/out/$1 k_next_o= k_next_e=
  {
    while read -r k_number; do
      case $k_number in o.*) k_next_o=o.$((${k_number#o.} + 1)) ;; *) k_next_e=e.$((${k_number#e.} + 1)) ;; esac
      case $k_number in *?0000[01]?) case $k_seen in *" $1.$k_number:"*) continue ;; esac ;; esac
      k_piece "$k_base.$k_number"
    done <"$k_base.order"
  } 2>/dev/null
  for k_number in o.0 e.0 $k_next_o $k_next_e; do
    case $k_number in *?0000[01]?) ;; *) k_piece "$k_base.$k_number" ;; esac
  done
}

# k_piece FILE: sends the new bytes of a piece, as a frame with its length.
k_piece() {
  [ -s "$1" ] || return 0
  k_id=${1##*/}
  k_have=0
  case $k_seen in *" $k_id:"*) k_have=${k_seen##*" $k_id:"} k_have=${k_have%% *} ;; esac
  k_size=$(stat -c %s "$1" 2>/dev/null) || return 0
  [ "$k_size" -gt "$k_have" ] || return 0
  k_lost=0
  { read -r k_lost <"${1%.*}.lost"; } 2>/dev/null
  k_say "out $k_id $k_have $((k_size - k_have)) $k_lost"
  if [ "$k_have" = 0 ]; then
    head -c "$k_size" "$1"
  else
    tail -c +$((k_have + 1)) "$1" | head -c $((k_size - k_have))
  fi
  echo
  k_seen="$k_seen $k_id:$k_size "
}

# k_forward LINE: sends a line of the journal to the bastion; false after the runner's last word, `bye` or `lock held`.
k_forward() {
  case $1 in
    *"$k_nonce start "*) k_open=${1#*"$k_nonce start "} k_open=${k_open%% *} ;;
    *"$k_nonce end "*) k_rest=${1#*"$k_nonce end "} && k_send "${k_rest%% *}" ;;
    *"$k_nonce bye "*) [ -z "$k_open" ] || k_send "$k_open" ;;
  esac
  case $1 in
    "$k_nonce bye "* | "$k_nonce lock held "*)
      [ "$k_at" -le "$k_start" ] || {
        # The bastion has everything before the last word, so only journal and attempts stay. Clear up before the last word,
        # because the bastion hangs up at it. The receiving half discards further commands.
        { true >"$K_RUN/over"; } 2>/dev/null
        rm -rf "$K_RUN/ctl" "${K_RUN:?}"/[!j]*
        k_print "$1"
        return 1
      }
      ;;
  esac
  k_print "$1"
}

k_stream() {
  k_open= k_part= k_caught_up= k_last= k_seen=" $k_seen " k_at=$k_offset
  exec 4<"$K_RUN/journal"
  # An earlier follower may have reported the start of the running step.
  [ "$k_offset" = 0 ] || { read -r _ _ _ k_open <"$K_RUN/current"; } 2>/dev/null
  [ "$k_offset" = 0 ] || dd bs="$k_offset" count=1 iflag=fullblock <&4 >/dev/null 2>&1
  while :; do
    k_many=0
    while IFS= read -r k_line <&4; do
      k_line=$k_part$k_line k_part=
      k_at=$((k_at + ${#k_line} + 1))
      k_forward "$k_line" || return 0
      # A shell reads byte by byte, so after many lines a block is read at once, and split, which costs a shell least.
      # Earlier parts of the journal may have empty lines from mending, so there it reads lines.
      if [ $((k_many += 1)) -gt 20 ] && [ "$k_at" -ge "$k_start" ]; then
        k_many=0
        set -f
        IFS=$K_NL
        set -- $(dd bs=65536 count=1 <&4 2>/dev/null)
        unset IFS
        set +f
        # The shell drops the block's last line end: without one, the last line is only a beginning.
        k_line=
        read -r _ k_end </proc/self/fdinfo/4
        while [ $# -gt 0 ]; do
          if [ $((k_at + ${#1})) = "$k_end" ]; then k_part=$1 && break; fi
          k_at=$((k_at + ${#1} + 1))
          k_forward "$1" || return 0
          shift
        done
      fi
    done
    k_part=$k_part$k_line
    [ -z "$k_open" ] || k_send "$k_open"
    # The bastion now has all events from before this follower.
    [ -n "$k_caught_up" ] || { k_caught_up=1 && k_say told; }
    [ -z "$k_last" ] || return 0
    read -r _ <&6
    # The receiving half has ended; or another follower has cleared up, and the last word is still to be sent.
    [ -d "$k_me" ] && kill -0 $$ 2>/dev/null || k_last=1
  done
}

# ---- from the bastion ----------------------------------------------------------------------------------------------------

# k_on: true while the run is not over. Its files may vanish at any moment, so callers check before and after a write.
k_on() {
  [ -p "$K_RUN/ctl" ] && [ ! -e "$K_RUN/over" ]
}

# k_tell FILE TEXT: leaves a command for the runner.
k_tell() {
  k_on || return 0
  # Written over existing bytes, which needs no room on a full disk. A link needs no room either, and the end of the run
  # must arrive.
  { echo "$2" 1<>"$K_RUN/$1"; } 2>/dev/null || [ "$1" != fin ] || ln -sfn "$2" "$K_RUN/fin"
  k_on || rm -f "$K_RUN/$1"
}

# k_whole NAME: checks the line with the nonce after a piece of stdin that was read by its length. If the connection broke
# or another program reads our stdin, this line is not in its place: nothing of the piece may run.
k_whole() {
  IFS= read -r k_mark && [ "$k_mark" = "$k_nonce" ] || k_fatal "DAMAGED $1"
}

# k_lost: refuses the run if its folder cannot be written to; always fails.
k_lost() {
  ! k_on || k_refuse "STATE_UNUSABLE cannot write to $K_RUN"
  return 1
}

# k_take FILE LENGTH: appends the next LENGTH bytes of stdin to FILE; false if FILE cannot be written.
k_take() {
  # A block of more than a pipe holds costs dd fresh memory: measured, twice the CPU.
  set -- "$1" "$2" 1
  [ $(($2 % 65536)) != 0 ] || set -- "$1" 65536 $(($2 / 65536))
  # The bytes are read from stdin in any case, because none of them may be taken for a command.
  if { true >>"$1"; } 2>/dev/null; then
    dd bs="$2" count="$3" iflag=fullblock >>"$1" 2>/dev/null
  else
    dd bs="$2" count="$3" iflag=fullblock >/dev/null 2>&1 && false
  fi
  k_ended=$?
  k_whole "${1##*/}"
  [ "$k_ended" = 0 ] || k_lost
}

# k_kill: sends k_sig to the group of the running step, if its process is still the same; fails when the run is over.
k_kill() {
  [ -e "$K_RUN/ctl" ] || return 1
  { read -r k_pid k_born _ <"$K_RUN/current"; } 2>/dev/null && [ -n "$k_pid" ] || return 0
  { IFS= read -r k_stat <"/proc/$k_pid/stat"; } 2>/dev/null || return 0
  set -- ${k_stat##*) }
  # A step that is being forked at this moment has no group yet: that is no reason to give up on it.
  [ "${20}" != "$k_born" ] || kill "-$k_sig" "-$k_pid" || :
}

# k_gone: tells the bastion when the runner died without its last word, so that a new one can take over. If the last
# word is in the journal, the sending half sends it, after all output before it.
k_gone() {
  { read -r k_pid k_born <"$K_RUN/pid"; } 2>/dev/null && [ -n "$k_alive" ] && k_on || return 0
  ! k_lives "$k_pid" "$k_born" "$k_boot" || return 0
  # The runner's last word may have come in the meantime.
  k_on || return 0
  [ "$(stat -c %s "$K_RUN/journal")" -le "${k_start:-0}" ] ||
    case $(tail -n 1 "$K_RUN/journal") in "$k_nonce bye "* | "$k_nonce lock held "*) return 0 ;; esac
  k_alive=
  rm -f "$K_RUN/pid" "$K_RUN/runner"
  k_clear_out "$K_RUN"
  mkdir "$K_RUN/out"
  k_say gone
}

k_beats=0
k_listen() {
  while IFS= read -r k_cmd; do
    set -- $k_cmd
    case ${1:-} in
      beat)
        k_beats=$((k_beats + 1))
        k_tell beat "$$ $k_beats"
        # After a long silence the runner counted this follower as gone: attach it again.
        [ -s "$K_RUN/attached" ] || k_tell attached $$
        k_gone
        ;;
      runner) # BYTES: the runner's text, and its first segment in it
        k_to=$K_RUN/runner
        [ -z "$k_alive" ] || k_to=/dev/null
        if k_take "$k_to" "$2" && [ -z "$k_alive" ]; then k_launch; fi
        k_on || rm -f "$K_RUN/runner"
        ;;
      seg) # NUMBER BYTES
        ! k_take "$k_me/seg.$2" "$3" || mv -f "$k_me/seg.$2" "$K_RUN" 2>/dev/null || k_lost
        k_on || rm -f "$K_RUN/seg.$2"
        ;;
      part) # NAME BYTES OFFSET: of a blob
        [ "$4" != 0 ] || rm -f "$k_me/in/$2"
        k_take "$k_me/in/$2" "$3"
        ;;
      sum) # NAME SHA256: of the whole blob
        case $(sha256sum <"$k_me/in/$2") in
          "$3 "*) ;;
          *) ! k_on || k_fatal "DAMAGED blob" ;;
        esac 2>/dev/null
        ;;
      texts) # BYTES: blobs as sh writes them, `k_put NAME 'CONTENT'` each
        k_text=$(dd bs="$2" count=1 iflag=fullblock 2>/dev/null) k_full=
        k_whole texts
        eval "$k_text" 2>/dev/null
        # Half a text must never count as a whole one.
        [ -z "$k_full" ] || { rm -rf "$k_me/in" && k_lost; }
        ;;
      blobs) # puts all earlier blobs in their places
        set -- "$k_me"/in/*
        [ ! -e "$1" ] || mv -f "$@" "$K_RUN/blobs/" 2>/dev/null || k_lost
        ;;
      confirm) # KEY: the connection is newer than the change of that step on trial (trial-runner.sh, k_trial)
        { read -r k_asked_step <"$K_STATE/trial/asked" && [ "$k_asked_step" = "$2" ] && ln -s confirmed "$K_STATE/trial/decision"; } 2>/dev/null
        ;;
      stop) k_tell stop '' ;;
      abort)
        k_tell stop ''
        k_tell aborted ''
        # Repeated each second, because a step may be about to start; no further step can.
        (for k_sig in TERM TERM TERM TERM TERM KILL; do k_kill && sleep 1; done) >/dev/null 2>&1 &
        ;;
      fin) # OUTCOME: a waiting runner ends with it
        if [ -n "$k_alive" ]; then
          k_tell fin "$2"
        else
          # The runner has ended and its last word was lost: only journal and attempts of the run stay.
          [ -e "$K_RUN/launched" ] || [ -s "$K_RUN/current" ] || rm -rf "$K_RUN/ctl" "${K_RUN:?}"/[!j]*
          k_say gone
        fi
        ;;
    esac
    k_wake
  done
}

k_stream &
k_streamer=$!
k_listen
