# A program on each node that gives contents to other nodes (POSIX sh; ADR 0312), over a channel of its own
# beside the follower's. It fetches contents from other nodes, and lets others fetch its own. When its stdin from the
# bastion ends, or is silent for k_silence, the program ends and clears up, and the run continues without it.
#
# Given: k_nonce K_STATE K_RUNID, k_id (of this process, for names outside of its folder), k_silence (seconds). Each
# answer names its command's number: `NONCE NUMBER yes` or `NONCE NUMBER no WHY`; before it `NONCE NUMBER at BYTES`.

export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/wrappers/bin:/run/current-system/sw/bin
umask 077
# shellcheck disable=SC3045
ulimit -Sc 0
unset CDPATH ENV IFS TZ
if [ -n "${KSH_VERSION-}" ]; then k_print() { print -r -- "$1"; }; else k_print() { printf '%s\n' "$1"; }; fi
k_say() { k_print "$k_nonce $1"; }
K_RUN=$K_STATE/runs/$K_RUNID
# A run's folder with a mark: the next run clears the remains of a killed program (follower.sh).
k_dir=$K_STATE/runs/feed-$k_id
# If sshd reads authorized_keys2, too, as it does by default, authorized_keys, which states may manage, stays untouched.
k_keys=.ssh/authorized_keys
case " $(sshd -T 2>/dev/null | grep -i '^authorizedkeysfile ') " in *" ${k_keys}2 "*) k_keys=${k_keys}2 ;; esac
# k_on: true while the run is not over (follower.sh).
k_on() { [ -p "$K_RUN/ctl" ] && [ ! -e "$K_RUN/over" ]; }
k_nap() { sleep 0.2 2>/dev/null || sleep 1; }

# ---- the login's authorized keys, which change as a whole, also in a power cut -----------------------------------------------

# k_undo removes this program's lines, or fails. After its id, a line has the state before the first one: d: no folder was there,
# f: no file, n: no line feed at the end of the file. k_undo is a text, because the next run evaluates it for a killed
# process (follower.sh). After a concurrent change of the file k_undo tries again, three times in all.
k_undo='cd || exit 0
f=$k_keys n=.ssh/kcore-feed-$k_id
rm -f "$n" "$n.n"
[ ! -L "$f" ] && grep -q " kcore-feed-$k_id\.[dfn]*-\$" "$f" 2>/dev/null || exit 0
for i in 1 2 3; do
  s=$(stat -c "%i %s %z" "$f")
  w=$(sed -n "s/.* kcore-feed-$k_id\.\([dfn]*\)-\$/\1/p" "$f" | head -n 1)
  cp -p "$f" "$n" && sed "/ kcore-feed-$k_id\.[dfn]*-\$/d" "$f" >"$n" || break
  case $w in *n*) grep -q " kcore-feed-" "$n" || [ -n "$(tail -c 1 "$n")" ] || { head -c $(($(stat -c %s "$n") - 1)) "$n" >"$n.n" && cat "$n.n" >"$n" && rm -f "$n.n"; } || break ;; esac
  sync "$n" 2>/dev/null || sync
  [ "$s" = "$(stat -c "%i %s %z" "$f")" ] || continue
  mv -f "$n" "$f" || break
  case $w in *f*) [ -s "$f" ] || rm -f "$f" ;; esac
  case $w in *d*) rmdir .ssh 2>/dev/null ;; esac
  exit 0
done
rm -f "$n" "$n.n"
exit 1'
# k_take_back: removes this program's lines from the authorized keys, or fails.
k_take_back() { (eval "$k_undo") 2>/dev/null; }

# k_admit NAME TYPE KEY: the holder of the key may begin to read that content within two minutes, and do nothing else.
k_admit() {
  cd && [ ! -L .ssh ] && [ ! -L "$k_keys" ] || return 1
  k_made=
  [ -d .ssh ] || { mkdir .ssh && k_made=d; } || return 1
  if [ ! -e "$k_keys" ]; then k_made=${k_made}f; else [ -f "$k_keys" ] && [ -O "$k_keys" ] || return 1; fi
  k_write "$@" && return
  # A failed write leaves no folder that this program has made.
  case $k_made in *d*) rmdir .ssh ;; esac
  return 1
}

# k_write NAME TYPE KEY: adds this program's line to the authorized keys, or fails.
k_write() {
  k_until=$(date -d "@$(($(date +%s) + 120))" +%Y%m%d%H%M%S) || return
  k_new=.ssh/kcore-feed-$k_id
  for k_try in 1 2 3; do
    k_seen=$(stat -c '%i %s %z' "$k_keys" 2>/dev/null)
    # Marks on lines of other runs count: those lines may be removed before this one.
    k_was=$k_made$(sed -n 's/.* kcore-feed-[0-9a-f]*\.\([dfn]*\)-$/\1/p' "$k_keys" 2>/dev/null | head -n 1) k_gap=
    [ ! -s "$k_keys" ] || [ -z "$(tail -c 1 "$k_keys")" ] || k_was=${k_was}n k_gap=1
    # A new file appears with this program's line in it: an empty one would not show who made it.
    if [ -e "$k_keys" ]; then cp -p "$k_keys" "$k_new"; else true >"$k_new"; fi && {
      [ -z "$k_gap" ] || echo
      k_print "restrict,expiry-time=\"$k_until\",command=\"exec cat '$k_dir/has.$1'\" $2 $3 kcore-feed-$k_id.$k_was-"
    } >>"$k_new" && { sync "$k_new" 2>/dev/null || sync; } || break
    [ "$k_seen" = "$(stat -c '%i %s %z' "$k_keys" 2>/dev/null)" ] || continue
    mv -f "$k_new" "$k_keys" && return || break
  done
  rm -f "$k_new"
  return 1
}

# ---- the contents: a file has.NAME is whole, its hash verified ------------------------------------------------------------------------

# k_has_hash FILE SHA256: true if the file has this hash.
k_has_hash() { case $(sha256sum <"$1") in "$2 "*) ;; *) false ;; esac }

# k_keep NUMBER NAME BYTES SHA256: keeps a content from the bastion, once the follower has all of it.
k_keep() {
  k_rounds=0
  until set -- "$1" "$2" "$3" "$4" "$K_RUN"/followers/*/in/"$2" && k_got=$(stat -c %s "$5" 2>/dev/null) && [ "$k_got" = "$3" ]; do
    k_on || { k_say "$1 no the run is over" && return; }
    k_nap
    k_rounds=$((k_rounds + 1))
    [ $((k_rounds % 5)) != 0 ] || k_say "$1 at ${k_got:-0}"
  done
  if ln -f "$5" "$k_dir/part.$2" && k_has_hash "$k_dir/part.$2" "$4" && mv -f "$k_dir/part.$2" "$k_dir/has.$2"; then
    k_say "$1 yes"
  else
    k_say "$1 no it cannot be kept"
  fi
}

# k_fetch NUMBER NAME BYTES SHA256 HOST PORT USER TYPE KEY: fetches a content from that node. TYPE KEY: its host key; our
# key is in key.NUMBER.
k_fetch() {
  k_part=$k_dir/part.$2 k_key=$k_dir/key.$1
  k_print "kcore-feed $8 $9" >"$k_key.known"
  # Bytes beyond the size are not written: the hash would be wrong anyway.
  (
    ulimit -f $(($3 / 512 + 1))
    exec ssh -F /dev/null -T -a -x -e none -i "$k_key" -o BatchMode=yes -o IdentitiesOnly=yes -o IdentityAgent=none \
      -o PreferredAuthentications=publickey -o StrictHostKeyChecking=yes -o HostKeyAlias=kcore-feed \
      -o UserKnownHostsFile="$k_key.known" -o GlobalKnownHostsFile=/dev/null -o ConnectTimeout=10 -o LogLevel=ERROR \
      -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -p "$6" -l "$7" -- "$5" true </dev/null >"$k_part" 2>"$k_key.said"
  ) &
  k_ssh=$! k_rounds=0
  trap 'kill "$k_ssh" 2>/dev/null; exit' HUP TERM PIPE
  while { IFS= read -r k_stat <"/proc/$k_ssh/stat"; } 2>/dev/null; do
    case ${k_stat##*) } in Z*) break ;; esac
    k_nap
    k_rounds=$((k_rounds + 1))
    [ $((k_rounds % 5)) != 0 ] || k_say "$1 at $(stat -c %s "$k_part")"
  done
  wait "$k_ssh"
  k_got=$(stat -c %s "$k_part") k_why=$(tail -n 1 "$k_key.said" | head -c 200)
  rm -f "$k_key" "$k_key".*
  # A text of another node must not have the nonce, which begins frames.
  case $k_why in *"$k_nonce"*) k_why= ;; esac
  [ "$k_got" != "$3" ] || k_say "$1 at $k_got"
  if [ "$k_got" != "$3" ]; then
    k_why="after $k_got bytes: $k_why"
  elif ! k_has_hash "$k_part" "$4"; then
    k_why='its hash is wrong'
  else
    # The runner waits for the content among the run's blobs.
    mkdir "$K_RUN/blobs" "$K_RUN/out" 2>/dev/null
    k_why='it cannot be put in its place'
    ! mv -f "$k_part" "$k_dir/has.$2" || ! k_on || ! ln -f "$k_dir/has.$2" "$K_RUN/blobs/$2" || k_why=
    k_on || { rm -f "$K_RUN/blobs/$2" && rmdir "$K_RUN/blobs" "$K_RUN/out"; } 2>/dev/null
  fi
  rm -f "$k_part"
  if [ -n "$k_why" ]; then k_say "$1 no $k_why"; else k_say "$1 yes"; fi
}

# ---- start, the bastion's commands, end ---------------------------------------------------------------------------------------

k_say hello
case $HOME in *\'*) exit 1 ;; esac
mkdir "$k_dir" || exit 1
k_jobs=
k_leave() {
  for k_job in $k_jobs; do
    # The number of a process that ended long ago may belong to another one by now.
    { IFS= read -r k_stat <"/proc/$k_job/stat"; } 2>/dev/null || continue
    set -- ${k_stat##*) }
    [ "$2" != $$ ] || kill "$k_job"
  done
  # Large contents go first: on a full disk there is no room for a new file of keys. If that file cannot be written, the
  # next run removes the lines.
  rm -rf "$k_dir"/[!mu]*
  k_take_back && rm -rf "$k_dir"
}
trap k_leave EXIT
trap 'exit 1' HUP TERM PIPE INT
IFS= read -r k_stat <"/proc/$$/stat"
IFS= read -r k_boot </proc/sys/kernel/random/boot_id
set -- ${k_stat##*) }
{
  k_print "k_id=$k_id k_keys=$k_keys HOME='$HOME'"
  k_print "($k_undo) && rm -rf '$k_dir'"
} >"$k_dir/undo"
k_print "$$ ${20} $k_boot" >"$k_dir/mark"
# The undo text and its target must survive a power cut.
sync "$k_dir/undo" "$k_dir/mark" "$k_dir" "${k_dir%/*}" 2>/dev/null || sync
: >"$k_dir/beat"
(while rm "$k_dir/beat"; do sleep "$k_silence"; done; kill $$) </dev/null >/dev/null 2>&1 &
k_jobs=$!

while read -r k_cmd k_1 k_2 k_3 k_4 k_5 k_6 k_7 k_8 k_9; do
  case $k_cmd in
    beat) : >"$k_dir/beat" ;;
    keep)
      (trap - EXIT && k_keep "$k_1" "$k_2" "$k_3" "$k_4") &
      k_jobs="$k_jobs $!"
      ;;
    fetch)
      # Our key follows, up to an empty line.
      while IFS= read -r k_line && [ -n "$k_line" ]; do k_print "$k_line"; done >"$k_dir/key.$k_1"
      if command -v ssh >/dev/null 2>&1; then
        (trap - EXIT && k_fetch "$k_1" "$k_2" "$k_3" "$k_4" "$k_5" "$k_6" "$k_7" "$k_8" "$k_9") &
        k_jobs="$k_jobs $!"
      else
        k_say "$k_1 no it has no ssh client"
      fi
      ;;
    admit) if (k_admit "$k_2" "$k_3" "$k_4") 2>/dev/null; then k_say "$k_1 yes"; else k_say "$k_1 no it refuses every connection"; fi ;;
    dismiss) k_take_back ;;
    drop) rm -f "$k_dir/has.$k_1" ;;
    bye) exit ;;
  esac
done
