# The two programs of `kcore cp`, one on the bastion and one on the node (POSIX sh; dash, bash, BusyBox, mksh), after
# step-functions.sh and files.sh: c_send and c_take speak with each other on stdin and stdout. On stderr both report to the
# bastion: `sending …`, `done PATH`, and refusals as `R CODE TEXT`. Names with a line break or a back slash are left out.
#
# Given: c_here = 1 on the bastion, where the operator's own folders are as they are.

exec 3>&2
umask 077
# Names are bytes here.
export LC_ALL=C
# A pattern for names that are left out; find(1) reads a back slash in brackets as a quote.
c_odd="*[\\\\$K_NL]*"
k_as= k_key=cp

# c_sum: prints the SHA-256 of stdin.
c_sum() {
  k_line=$(sha256sum) && printf '%s\n' "${k_line%% *}"
}

# c_list FIND_WORD...: prints `SUM  PATH` and `MODE BYTES PATH` of each such file beneath the current folder, but for an unfinished
# copy; then `end`.
c_list() {
  set -- . -name .kcore-part -prune -o ! -path "$c_odd" -type f "$@"
  find "$@" -exec sha256sum -- {} +
  find "$@" -exec stat -c '%a %s %n' -- {} +
  echo end
}

# c_pass: passes lines on, up to `end`.
c_pass() {
  while IFS= read -r k_line; do
    printf '%s\n' "$k_line"
    [ "$k_line" != end ] || return 0
  done
  exit 1
}

# c_send SRC RECURSES SUM BYTES: offers a file or, if RECURSES is 1, a folder. The first bytes of a file alone count, as many as it
# has now: a log may grow. SUM is the sum of a file's first BYTES where it is known.
c_send() {
  [ -e "$1" ] || refuse FILE_UNREADABLE "there is no $1"
  if [ -d "$1" ]; then
    [ "$2" = 1 ] || refuse FILE_IN_THE_WAY "$1 is a folder: -r copies it"
    # A folder that cannot be read would be a smaller one.
    c_message=$(cd "$1" 2>&1 && find . 2>&1 >/dev/null) || refuse FILE_UNREADABLE "$1 cannot be read whole: ${c_message%%"$K_NL"*}"
    cd "$1" && echo folder || exit 1
    # Three listings: of the place, of an unfinished copy there, and of the source. A line that is missing there is a difference.
    c_plan=$({ c_pass && c_pass && c_list; } | awk '
      BEGIN { part = 0 }
      $0 == "end" { part++; next }
      { path = $0; sub(/^[^ ]+ [^ ]* /, "", path) }
      part < 2 { seen[part, $0] = 1; next }
      /^[0-9a-f]+  / && length($1) == 64 { sums[path] = $0 }
      NF > 2 && length($1) < 5 { bytes[path] = $2; all += $2; files++ }
      !((0, $0) in seen) { differs[path] = 1 }
      !((1, $0) in seen) { absent[path] = 1 }
      END {
        for (path in bytes) if (!(path in sums)) print "bad " path
        for (path in differs) {
          print "sum " sums[path]
          if (!(path in absent)) continue
          print "name " path
          sent += bytes[path]
          count++
        }
        print "sending " all + 0, sent + 0, "-", files + 0, count + 0
      }')
    c_bad=$(printf '%s\n' "$c_plan" | sed -n 's/^bad \.//p' | head -n 1)
    [ -z "$c_bad" ] ||
      refuse FILE_UNREADABLE "$1$c_bad has no SHA-256: it cannot be read, is gone by now, or has control characters in its name"
    printf '%s\n' "$c_plan" | grep '^sending' >&2
    printf '%s\n' "$c_plan" | sed -n 's/^sum //p'
    echo
    { find . ! -path "$c_odd" ! -name .kcore-part \( -type d -o -type l \) && printf '%s\n' "$c_plan" | sed -n 's/^name //p'; } |
      tar --no-recursion -cf - -T -
    return
  fi
  [ -f "$1" ] || refuse FILE_IN_THE_WAY "$1 is a device, not a file"
  [ -r "$1" ] || refuse FILE_UNREADABLE "$1 cannot be read"
  c_size=${4:-$(stat -Lc %s "$1")}
  [ "$(stat -Lc %s "$1")" -ge "$c_size" ] || refuse COPY_DIFFERS "$1 was changed during the copy"
  c_all=${3:-$(head -c "$c_size" "$1" | c_sum)}
  echo "file $c_size $c_all $(stat -Lc %a "$1")"
  read -r c_have c_known || exit 1
  case $c_have in '' | *[!0-9]*) exit 1 ;; esac
  [ "$c_have" -le "$c_size" ] && [ "$(head -c "$c_have" "$1" | c_sum)" = "$c_known" ] || c_have=0
  echo "$c_have"
  echo "sending $c_size $((c_size - c_have)) $c_all" >&2
  tail -c +$((c_have + 1)) "$1" | head -c $((c_size - c_have))
}

# c_take DEST NAME MODE OWNER GROUP: copies to DEST; or to DEST/NAME, if DEST ends in / or is a folder and a file is
# offered. MODE, OWNER and GROUP are for files; `-` keeps the source's mode, and the owner that is there.
c_take() {
  read -r c_type c_size c_all c_mode || exit 1
  c_dest=$1 c_owner=$4 c_group=$5
  case $c_type:$c_dest in *:*/) c_dest=$c_dest$2 ;; file:*) [ ! -d "$c_dest" ] || c_dest=$c_dest/$2 ;; esac
  c_mode=0${c_mode#"${c_mode%???}"}
  [ "$3" = - ] || c_mode=$3
  case $c_size$c_mode in *[!0-9]*) exit 1 ;; esac
  "c_take_$c_type" || exit 1
  printf 'done %s\n' "$c_dest" >&2
}

# c_enter FILE OWNER: enters the folder of FILE, as k_enter does.
c_enter() {
  k_sticky= k_at= k_theirs=
  if [ -n "$c_here" ]; then cd "${1%/*}/" || exit 1; else k_enter "$1" "$2"; fi
}

# c_private NAME: enters the folder of an unfinished copy in the current folder. In a folder such as /tmp any user may have made NAME.
c_private() {
  c_part=$PWD/$1
  [ -e "./$1" ] || [ -L "./$1" ] || mkdir -m 0700 "./$1" || exit 1
  if [ -n "$c_here" ]; then c_own_folder "$1"; else k_private "./$1"; fi ||
    refuse FILE_PARENT_UNSAFE "$c_part is in the way, and others may have changed it: look at it, and remove it"
}

# c_own_folder NAME: enters a subfolder that is the operator's alone (0700). Only after cd is NAME surely no link: another user
# could swap it before.
c_own_folder() {
  c_above=$(stat -c %d:%i .) && cd -P "./$1" || return 1
  k_stat_line=$(stat -c '%d:%i' .. . "../$1" && stat -c %a .) || return 1
  set -- $k_stat_line
  [ -O . ] && case $1:$2:$4 in "$c_above:$3:"700 | "$c_above:$3:"?700) ;; *) return 1 ;; esac
}

# c_flush FILE: flushes a file, or the file system of a folder.
c_flush() {
  sync -f "$1" 2>/dev/null || sync
}

c_take_file() {
  c_name=${c_dest##*/}
  guard_file "$c_dest"
  k_attributes "$c_dest" 8
  c_present=$k_own
  [ "$c_owner" = - ] || k_own=$c_owner
  [ "$c_group" = - ] || k_grp=$c_group
  c_enter "$c_dest" "$k_own"
  # In a sticky folder a file of another user counts as new (files.sh, put_file).
  case $k_sticky:$c_present:$c_owner in 1:[!0]*:-) k_own=root k_grp=root ;; esac
  c_there=
  if [ -f "./$c_name" ] && [ "$(stat -c %s "./$c_name")" = "$c_size" ]; then c_there=$(c_sum <"./$c_name"); fi
  c_private ".$c_name.kcore-part"
  [ ! -L ./f ] || refuse FILE_PARENT_UNSAFE "$c_part/f is a link: look at $c_part, and remove it"
  # A file that is in order serves as the part, so that mode and owner are set in the one way.
  [ "$c_there" != "$c_all" ] || cat "../$c_name" >|./f || exit 1
  [ -e ./f ] || : >./f || exit 1
  echo "$(stat -c %s ./f) $(c_sum <./f)"
  read -r c_from || exit 1
  [ "$c_from" != 0 ] || : >|./f
  cat >>./f || exit 1
  # A shorter part stays for the next copy.
  [ "$(stat -c %s ./f)" -ge "$c_size" ] || exit 1
  [ "$(c_sum <./f)" = "$c_all" ] || { rm -f ./f && refuse COPY_DIFFERS "the source of $c_dest was changed during the copy"; }
  # On the bastion the operator owns the file, except as --owner says.
  [ -z "$c_here" ] || { k_own=${c_owner#-} k_grp=${c_group#-}; }
  [ -z "$k_own$k_grp" ] || chown "$k_own${k_grp:+:$k_grp}" ./f || exit 1
  chmod "$c_mode" ./f && c_flush ./f && mv -fT ./f "../$c_name" && rmdir "../.$c_name.kcore-part" && c_flush ..
}

c_take_folder() {
  guard_directory "$c_dest"
  [ -d "$c_dest" ] || { [ -n "$c_here" ] && mkdir -m 0755 "$c_dest"; } || keep_folder "$c_dest" 0755 - - || exit 1
  c_enter "$c_dest/." root
  [ -n "$c_here" ] || { [ -z "$k_theirs" ] && ! k_is_shared .; } ||
    refuse FILE_PARENT_UNSAFE "another user can change folders in $c_dest, and so lead a copy elsewhere"
  # A file of another owner is a difference, if an owner is given.
  set --
  [ "$c_owner" = - ] || set -- -user "$c_owner"
  [ "$c_group" = - ] || set -- "$@" -group "$c_group"
  c_list "$@"
  c_private .kcore-part
  c_list
  c_sums=$(while IFS= read -r k_line && [ -n "$k_line" ]; do printf '%s\n' "$k_line"; done)
  tar -xpof - || exit 1
  find . ! -type d ! -type f ! -type l -exec rm -f {} +
  if [ "$(find . -type f | grep -c .)" != "$(printf '%s' "$c_sums" | grep -c .)" ] ||
    { [ -n "$c_sums" ] && ! printf '%s\n' "$c_sums" | sha256sum -c >/dev/null 2>&1; }; then
    cd .. && rm -rf .kcore-part
    refuse COPY_DIFFERS "a source was changed during the copy to $c_dest, or an unfinished copy of another one lay there"
  fi
  find . -type f -exec chmod u-s,g-s {} +
  [ -n "$c_here" ] || c_keep_owners || exit 1
  [ "$c_owner" = - ] || find . ! -type d -exec chown -h "$c_owner" {} + || exit 1
  [ "$c_group" = - ] || find . ! -type d -exec chgrp -h "$c_group" {} + || exit 1
  c_flush .
  find . -type d | while IFS= read -r c_sub; do
    if [ ! -d "../$c_sub" ] || [ -L "../$c_sub" ]; then
      mkdir -m "$(stat -c %a "$c_sub")" "../$c_sub" || refuse FILE_IN_THE_WAY "$c_dest/${c_sub#./} is no folder"
    fi
    find "$c_sub" -mindepth 1 -maxdepth 1 ! -type d -exec sh -c 'mv -f -- "$@" "../$0/"' "$c_sub" {} + || exit 1
  done || exit 1
  cd .. && rm -rf ./.kcore-part && c_flush .
}

# c_keep_owners: gives the files of the part owner and group of those that they replace. Both lists are of find(1), which follows no
# link: beneath one that replaces a folder lie other files.
c_keep_owners() {
  {
    (cd .. && find . -name .kcore-part -prune -o -type f ! \( -user 0 -group 0 \) -exec stat -c '%u:%g %n' {} +)
    find . ! -path "$c_odd" -type f
  } |
    awk '/^[0-9]/ { ids = $1; sub(/^[^ ]* /, ""); of[$0] = ids; next } $0 in of { print of[$0] " " $0 }' |
    while IFS= read -r k_line; do chown -h "${k_line%% *}" "${k_line#* }" || exit 1; done
}
