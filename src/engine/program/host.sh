# The follower (POSIX sh; dash, bash, BusyBox): the shell at the node's end of a channel. It makes the run's folder,
# starts the runner or finds it alive, streams the journal and the output to the bastion, and takes what it sends.
#
# Given: k_nonce K_STATE K_RUNID K_WHO K_NODE K_DRY K_GRANTED k_login (user of the login), k_offset (bytes of the journal
# the bastion has), k_seen (output it has: `KEY.STREAM.CHUNK:BYTES ...`), k_runner (text of the runner).
# Everything outside frames that begin with the nonce is noise of login shells, and ignored by the bastion.

LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
umask 077
unset CDPATH ENV IFS
K_NL='
'
k_say() { printf '%s %s\n' "$k_nonce" "$*"; }
k_fatal() {
  k_say "fatal $*"
  exit 1
}

# ---- hello -----------------------------------------------------------------------------------------------------------

k_lacks=
for k_x in setsid sha256sum stat readlink mv dd mkfifo ln rm mkdir id head tail tr sed grep cat sleep date chown chmod sync; do
  command -v "$k_x" >/dev/null 2>&1 || k_lacks="$k_lacks $k_x"
done
[ -z "$k_lacks" ] || k_fatal "BASELINE_MISSING$k_lacks"
stat -c %s / >/dev/null 2>&1 || k_fatal "BASELINE_MISSING stat -c"
k_uid=$(id -u)
read -r k_boot </proc/sys/kernel/random/boot_id || k_fatal "BASELINE_MISSING /proc"
k_machine=
{ read -r k_machine </etc/machine-id; } 2>/dev/null
k_say "hello 1 $k_uid $k_boot ${k_machine:--} $(date +%s)"

# ---- the state folder (requirement S-5): ours, no links, not writable for others ----------------------------------------

mkdir -p "$K_STATE" 2>/dev/null || k_fatal "STATE_UNUSABLE cannot make $K_STATE"
k_sane() { # FOLDER MASK: a real folder of ours in which no bit of MASK is set
  [ ! -L "$1" ] || k_fatal "STATE_UNSAFE $1 is a symbolic link"
  k_x=$(stat -c '%u %a' "$1") && [ -d "$1" ] || k_fatal "STATE_UNSAFE $1 is not a folder"
  [ "${k_x% *}" = "$k_uid" ] || k_fatal "STATE_UNSAFE $1 belongs to uid ${k_x% *}"
  [ $((0${k_x#* } & 0$2)) = 0 ] || k_fatal "STATE_UNSAFE $1 has mode ${k_x#* }"
}
k_sane "$K_STATE" 022
# Whoever may write to a folder above it could swap it (the sticky bit prevents that).
k_dir=$(cd -P "$K_STATE" && pwd -P) || k_fatal "STATE_UNUSABLE cannot enter $K_STATE"
set --
while k_dir=${k_dir%/*} && [ -n "$k_dir" ]; do set -- "$@" "$k_dir"; done
for k_x in $(stat -c '%u:%a' -- / "$@"); do
  case ${k_x%%:*} in 0 | "$k_uid") ;; *) k_fatal "STATE_UNSAFE a folder above $K_STATE belongs to uid ${k_x%%:*}" ;; esac
  [ $((0${k_x#*:} & 022)) = 0 ] || [ $((0${k_x#*:} & 01000)) != 0 ] ||
    k_fatal "STATE_UNSAFE a folder above $K_STATE is writable for others, mode ${k_x#*:}"
done
# What is owed gets its folder when there is something: a dry run leaves only its journal.
for k_x in "$K_STATE/lock" "$K_STATE/owed" "$K_STATE/runs"; do
  [ -e "$k_x" ] || [ "$k_x" = "$K_STATE/owed" ] || mkdir "$k_x" 2>/dev/null
  k_y=$k_x && { [ ! -e "$k_y" ] && [ ! -L "$k_y" ] && [ "$k_y" = "$K_STATE/owed" ]; } || k_sane "$k_y" 077
done
K_RUN=$K_STATE/runs/$K_RUNID
[ -e "$K_RUN" ] || mkdir "$K_RUN" || k_fatal "STATE_UNUSABLE cannot make $K_RUN"
k_sane "$K_RUN" 077

# k_lives PID BIRTH BOOT: that process, and not one that got its number later, lives.
k_lives() {
  [ "$3" = "$k_boot" ] && { IFS= read -r k_s <"/proc/$1/stat"; } 2>/dev/null || return 1
  k_birth=$2
  set -- ${k_s##*) }
  [ "${20}" = "$k_birth" ] && [ "$1" != Z ]
}

# Before anything else in the folder: a follower lives, so this run may be about to take the lock.
IFS= read -r k_s <"/proc/$$/stat"
set -- ${k_s##*) }
echo "$$ ${20} $k_boot" >"$K_RUN/mark"

# k_clear_out RUN_FOLDER: removes kept output. A reader of a dead runner may still wait for the other end of its FIFO: opening
# it lets the reader end.
k_clear_out() {
  for k_f in "$1"/out/*.fifo; do [ ! -p "$k_f" ] || : 1<>"$k_f"; done
  rm -rf "$1/out"
}

# What dead runs left: their secrets and blobs at once, all but the newest twenty journals too.
k_count=0
for k_x in $(ls -t "$K_STATE/runs" 2>/dev/null); do
  k_count=$((k_count + 1))
  [ "$k_x" != "$K_RUNID" ] || continue
  k_busy=
  for k_l in "$K_STATE"/lock/*; do
    k_y=$(readlink "$k_l")
    case $k_y in *:"$k_boot:$k_x":*) ;; *) continue ;; esac
    k_pid=${k_y%%:*} k_born=${k_y#*:} k_born=${k_born%%:*}
    if k_lives "$k_pid" "$k_born" "$k_boot"; then
      k_busy=1
    else # its runner is dead, but the step that it left?
      k_pid=
      { read -r k_pid k_born <"$K_STATE/runs/$k_x/current"; } 2>/dev/null
      [ -z "$k_pid" ] || ! kill -0 "-$k_pid" 2>/dev/null || k_busy=1
    fi
  done
  [ -z "$k_busy" ] || continue
  k_pid=
  { read -r k_pid k_born k_b <"$K_STATE/runs/$k_x/mark"; } 2>/dev/null
  ! k_lives "$k_pid" "$k_born" "$k_b" || continue
  if [ "$k_count" -gt 20 ]; then
    rm -rf "${K_STATE:?}/runs/$k_x"
  elif [ -n "$k_pid" ]; then
    # All but the journal; the mark last, so that a kill in between leaves nothing unseen.
    k_clear_out "$K_STATE/runs/$k_x"
    rm -rf "${K_STATE:?}/runs/$k_x"/[!jm]* && rm -f "$K_STATE/runs/$k_x/mark"
  fi
done

# ---- the runner: alive already, or started now ---------------------------------------------------------------------------

mkdir -p "$K_RUN/followers" "$K_RUN/blobs" "$K_RUN/out"
k_me=$K_RUN/followers/$$
mkdir "$k_me" && mkfifo "$k_me/poke" || k_fatal "STATE_UNUSABLE cannot write to $K_RUN"
echo $$ >"$K_RUN/attached"
exec 6<>"$k_me/poke"
k_wake() { [ ! -p "$K_RUN/ctl" ] || echo . 1<>"$K_RUN/ctl"; }
k_leave() {
  [ -z "$k_streamer" ] || kill "$k_streamer" 2>/dev/null
  rm -rf "$k_me"
  { read -r k_x <"$K_RUN/attached"; } 2>/dev/null && [ "$k_x" = $$ ] && rm -f "$K_RUN/attached"
  k_wake
}
k_streamer=
trap k_leave EXIT
trap 'exit 1' HUP TERM PIPE

k_alive=
k_look_for_runner() {
  for k_l in "$K_STATE"/lock/*; do
    k_x=$(readlink "$k_l")
    case $k_x in
      *:"$k_boot:$K_RUNID":*)
        k_pid=${k_x%%:*} k_born=${k_x#*:}
        k_born=${k_born%%:*}
        ! k_lives "$k_pid" "$k_born" "$k_boot" || k_alive=1
        ;;
    esac
  done
}
if [ -p "$K_RUN/ctl" ]; then
  k_look_for_runner
  # A follower that is gone may have started one a moment ago that has not got the lock yet.
  if [ -z "$k_alive" ] && [ -e "$K_RUN/runner" ]; then sleep 1 && k_look_for_runner; fi
fi
: >>"$K_RUN/journal"
if [ -z "$k_alive" ]; then
  rm -rf "$K_RUN/ctl" "$K_RUN"/seg.* "$K_RUN/fin" "$K_RUN/stop" "$K_RUN/aborted" "$K_RUN/runner" "$K_RUN/pid"
  k_clear_out "$K_RUN"
  mkdir "$K_RUN/out"
  mkfifo "$K_RUN/ctl"
  # A power cut tears the journal: bytes that were never written read as NUL, or it is shorter than what the bastion has of
  # it. Line feeds take their places, so that offsets stay what they are and every line has an end.
  if [ -s "$K_RUN/journal" ]; then
    [ "$(tr -d '\000' <"$K_RUN/journal" | wc -c)" -eq "$(stat -c %s "$K_RUN/journal")" ] ||
      { tr '\000' '\n' <"$K_RUN/journal" >"$K_RUN/journal.new" && mv -f "$K_RUN/journal.new" "$K_RUN/journal"; } || k_fatal "STATE_UNUSABLE cannot mend $K_RUN/journal"
    [ "$(tail -c 1 "$K_RUN/journal" | wc -l)" -eq 1 ] || echo >>"$K_RUN/journal"
  fi
  k_x=$((k_offset - $(stat -c %s "$K_RUN/journal")))
  [ "$k_x" -le 0 ] || dd if=/dev/zero bs="$k_x" count=1 2>/dev/null | tr '\000' '\n' >>"$K_RUN/journal"
  # Where this runner's part of the journal begins: what stands before is the history of earlier ones.
  stat -c %s "$K_RUN/journal" >"$K_RUN/start"
  k_say "runner new $(cat "$K_RUN/start")"
else
  k_say "runner alive $(cat "$K_RUN/start")"
  k_wake
fi
read -r k_start <"$K_RUN/start"

k_launch() {
  [ -z "$k_alive" ] || return 0
  k_alive=1
  # A login that is not root's may be killed with all its processes when it ends (KillUserProcesses).
  if [ "$k_login" != root ] && [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then
    systemd-run --quiet --collect --unit="kcore-run-$K_RUNID-$$" /bin/sh "$K_RUN/runner" >/dev/null 2>&1 || k_fatal "RUNNER_FAILED systemd-run"
  else
    setsid /bin/sh "$K_RUN/runner" </dev/null >/dev/null 2>&1 6>&- &
  fi
}

# ---- towards the bastion: the journal's lines, and the output of steps --------------------------------------------------

# k_send KEY: what the bastion has not got yet of this step's output, each piece as a frame with its length.
k_send() {
  for k_f in "$K_RUN/out/$1".[oe].[0-9]*; do
    [ -s "$k_f" ] || continue
    k_id=${k_f##*/}
    k_have=0
    case $k_seen in *" $k_id:"*) k_have=${k_seen##*" $k_id:"} k_have=${k_have%% *} ;; esac
    k_size=$(stat -c %s "$k_f" 2>/dev/null) || continue
    [ "$k_size" -gt "$k_have" ] || continue
    k_lost=0
    { read -r k_lost <"${k_f%.*}.lost"; } 2>/dev/null
    printf '%s out %s %s %s %s\n' "$k_nonce" "$k_id" "$k_have" $((k_size - k_have)) "$k_lost"
    tail -c +$((k_have + 1)) "$k_f" | head -c $((k_size - k_have))
    echo
    k_seen="$k_seen $k_id:$k_size "
  done
}

k_stream() {
  k_open= k_part= k_told= k_seen=" $k_seen " k_at=$k_offset
  exec 4<"$K_RUN/journal"
  # The start of the running step may have been told by a follower before this one.
  [ "$k_offset" = 0 ] || { read -r k_x k_x k_x k_open <"$K_RUN/current"; } 2>/dev/null
  [ "$k_offset" = 0 ] || dd bs="$k_offset" count=1 iflag=fullblock <&4 >/dev/null 2>&1
  while :; do
    while IFS= read -r k_line <&4; do
      k_line=$k_part$k_line k_part=
      k_at=$((k_at + ${#k_line} + 1))
      case $k_line in
        *"$k_nonce start "*) k_open=${k_line#*"$k_nonce start "} k_open=${k_open%% *} ;;
        *"$k_nonce end "*) k_x=${k_line#*"$k_nonce end "} && k_send "${k_x%% *}" ;;
        *"$k_nonce bye "*) [ -z "$k_open" ] || k_send "$k_open" ;;
      esac
      case $k_line in
        "$k_nonce bye "* | "$k_nonce lock held "*)
          [ "$k_at" -le "$k_start" ] || {
            # All of it is told: what is left of the run is its journal. Before the last word, after which the bastion hangs up.
            # `ctl` first: what our other half receives from now on it throws away.
            rm -f "$K_RUN/ctl"
            rm -rf "${K_RUN:?}"/[!j]*
            printf '%s\n' "$k_line"
            return 0
          }
          ;;
      esac
      printf '%s\n' "$k_line"
    done
    k_part=$k_part$k_line
    [ -z "$k_open" ] || k_send "$k_open"
    # The bastion has now heard all that happened before this follower came.
    [ -n "$k_told" ] || { k_told=1 && printf '%s told\n' "$k_nonce"; }
    read -r k_x <&6
  done
}

# ---- from the bastion ----------------------------------------------------------------------------------------------------

k_take() { # FILE LENGTH SHA256: the next bytes of stdin, checked, then renamed to FILE
  # The bytes are taken from stdin in any case: nothing of them may be read as a command.
  k_to=$1.new
  { true >"$k_to"; } 2>/dev/null || k_to=/dev/null
  dd bs="$2" count=1 iflag=fullblock of="$k_to" 2>/dev/null || k_to=/dev/null
  case $(sha256sum <"$k_to") in
    "$3 "*) mv -f "$1.new" "$1" ;;
    *)
      rm -f "$1.new"
      # When the run is over its files vanish under our hands; that is no damage.
      if [ ! -p "$K_RUN/ctl" ]; then
        :
      elif [ "$k_to" = /dev/null ]; then
        k_say "fatal STATE_UNUSABLE cannot write to $K_RUN"
      else
        k_say "fatal DAMAGED ${1##*/}"
      fi
      ;;
  esac
}

# k_put NAME CONTENT: a blob out of a pack, aside. A shell whose printf is a program (mksh) has another builtin.
k_put() { printf %s "$2" >"$K_RUN/blobs/.in/$1" || k_bad=1; }
case ${KSH_VERSION:-} in *MIRBSD* | *LEGACY*) k_put() { print -rn -- "$2" >"$K_RUN/blobs/.in/$1" || k_bad=1; } ;; esac

# k_unpack: the blobs of a pack are proved all at once, and are there all at once or not at all.
k_unpack() {
  k_bad=
  mkdir -p "$K_RUN/blobs/.in" || k_bad=1
  . "$K_RUN/pack"
  if [ -z "$k_bad" ]; then
    for k_x in $(cd "$K_RUN/blobs/.in" && sha256sum -- *); do
      case $k_bad in
        '') k_bad=$k_x ;;
        "$k_x") k_bad= ;;
        *) break ;;
      esac
    done
    [ -z "$k_bad" ] || [ ! -p "$K_RUN/ctl" ] || k_say "fatal DAMAGED pack"
  else
    [ ! -p "$K_RUN/ctl" ] || k_say "fatal STATE_UNUSABLE cannot write to $K_RUN"
  fi
  [ -n "$k_bad" ] || mv -f "$K_RUN"/blobs/.in/* "$K_RUN/blobs/"
  rm -rf "$K_RUN/pack" "$K_RUN/blobs/.in"
}

k_kill() { # k_sig to the group of the running step, if that is still the same process; fails when the runner is done
  [ -e "$K_RUN/ctl" ] || return 1
  { read -r k_pid k_born k_x <"$K_RUN/current"; } 2>/dev/null && [ -n "$k_pid" ] || return 0
  { IFS= read -r k_s <"/proc/$k_pid/stat"; } 2>/dev/null || return 0
  set -- ${k_s##*) }
  # A step that was forked this very moment has no group yet: that is no reason to give up on it.
  [ "${20}" != "$k_born" ] || kill "-$k_sig" "-$k_pid" || :
}

# k_gone: tells the bastion when the runner died without its last word, so that a new one can take over.
k_gone() {
  { read -r k_pid k_born <"$K_RUN/pid"; } 2>/dev/null && [ -p "$K_RUN/ctl" ] && [ -n "$k_alive" ] || return 0
  { IFS= read -r k_s <"/proc/$k_pid/stat"; } 2>/dev/null && {
    set -- ${k_s##*) }
    [ "$1" = Z ] || [ "${20}" != "$k_born" ] || return 0
  }
  # Its last word may have come while we looked.
  [ -p "$K_RUN/ctl" ] || return 0
  k_alive=
  rm -f "$K_RUN/pid"
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
        if [ -p "$K_RUN/ctl" ]; then
          k_beats=$((k_beats + 1)) && echo "$$ $k_beats" >"$K_RUN/beat"
          # After a silence the runner took us for gone: here we are again.
          [ -e "$K_RUN/attached" ] || echo $$ >"$K_RUN/attached"
        fi
        k_gone
        ;;
      runner)
        k_take "$K_RUN/runner" "$2" "$3"
        if [ ! -p "$K_RUN/ctl" ]; then rm -f "$K_RUN/runner"; elif [ -e "$K_RUN/runner" ]; then k_launch; fi
        ;;
      seg)
        k_take "$K_RUN/seg.$2" "$3" "$4"
        [ -p "$K_RUN/ctl" ] || rm -f "$K_RUN/seg.$2"
        ;;
      blob) # NAME BYTES SHA256(of this part) OFFSET last|more SHA256(of the whole)
        k_take "$K_RUN/blobs/.part" "$3" "$4"
        [ "$5" != 0 ] || : >"$K_RUN/blobs/.$2"
        cat "$K_RUN/blobs/.part" >>"$K_RUN/blobs/.$2"
        if [ "$6" = last ]; then
          case $(sha256sum <"$K_RUN/blobs/.$2") in
            "$7 "*) mv -f "$K_RUN/blobs/.$2" "$K_RUN/blobs/$2" ;;
            *) rm -f "$K_RUN/blobs/.$2" && k_say "fatal DAMAGED blob" ;;
          esac
        fi
        ;;
      pack) # BYTES SHA256: a text that puts small blobs; their names are their hashes
        k_take "$K_RUN/pack" "$2" "$3"
        [ ! -e "$K_RUN/pack" ] || k_unpack
        ;;
      stop) [ ! -p "$K_RUN/ctl" ] || : >"$K_RUN/stop" ;;
      abort)
        [ -p "$K_RUN/ctl" ] && : >"$K_RUN/stop" && : >"$K_RUN/aborted"
        # Again each second: the step may be about to start. No new one can.
        (for k_sig in TERM TERM TERM TERM TERM KILL; do k_kill && sleep 1; done) >/dev/null 2>&1 &
        ;;
      fin) [ ! -p "$K_RUN/ctl" ] || echo "$2" >"$K_RUN/fin" ;;
    esac
    k_wake
  done
}

k_stream &
k_streamer=$!
k_listen
