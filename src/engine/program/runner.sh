# The runner (POSIX sh; dash, bash, BusyBox, mksh): executes a node's segments, journals them, and outlives the
# connection. It is a process of its own. The follower (follower.sh) streams its journal to the bastion, and stores the
# bastion's commands as files: seg.N, blobs/NAME, stop, fin, attached. A line in the FIFO `ctl` only wakes the runner up
# to look again.
#
# Follows lock.sh and evidence.sh. Given: k_nonce K_STATE K_RUN K_RUNID K_ATTEMPT K_WHO K_NODE K_DRY K_GRANTED k_seg k_changed
# k_failed K_LIB (texts of step-functions.sh and step.sh).
# Also k_granted, the assignments of K_GRANTED and K_UNSAVED for the shells of steps, and k_given, a function: the
# segment with the number k_seg. After a boot also k_booted: an empty K_BOOT_ID for the shells of steps.
# Journal: one line an event, `NONCE TYPE ARGS`, only ever appended (fd 5). The runner never kills by a pid from a file
# name. Groups are killed by the shell's builtin alone, after a comparison of pid and start time.

umask 077
# shellcheck disable=SC3045
ulimit -Sc 0
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nix/var/nix/profiles/default/bin:/run/current-system/sw/bin
unset CDPATH ENV IFS
trap '' HUP
# If the follower died before this runner began, another one may have cleared its FIFO: there is no bastion to wait for.
[ -p "$K_RUN/ctl" ] || exit 1
exec 5>>"$K_RUN/journal" 8<>"$K_RUN/ctl"
read -r K_BOOT_ID </proc/sys/kernel/random/boot_id
K_FILES= k_oks= k_stop= k_ev= k_seen= k_order= k_ticker= k_step_n=0 k_readers= k_fin= k_outcome= k_second= k_short= k_mute= k_held= k_given=$k_seg
# k_print TEXT: prints a line by a builtin. mksh has no printf of its own, and every user can read a program's
# arguments.
if [ -n "${KSH_VERSION-}" ]; then
  k_print() { print -r -- "$1"; }
else
  k_print() { printf '%s\n' "$1"; }
fi
for k_key in $k_changed; do eval "o_$k_key=changed"; done

# k_event TYPE ARG...: appends an event to the journal. A step whose progress cannot be written must not continue. If the
# reserved room is used up too, the runner exits; the bastion cannot start a new one.
k_event() {
  k_print "$k_nonce $*" >&5 || {
    [ -z "$k_short" ] || exit 1
    k_full
    k_print "$k_nonce $*" >&5 || exit 1
  }
  [ -n "$k_mute" ] || k_poke
}

# k_full: the disk is full. The runner gives up the reserved room to report it, and starts no further step.
k_full() {
  k_stop=1 k_short=1
  : >"$K_RUN/room"
}

# k_poke: wakes all followers. Opening a FIFO for reading and writing never blocks, also without a reader.
k_poke() {
  for k_pipe in "$K_RUN"/followers/*/poke; do [ ! -p "$k_pipe" ] || echo . 1<>"$k_pipe"; done
}

# k_wake LINE: wakes this runner.
k_wake() {
  [ ! -p "$K_RUN/ctl" ] || echo "$1" 1<>"$K_RUN/ctl"
}

# ---- the lock (docs/runner.md): the highest generation counts and is never deleted; lock.sh reads it -------------------------

k_lock() {
  k_birth $$ || return 1
  k_me=$$:$k_born:$K_BOOT_ID:$K_RUNID:$K_WHO
  k_tries=0
  while [ $((k_tries += 1)) -le 50 ]; do
    k_highest
    k_found=$k_top k_old=
    # A plain file means that the holder released the lock.
    if [ "$k_top" != 0 ] && [ ! -f "$K_STATE/lock/$k_top" ]; then
      k_old=$(readlink "$K_STATE/lock/$k_top") || continue
      if k_held "$k_old"; then
        # An earlier runner of this run, or its step, still lives: this runner waits, since no two may work at once.
        case $k_old in *:"$K_BOOT_ID:$K_RUNID":*) k_tries=0 && sleep 1 && continue ;; esac
        k_event "lock held $k_old $(stat -c %Y "$K_STATE/lock/$k_top")"
        return 1
      fi
    fi
    k_own_generation=$((k_found + 1))
    # Another runner was faster, or the disk is full: ext4 needs a block for a link of this length.
    ln -s "$k_me" "$K_STATE/lock/$k_own_generation" 2>/dev/null || { { echo . >"$K_RUN/tmp/room"; } 2>/dev/null || k_full; continue; }
    # A runner that looked before this generation existed may have made a higher one since.
    k_highest
    if [ "$k_top" = "$k_own_generation" ]; then
      # A lock of the same run from before a reboot is still its own. Another run that stood between two steps then, for
      # example at a reboot, did not die.
      case $k_old in
        *:"$K_BOOT_ID":*) ;;
        *:"$K_RUNID":*) k_old= ;;
        *:*:*:*)
          k_rest=${k_old#*:*:*:}
          k_rest=$K_STATE/runs/${k_rest%%:*}/current
          [ ! -e "$k_rest" ] || [ -s "$k_rest" ] || k_old=
          ;;
      esac
      case $k_old in '' | free) k_event "lock mine" ;; *) k_event "lock taken-over $k_old" ;; esac
      return 0
    fi
    rm -f "$K_STATE/lock/$k_own_generation"
  done
  k_event "lock held ?:?:?:?:a race of many runs"
  return 1
}

# k_unlock FILE...: releases the lock, and removes those files and the earlier generations.
k_unlock() {
  set -C
  ! { true >"$K_STATE/lock/$((k_own_generation + 1))"; } 2>/dev/null || k_own_generation=$((k_own_generation + 1))
  set +C
  for k_link in "$K_STATE"/lock/*; do
    k_generation=${k_link##*/}
    case $k_generation in '' | *[!0-9]*) continue ;; esac
    [ "$k_generation" -ge "$k_own_generation" ] || set -- "$@" "$k_link"
  done
  rm -rf "$@"
}

# ---- waiting ---------------------------------------------------------------------------------------------------------

# k_tick: once a second checks the follower's beat and the running step's time limit, and wakes the waiting runner. Past the limit
# the step's process group gets TERM, after five seconds KILL; the step's shell outlives TERM until then (step.sh, k_on_term).
k_tick() {
  [ -z "$k_ticker" ] || return 0
  (
    exec 3>&- 4>&- 5>&-
    k_silent=0 k_last= k_for= k_secs=0
    while sleep 1; do
      kill -0 $$ 2>/dev/null || exit 0
      k_beat=
      { read -r k_beat <"$K_RUN/beat"; } 2>/dev/null
      [ "$k_beat" = "$k_last" ] || k_silent=-1 k_last=$k_beat
      # A follower without a beat for a 20th of the lease (30 s) is gone.
      [ $((k_silent += 1)) -lt $((${K_LEASE:-600} / 20)) ] || [ ! -s "$K_RUN/attached" ] || rm -f "$K_RUN/attached"
      k_cpid=
      { read -r k_cpid k_cborn k_limit k_cstep <"$K_RUN/current"; } 2>/dev/null
      if [ -n "$k_cpid" ]; then
        # A batch is one process, but each of its steps has its own time.
        [ "$k_for" = "$k_cpid $k_cstep" ] || k_for="$k_cpid $k_cstep" k_secs=0 k_over=
        k_secs=$((k_secs + 1))
        # LIMIT/STALL: such a step's segment brings its watch (runner-on-demand.sh).
        case $k_limit in */*) k_watch ;; esac
        if [ "$k_limit" != 0 ] && [ "$k_secs" -ge "$k_limit" ] && k_birth "$k_cpid" && [ "$k_born" = "$k_cborn" ]; then
          echo "${k_over:-timeout}" >>"$K_RUN/late"
          [ "$k_secs" -lt $((k_limit + 5)) ] && k_signal=TERM || k_signal=KILL
          kill "-$k_signal" "-$k_cpid"
        fi
        k_poke
      fi
      # By the open descriptor, not by name: the runner must wake up also if its folder was deleted. While a step runs, the runner
      # reads nothing, and a full FIFO would stop this loop.
      [ -n "$k_cpid" ] || echo . >&8
    done
  ) </dev/null >/dev/null 2>&1 &
  k_ticker=$!
}

k_attached() {
  { read -r k_apid <"$K_RUN/attached"; } 2>/dev/null && kill -0 "$k_apid" 2>/dev/null
}

# k_wait: sleeps until the FIFO wakes the runner, and decides how long a runner without a follower lives (the lease): ten
# minutes (K_LEASE), by the clock, because the ticks of a long step all wait in the FIFO. A follower whose connection was
# closed leaves `attached` empty: then a 40th (15 s) is enough, since a living bastion is back within seconds. A change on
# trial closes the connection on purpose, so it has the whole lease.
k_wait() {
  k_tick
  IFS= read -r _ <&8
  # The run's folder was deleted, for example with a reinstalled state folder: there is nothing to come back to.
  [ -d "$K_RUN" ] || { kill "$k_ticker" && exit 1; }
  if k_attached; then
    k_alone=
  else
    read -r k_up _ </proc/uptime
    k_up=${k_up%%.*} k_lease=${K_LEASE:-600}
    [ -n "$k_alone" ] || { k_alone=$k_up && k_event detached; }
    [ ! -e "$K_RUN/attached" ] || [ -s "$K_RUN/attached" ] || [ -e "$K_STATE/trial" ] || k_lease=$((k_lease / 40))
    [ $((k_up - k_alone)) -lt "$k_lease" ] || k_end abandoned
  fi
  [ ! -e "$K_RUN/stop" ] || k_stop=1
  k_obey_fin
}

# k_obey_fin: ends the runner when the bastion has ended the run; on a full disk the outcome is a link's target
# (follower.sh, k_tell).
k_obey_fin() {
  if [ -L "$K_RUN/fin" ]; then k_end "$(readlink "$K_RUN/fin")"; fi
  [ ! -e "$K_RUN/fin" ] || { read -r k_bye <"$K_RUN/fin" && k_end "$k_bye"; }
}

# k_await_bastion: no new step starts without a bastion that watches.
k_await_bastion() {
  [ ! -e "$K_RUN/stop" ] || k_stop=1
  k_attached || k_tick
  until k_attached || [ -n "$k_stop" ]; do k_wait; done
  k_obey_fin
}

# k_need BLOB...: asks for blobs and waits for them; fails when the run is stopped meanwhile.
k_need() {
  k_miss=
  for k_blob in "$@"; do [ -e "$K_RUN/blobs/$k_blob" ] || k_miss="$k_miss $k_blob"; done
  [ -n "$k_miss" ] || return 0
  k_event "need$k_miss"
  for k_blob in $k_miss; do
    until [ -e "$K_RUN/blobs/$k_blob" ]; do
      k_wait
      [ -z "$k_stop" ] || return 1
    done
  done
  k_event got
}

# k_end OUTCOME: the runner's last act. It removes all secrets; the journal stays until later runs prune it.
k_end() {
  k_flush
  [ -n "$K_DRY" ] || k_status "$1"
  [ -z "$k_ticker" ] || kill "$k_ticker" 2>/dev/null
  k_outcome=$1
  k_unlock "$K_RUN/blobs" "$K_RUN/tmp" "$K_RUN"/seg.* "$K_RUN/runner" "$K_RUN/program" "$K_RUN/room" "$K_RUN/current" "$K_RUN/fin" "$K_RUN/stop" "$K_RUN/aborted"
  k_event "bye $k_outcome"
  exit 0
}

# ---- status file and milestones --------------------------------------------------------------------------------------

# k_json TEXT: k_escaped = TEXT for a JSON string, with blanks for control characters.
k_json() {
  k_escaped=
  k_rest=$1
  while [ -n "$k_rest" ]; do
    k_char=${k_rest%"${k_rest#?}"}
    k_rest=${k_rest#?}
    case $k_char in '"' | '\') k_escaped=$k_escaped\\$k_char ;; [[:cntrl:]]) k_escaped="$k_escaped " ;; *) k_escaped=$k_escaped$k_char ;; esac
  done
}

# k_read_milestones: k_reached = the milestones that runs on this node have reached, as items of a JSON list. Reads them
# once.
k_read_milestones() {
  [ -n "${k_reached+x}" ] || { read -r k_reached <"$K_STATE/milestones" || k_reached=; } 2>/dev/null
}

# k_take_time: k_now = the time in UTC, from the clock that the follower left in `launched` and the seconds since then. The
# date comes from the number of days by the Gregorian calendar, whose years begin in March here.
k_take_time() {
  read -r k_at k_at_up <"$K_RUN/launched"
  k_at=$((k_at + k_up - k_at_up)) k_day=$((k_at / 86400 + 719468)) k_at=$((k_at % 86400))
  k_era=$((k_day / 146097)) k_day=$((k_day % 146097))
  k_year=$(((k_day - k_day / 1460 + k_day / 36524 - k_day / 146096) / 365))
  k_day=$((k_day - 365 * k_year - k_year / 4 + k_year / 100))
  k_month=$(((5 * k_day + 2) / 153))
  k_day=$((101 + k_day - (153 * k_month + 2) / 5)) k_month=$((101 + (k_month + 2) % 12))
  [ "$k_month" -gt 102 ] || k_year=$((k_year + 1))
  k_hour=$((100 + k_at / 3600)) k_minute=$((100 + k_at / 60 % 60)) k_at=$((100 + k_at % 60))
  k_now=$((k_year + 400 * k_era))-${k_month#1}-${k_day#1}T${k_hour#1}:${k_minute#1}:${k_at#1}Z
}

# k_status STATE: writes onboarding.log and status.json, for an operator who logs in to the node. While steps run, it writes
# status.json at most once a second, and at once for an error. The agent's part and milestones of former runs stay.
k_status() {
  read -r k_up _ </proc/uptime
  k_up=${k_up%%.*} k_later=1
  [ "$1:$k_up:${k_error:-}" = "running:$k_second" ] || { k_take_time && k_second=$k_up:${k_error:-} k_later=; }
  k_print "$k_now $K_RUNID $1 ${k_title:-}${k_error:+: $k_error}" >>"$K_STATE/onboarding.log"
  [ -z "$k_later" ] || return 0
  k_read_milestones && { read -r k_agent <"$K_STATE/agent.json" || k_agent=; } 2>/dev/null
  k_json "${k_title:-}" && k_title_json=$k_escaped
  k_json "${k_error:-}" && k_error_json=$k_escaped
  k_json "$K_NODE" && k_node_json=$k_escaped
  k_print "{\"node\":\"$k_node_json\",\"run\":\"$K_RUNID\",\"state\":\"$1\",\"step\":\"$k_title_json\",\"milestones\":[$k_reached],\"error\":\"$k_error_json\",\"updated\":\"$k_now\"${k_agent:+,\"agent\":$k_agent}}" >"$K_STATE/.status.new" &&
    mv -fT "$K_STATE/.status.new" "$K_STATE/status.json"
}

# ---- steps -----------------------------------------------------------------------------------------------------------

# k_reader STREAM: keeps that stream of all steps, one after the other. A line on fd 7 begins a step: KEY TURN LIVE. The first
# twenty pieces stay separate, in their order. Later output goes into chunks of at most 1 MiB, of which the first and the
# last LIVE stay. out/KEY.order has the order of both streams. Each attempt has its own numbers of seven digits, so that
# names sort in order.
k_reader() {
  (
    exec 3>&- 4>&- 5>&- 6<&- 8>&-
    while read -r k_of k_its_turn k_kept <&7; do
      k_base=$K_RUN/out/$k_of.$1 k_piece=$((k_its_turn * 1000000)) k_count=0 k_size="bs=65536 count=1"
      # A reader that cannot write, as on a full disk, ends: the next step must not get the rest.
      while k_file=$k_base.$k_piece && { dd $k_size of="$k_file" 2>/dev/null || exit; } && [ -s "$k_file" ]; do
        echo "$1.$k_piece" >>"$K_RUN/out/$k_of.order"
        [ $((k_count += 1)) -lt 20 ] || k_size="bs=4096 count=256"
        if [ "$k_count" -gt $((22 + k_kept)) ]; then
          k_file=$k_base.$((k_piece - k_kept - 1)) k_lost=0
          { read -r k_lost <"$k_base.lost"; } 2>/dev/null
          echo $((k_lost + $(stat -c %s "$k_file"))) >"$k_base.lost"
          rm -f "$k_file"
        fi
        k_piece=$((k_piece + 1))
      done
      k_poke
      k_wake "$1 $k_of $k_its_turn"
    done
  ) <&6 >/dev/null 2>&1 &
}

# k_start_readers: starts the two readers. Fd 3 and 4 begin a step with them; at their ends the readers end, too. All ends of
# a FIFO are opened here, first for reading and writing: no open waits for another process, which might have died.
k_start_readers() {
  set -- "$K_RUN/out/o.fifo" "$K_RUN/out/o.steps" "$K_RUN/out/e.fifo" "$K_RUN/out/e.steps"
  # The follower made them: one mkfifo less.
  [ -p "$1" ] || mkfifo "$@"
  k_readers=1
  exec 6<>"$1" 3<>"$2"
  exec 6<"$1" 7<"$2"
  k_reader o
  exec 6<>"$3" 4<>"$4"
  exec 6<"$3" 7<"$4"
  k_reader e
  exec 6<&- 7<&-
}

# k_end_readers: leaves the readers to the processes that hold their FIFOs; the readers end after these. The next readers get other
# FIFOs.
k_end_readers() {
  k_readers=
  exec 3>&- 4>&-
  rm -f "$K_RUN/out/o.fifo" "$K_RUN/out/o.steps" "$K_RUN/out/e.fifo" "$K_RUN/out/e.steps"
}

# k_write_program: writes the program of the step's shell to a file. The bytes of the last program are written over, since
# emptying the file first costs ext4 a flush; the shell reads none behind `exit`.
k_write_program() {
  for k_line in "IFS= read -r k_stat </proc/\$\$/stat; set -- \${k_stat##*) }; k_born=\${20}; echo \$\$ \$k_born ${to:-60} $i >'$K_RUN/current' || exit; set --" \
    "$K_LIB" "$K_FILES" "k_nonce=$k_nonce k_due=$k_due k_unsure=$k_unsure k_looks=$k_looks k_unique=$$-$k_step_n K_DRY=$K_DRY K_NOW=$k_time" \
    "K_RUN='$K_RUN' K_STATE='$K_STATE' K_TMP='$K_RUN/tmp' K_NODE='$K_NODE' K_BOOT_ID=${k_booted-$K_BOOT_ID}" \
    "$k_granted" "$k_lib" \
    "$k_sk" "$tx" exit; do k_print "$k_line" || return 1; done 1<>"$K_RUN/program"
}

# k_child: runs one step in a session of its own; sets k_rc.
k_child() {
  [ ! -e "$K_RUN/late" ] || rm -f "$K_RUN/late"
  if [ -n "$live" ]; then
    # If blobs had to be sent first, the step starts a second time: its first output is removed.
    [ "$k_turn" = 0 ] || rm -f "$K_RUN/out/$i".[oe].*
    k_turn=$((k_turn + 1))
    [ -n "$k_readers" ] || k_start_readers
    # The step opens its end for writing alone, by way of /proc: a process that outlives the readers must get its SIGPIPE.
    exec 6<>"$K_RUN/out/o.fifo" 7<>"$K_RUN/out/e.fifo"
    k_print "$i $k_turn $live" >&3
    k_print "$i $k_turn $live" >&4
    k_out=/proc/self/fd/6 k_err=/proc/self/fd/7
  elif [ -n "$k_looks" ]; then
    k_out=/dev/null k_err=/dev/null
  else
    k_out=$K_RUN/out/$i.o.0 k_err=$K_RUN/out/$i.e.0
  fi
  k_time=
  [ -z "$k_epoch" ] || { read -r k_run_s k_idle </proc/uptime && k_time=$((k_epoch + ${k_run_s%%.*} - k_epoch_up)); }
  # The step itself writes its pid first, so that it holds the lock even if this runner dies at this moment.
  k_lib=
  k_sk=
  [ -z "$sk" ] || eval "k_sk=\$kx_$sk"
  [ -z "$as" ] || { k_quote "$K_LIB$K_NL$K_FILES" && k_lib="K_LIB=$k_escaped"; }
  k_write_program || { k_full && k_write_program; } || exit 1
  setsid /bin/sh "$K_RUN/program" >"$k_out" 2>"$k_err" </dev/null 3>&- 4>&- 5>&5 6>&- 7>&- 8>&- &
  k_pid=$!
  k_birth "$k_pid" && printf '%s %s %s %s\n' "$k_pid" "$k_born" "${to:-60}" "$i" >"$K_RUN/current"
  wait "$k_pid"
  k_rc=$?
  # Closed only now: the readers would see an end before the step has opened its own.
  exec 6>&- 7>&-
  : >"$K_RUN/current"
  if [ -n "$live" ]; then
    # The readers have all within milliseconds, unless a daemon that the step left behind holds its output open. Then these
    # readers are left to the daemon, after three seconds.
    k_until= k_left=2
    while [ "$k_left" != 0 ]; do
      read -r k_up _ </proc/uptime
      [ "${k_up%%.*}" -lt "${k_until:=$((${k_up%%.*} + 4))}" ] || { k_end_readers; break; }
      IFS= read -r k_line <&8
      case $k_line in [oe]" $i $k_turn") k_left=$((k_left - 1)) ;; esac
    done
  fi
  # A step that failed on a full disk may have lost its own message about it.
  case $k_rc in 0 | 1[0124] | 20) ;; *) { printf %16384s . >"$K_RUN/tmp/room"; } 2>/dev/null || k_full ;; esac
  for k_path in "$K_RUN"/tmp/* "$K_RUN"/tmp/.[!.]*; do
    case $k_path in */found | *'*') ;; *) rm -rf "$k_path" ;; esac
  done
}

# k_add: declares a step of the segment, described by variables (segment.ts).
# i: key; title; tx: its shell's text; sk: the shared text kx_$sk comes before it.
# Optional: q: words of the evidence; early: blobs of its probe; late: blobs of its apply; big: blobs of both that wait
# for its turn.
# as: runs as another user; rs, ch: keys of restartOn and onChanges; fo: keys of onFailure; to: time limit in seconds.
# live: last chunks of output that stay (empty: quiet); look: a first pass only probes; rg: registers its stdout; ms:
# milestone; ck: severity of a check; rq: keys of the steps that a check requires.
k_add() {
  k_order="$k_order $i"
  eval "title_$i=\$title tx_$i=\$tx sk_$i=\$sk q_$i=\$q early_$i=\$early late_$i=\$late big_$i=\$big as_$i=\$as rs_$i=\$rs"
  eval "ch_$i=\$ch fo_$i=\$fo to_$i=\$to live_$i=\$live look_$i=\$look rg_$i=\$rg ck_$i=\$ck rq_$i=\$rq ms_$i=\$ms"
  k_clear
}
k_clear() {
  title= tx= sk= d= q= early= late= big= as= rs= ch= fo= to= live= look= rg= ck= rq= ms= nb=
}
k_clear

# k_data TITLE WORD...: declares a step for batches by its data (batch.ts); nb: a new batch begins; ms.
k_data() {
  title=$1
  shift
  i=$3
  k_order="$k_order $i"
  eval "title_$i=\$title d_$i=\$* nb_$i=\$nb ms_$i=\$ms"
  nb= ms=
}

# k_load: sets the variables of the step `i`; for a step for batches only those that it has.
k_load() {
  eval "d=\$d_$i title=\$title_$i ms=\$ms_$i"
  [ -z "$d" ] || return 0
  eval "tx=\$tx_$i sk=\$sk_$i q=\$q_$i early=\$early_$i late=\$late_$i big=\$big_$i as=\$as_$i rs=\$rs_$i ch=\$ch_$i"
  eval "fo=\$fo_$i to=\$to_$i live=\$live_$i look=\$look_$i rg=\$rg_$i ck=\$ck_$i rq=\$rq_$i"
}

# k_go: runs the declared steps.
k_go() {
  k_seen=
  k_ask $k_order
  set -- $k_order
  k_portion=$k_order k_order=
  while [ $# -gt 0 ]; do
    i=$1
    k_load
    shift
    if [ -z "$d" ]; then
      k_step
      continue
    fi
    k_keys=$i
    while [ $# -gt 0 ]; do
      eval "k_words=\$d_$1 k_opens=\$nb_$1"
      [ -n "$k_words" ] && [ -z "$k_opens" ] || break
      k_keys="$k_keys $1"
      shift
    done
    k_batch
  done
  # The first step of the next segment must not inherit variables of this segment's last step.
  k_clear
}

# k_gather_evidence KEY...: takes the evidence of these steps. It is kept until a step changes something; k_seen: the steps
# of the kept evidence.
k_gather_evidence() {
  case "$k_seen " in *" $1 "*) return 0 ;; esac
  k_seen=" $*"
  k_begin_evidence
  for k_key in "$@"; do
    eval "k_words=\$d_$k_key\$q_$k_key"
    k_add_evidence $k_words
  done
  k_take_evidence
}

# k_ask: before the first step, asks at once for all blobs that the segment surely or probably needs. These are the
# blobs of steps whose evidence does not hold, and small ones of steps without evidence.
k_ask() {
  k_provable= k_wanted=
  for i in "$@"; do
    eval "k_words=\$d_$i\$q_$i"
    [ -z "$k_words" ] || k_provable="$k_provable $i"
  done
  [ -z "$k_provable" ] || k_gather_evidence $k_provable
  [ -z "$k_stop$k_failed" ] || return 0
  for i in "$@"; do
    k_load
    if [ -n "$d" ]; then
      k_holds $d || k_want $K_BATCH $d
    elif [ -z "$q" ] || ! k_holds $q; then
      for k_blob in $early $late; do
        case " $big " in *" $k_blob "*) ;; *) [ -n "$K_DRY" ] || k_wanted="$k_wanted $k_blob" ;; esac
      done
    fi
  done
  [ -z "$k_wanted" ] || k_need $k_wanted
}

# k_want LIBRARY DATA...: collects the blobs that a batch needs for this step; in a dry run only the library of batches.
k_want() {
  case $k_wanted in *"$1"*) ;; *) k_wanted="$k_wanted $1" ;; esac
  [ "$2" != f ] || [ -n "$K_DRY" ] || k_wanted="$k_wanted ${12}"
}

# k_doubt VERDICT: replaced in a dry run (dry-run-verdict.sh).
k_doubt() {
  false
}

# k_trial: replaced when a step is on trial (trial-runner.sh).
k_trial() {
  :
}

# k_ok: records that the evidence shows the loaded step in order; k_flush reports all such steps together.
k_ok() {
  ! k_doubt ok || return 0
  k_oks="$k_oks $i" k_outcome=ok
  eval "o_$i=ok"
  [ -z "$ms" ] || k_milestone
}

# k_flush: reports the steps that k_ok recorded.
k_flush() {
  [ -z "$k_oks" ] || { k_quick=$k_oks k_oks= && k_event "quick$k_quick"; }
}

# k_batch: applies the steps k_keys as a batch. A step stays in order only if nothing is applied before it, so after
# each change the evidence of all later steps is gathered again. A failure ends the batch. The library of batches comes when it
# is needed (k_apply in apply.sh).
k_batch() {
  [ -z "$k_failed" ] || return 0
  while [ -n "$k_keys" ] && [ -z "$k_stop" ]; do
    k_gather_evidence $k_keys
    k_todo= k_in_order= k_all=$k_keys
    for i in $k_all; do
      k_load
      ! k_doubt early || continue
      if ! k_holds $d; then
        k_todo="$k_todo $i"
      elif [ -z "$k_todo" ] || [ -n "$k_failed" ]; then
        k_ok
      else
        k_in_order="$k_in_order $i"
      fi
    done
    if [ -z "$k_todo" ] || [ -n "$k_failed" ]; then return 0; fi
    k_need $K_BATCH || return 0
    b_data= k_whole=
    command . "$K_RUN/blobs/$K_BATCH"
    # Without the library nothing can be applied or reported, so this runner ends; a new one asks for it again.
    [ -n "$k_whole" ] || exit 1
    k_apply || return 0
  done
}

# k_end_step OUTCOME STATUS: records the end of the step `i`, for the journal and for later steps.
k_end_step() {
  eval "title=\$title_$i ms=\$ms_$i"
  k_outcome=$1
  if [ "$k_outcome" = failed ] && [ -e "$K_RUN/aborted" ]; then k_outcome=interrupted; fi
  ! k_doubt "$k_outcome" || return 0
  case $k_outcome in changed | interrupted | failed) k_seen= ;; would) k_unsure=1 ;; esac
  [ "$k_outcome$k_failed" != failed ] || k_failed=$i k_error="failed at $title"
  eval "o_$i=$k_outcome"
  k_flush
  k_event "end $i $k_outcome $2"
  k_title=$title
  case $k_outcome in
    # A milestone is not reached by a step that would change or is unknown.
    ok | changed | skipped) [ -z "$ms" ] || k_milestone ;;
  esac
}

# k_step: runs the loaded step in a shell of its own.
k_step() {
  k_step_n=$((k_step_n + 1)) k_turn=0
  if [ -n "$k_stop" ]; then return; fi
  # k_held: the first failure is that of a check. Further checks follow, and steps with onFailure.
  if [ -n "$k_failed" ] && { [ -n "$fo" ] || [ -z "${k_held:+$ck}" ]; }; then
    case " $fo " in *" $k_failed "*) ;; *) return ;; esac
  elif [ -n "$fo" ]; then
    k_flush && k_event "end $i skipped 0 nothing failed"
    eval "o_$i=skipped"
    return
  fi
  for k_needed in $rq; do
    eval "k_its_outcome=\${o_$k_needed:-}"
    [ "$k_its_outcome" = failed ] || continue
    k_flush && k_event "end $i skipped 0 a check that it requires failed"
    eval "o_$i=skipped"
    return
  done
  k_due= k_why=
  for k_watched in $rs $ch; do
    eval "k_its_outcome=\${o_$k_watched:-}"
    case $k_its_outcome in changed | would*) k_due=1 k_why="changed $k_watched" ;; esac
  done
  if [ -z "$k_due" ] && [ -e "$K_STATE/owed/$i" ]; then k_due=1 k_why=owed; fi
  if [ -n "$ch" ] && [ -z "$k_due" ]; then
    # shellcheck disable=SC2086 # numbers of steps
    ! k_doubt skipped $rs $ch || return 0
    k_flush
    k_event "end $i skipped 0 nothing it watches changed"
    eval "o_$i=skipped"
    return
  fi
  ! k_doubt early || return 0
  if [ -z "$k_due" ] && [ -n "$q" ] && k_gather_evidence "$i" && k_holds $q; then
    k_ok
    return
  fi
  k_await_bastion
  [ -z "$k_stop" ] || return 0
  k_flush
  k_event "start $i $k_why"
  k_tick
  k_need $early || return 0
  # Most steps are in order and print nothing, so a first pass only probes, without readers for output. Right after a
  # change that is unlikely.
  [ "$k_outcome" != changed ] || look=
  k_live=$live k_looks=$look
  [ -z "$look" ] || live=
  k_child
  live=$k_live k_looks=
  case $look:$k_rc in
    1:0 | 1:11 | 1:12 | 1:14) ;;
    # A first pass that a limit or an abort ended is the step's end; else the step runs again, with readers.
    1:*) [ -e "$K_RUN/late" ] || [ -e "$K_RUN/aborted" ] || k_rc=20 ;;
  esac
  while [ "$k_rc" = 20 ]; do
    # The step may have named the blobs it wants (offered-blobs.sh).
    { read -r late <"$K_RUN/blobs/$i"; } 2>/dev/null
    k_need $late || return 0
    k_child
  done
  [ -z "$rg" ] || k_stdout
  case $k_rc in 0) k_verdict=ok ;; 10) k_verdict=changed ;; 11) k_verdict=would ;; 12) k_verdict=skipped ;; 14) k_verdict=unknown ;; *) k_verdict=failed ;; esac
  { read -r k_rc <"$K_RUN/late"; } 2>/dev/null && k_verdict=failed
  # The status says that a warning does not hold.
  case $ck:$k_verdict in
    warning:failed) [ -e "$K_RUN/aborted" ] || k_verdict=ok ;;
    error:failed) [ -n "$k_failed" ] || k_held=1 ;;
  esac
  k_trial
  case $K_DRY:$k_due$k_verdict in :1ok | :1changed) rm -f "$K_STATE/owed/$i" ;; esac
  k_end_step $k_verdict "$k_rc"
  [ -n "$K_DRY" ] || [ "$k_outcome" = ok ] || k_status running
}

# ---- main ------------------------------------------------------------------------------------------------------------

k_unsure= k_alone=
K_NL='
'
k_lock || exit 3
k_rest=${k_me#*:}
echo "$$ ${k_rest%%:*}" >"$K_RUN/pid"
# A killed follower may have started this runner a moment ago, and a higher attempt has begun: its own runner works.
for k_path in "$K_RUN"/job.*; do :; done
[ "${k_path##*.}" = "$K_ATTEMPT" ] || { k_unlock && exit 3; }
# Empty folders that a killed step left in folders of other users (files.sh, k_aside).
[ ! -s "$K_STATE/aside" ] || { while IFS= read -r k_path; do rmdir "$k_path"; done <"$K_STATE/aside" 2>/dev/null; : >"$K_STATE/aside"; }
[ ! -e "$K_RUN/current" ] || : >"$K_RUN/current"
while :; do
  until [ "$k_seg" = "$k_given" ] || [ -e "$K_RUN/seg.$k_seg" ]; do k_wait; done
  k_event "segment $k_seg"
  if [ "$k_seg" = "$k_given" ]; then k_given; else . "$K_RUN/seg.$k_seg"; fi
  k_flush
  [ -z "$k_short" ] || k_end full
  k_event "segment-end $k_seg ${k_failed:+failed}${k_stop:+stopped}"
  k_seg=$((k_seg + 1))
  # If the run is in order, the bastion has named its outcome in advance: the runner does not wait for its goodbye.
  [ -z "$k_fin" ] || [ -n "$k_failed$k_stop" ] || k_end "$k_fin"
done
