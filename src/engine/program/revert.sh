# Reverts changes on trial to the recorded state (POSIX sh; dash, bash, BusyBox, mksh; docs/runner.md, On trial). It
# lies beside that state as `guard`, and works without bastion and runner.
#
# sh guard MODE, when it reverts. watch: at the deadline or by a decision; now: at once; boot: early in a boot, before the
# network; late: after that boot. Beside it: deadline (seconds of uptime); decision, a link to confirmed or reverted, of
# which the first counts; the recorded states, by number (trial.sh); boots, the name of the unit that calls it at boot;
# said, the output of the revert; over, when the trial is finished.

LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nix/var/nix/profiles/default/bin:/run/wrappers/bin:/run/current-system/sw/bin
export LC_ALL PATH
umask 077
cd "${0%/*}" || exit 1
r_mode=$1

# r_put_back NUMBER: restores the recorded path: a file or link, a folder's mode and owner, or its absence.
r_put_back() {
  IFS= read -r r_path <"$1.path" || return 0
  if [ -e "$1.kept" ] || [ -L "$1.kept" ]; then
    r_new=${r_path%/*}/.${r_path##*/}.kcore-kept
    mkdir -p "${r_path%/*}" && rm -f "$r_new" && cp -a "$1.kept" "$r_new" && mv -fT "$r_new" "$r_path"
  elif [ -e "$1.folder" ]; then
    read -r r_owner r_perm <"$1.folder" && mkdir -p "$r_path" && chown "$r_owner" "$r_path" && chmod "$r_perm" "$r_path"
  elif [ -d "$r_path" ] && [ ! -L "$r_path" ]; then
    rmdir "$r_path"
  else
    rm -f "$r_path"
  fi || echo "$r_path could not be put back"
}

# r_unit NUMBER: reads the recorded state of that unit.
r_unit() {
  { read -r r_name && read -r r_active && read -r r_enabled && read -r r_how; } <"$1.unit"
}

# r_over: removes the unit for boots, and the recorded states, which may be secret.
r_over() {
  r_boots=
  { read -r r_boots <boots; } 2>/dev/null
  [ -z "$r_boots" ] || rm -f "/etc/systemd/system/$r_boots" "/etc/systemd/system/sysinit.target.wants/$r_boots"
  sync
  rm -rf ./[0-9]*
  sync
  : >over
}

case $r_mode in
  watch)
    until [ -L decision ]; do
      [ -e guard ] || exit 0
      r_at=0
      { read -r r_at <deadline; } 2>/dev/null
      read -r r_now r_x </proc/uptime
      [ "${r_now%%.*}" -lt "$r_at" ] || ln -s reverted decision
      sleep 1
    done
    ;;
  now | boot) ln -s reverted decision ;;
esac 2>/dev/null
[ ! -e over ] || exit 0
if [ "$(readlink decision)" != reverted ]; then
  # The trial was confirmed, and a power cut came before the runner could remove all of it.
  [ "$r_mode" != boot ] || r_over
  exit 0
fi
# Only one guard reverts at a time. A reboot ended any other guard, so its mark goes.
[ "$r_mode" != boot ] || rmdir going-back
[ "$r_mode" = late ] || { [ -e guard ] && mkdir going-back; } || exit 0
exec >>said 2>&1
if [ "$r_mode" != late ]; then
  # The first copy of a path is its state before the trial, so that copy is put back last. A daemon-reload takes many seconds on
  # a slow machine, and `systemctl enable` brings its own: services are started before both, unless they need them.
  r_back= r_reload=
  for r_x in *.path; do r_back="${r_x%.path} $r_back"; done
  for r_x in $r_back; do
    [ -e "$r_x.path" ] || continue
    r_put_back "$r_x"
    case $r_path in */systemd/system* | /etc/netplan/* | /etc/init.d/* | /etc/*tab) [ ! -d /run/systemd/system ] || r_reload=1 ;; esac
  done
  [ -z "$r_reload" ] || systemctl daemon-reload
fi
if [ "$r_mode" = boot ]; then
  # Services and networks start after this unit, so waiting for them here would hang: `late` restores units and runs
  # commands after the boot.
  systemd-run --no-block --quiet --collect --property=After=multi-user.target /bin/sh "$PWD/guard" late && exit 0
fi
for r_x in [0-9]*; do
  case $r_x in
    *.unit)
      r_unit "${r_x%.unit}"
      [ "$r_how" != keep ] || continue
      systemctl -q reset-failed "$r_name" 2>/dev/null
      if [ "$r_active" = active ]; then
        systemctl "$r_how" "$r_name" || echo "$r_name could not be restarted"
      else
        systemctl stop "$r_name"
      fi
      ;;
    *.command) sh "./$r_x" </dev/null || echo "a command to go back with ended with status $?" ;;
  esac
done
for r_x in *.unit; do
  [ -e "$r_x" ] && r_unit "${r_x%.unit}" && [ "$(systemctl is-enabled "$r_name" 2>/dev/null)" != "$r_enabled" ] || continue
  case $r_enabled in enabled) systemctl -q enable "$r_name" ;; disabled) systemctl -q disable "$r_name" ;; esac
done
r_over
