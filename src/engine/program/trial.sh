# Functions for steps with the key `risk` (POSIX sh; dash, bash, BusyBox, mksh; docs/runner.md, On trial). They follow
# files.sh and k_remove_trial (trial-runner.sh). Changes on trial stay only if a new connection confirms them; else
# revert.sh (K_REVERT) restores the recorded state.

# trial_open SECONDS: starts the guard, or extends its deadline. Without a confirmation the node reverts the changes after
# at most SECONDS.
trial_open() {
  k_trial=$K_STATE/trial
  [ ! -d "$k_trial" ] || trial_before
  read -r k_now _ </proc/uptime
  k_at=$((${k_now%%.*} + $1))
  if [ -d "$k_trial" ]; then
    echo "$k_at" >"$k_trial/deadline.new" && mv -f "$k_trial/deadline.new" "$k_trial/deadline"
    return
  fi
  k_new=$K_STATE/trial.new
  rm -rf "$k_new"
  mkdir -m 700 "$k_new" && printf '%s\n' "$K_REVERT" >"$k_new/guard" && echo "${K_RUN##*/}" >"$k_new/run" && echo "$k_at" >"$k_new/deadline" &&
    echo 1000 >"$k_new/count" && mv -T "$k_new" "$k_trial" || return 1
  trial_at_boot || note "a power cut before this is confirmed is not undone: systemd has to do that at boot"
  sync
  if [ -d /run/systemd/system ] && have systemd-run; then
    # In a unit of its own: the step may change the very service whose group this shell is in.
    systemd-run --quiet --collect --unit="kcore-trial-$$" /bin/sh "$k_trial/guard" watch
  else
    setsid /bin/sh "$k_trial/guard" watch </dev/null >/dev/null 2>&1 3>&- 5>&- &
  fi
}

# trial_at_boot: installs a unit that reverts at a boot, before networks and services come up.
trial_at_boot() {
  [ -d /run/systemd/system ] && have systemd-run || return 1
  k_unit=kcore-trial$(printf %s "$K_STATE" | tr / -).service
  k_units=/etc/systemd/system
  printf '%s\n' '[Unit]' 'Description=Reverts a change of kcore that was not confirmed' \
    DefaultDependencies=no "RequiresMountsFor=$k_trial /etc" After=local-fs.target Wants=network-pre.target \
    'Before=network-pre.target sysinit.target' "ConditionPathExists=$k_trial/guard" \
    '[Service]' Type=oneshot "ExecStart=/bin/sh $k_trial/guard boot" >"$k_units/$k_unit" || return 1
  mkdir -p "$k_units/sysinit.target.wants" && ln -sf "../$k_unit" "$k_units/sysinit.target.wants/" && echo "$k_unit" >"$k_trial/boots"
} 2>/dev/null

# trial_before: a trial exists already. Ours continues while there is time; another run's trial, which no bastion will
# confirm, is reverted now.
trial_before() {
  k_its_run= k_at=0
  { read -r k_its_run <"$k_trial/run" && read -r k_at <"$k_trial/deadline"; } 2>/dev/null
  read -r k_now k_rest </proc/uptime
  k_own=
  [ "$k_its_run" != "${K_RUN##*/}" ] || k_own=1
  if [ -n "$k_own" ] && [ ! -L "$k_trial/decision" ] && [ $((${k_now%%.*} + 2)) -lt "$k_at" ]; then return 0; fi
  /bin/sh "$k_trial/guard" now
  k_tries=0
  until [ -e "$k_trial/over" ] || [ "$(readlink "$k_trial/decision")" = confirmed ]; do
    [ $((k_tries += 1)) -lt 60 ] || refuse CONNECTIVITY_REVERTED "the node is still going back from an earlier change ($k_trial)"
    sleep 1
  done
  k_decision=$(readlink "$k_trial/decision")
  k_remove_trial
  [ "$k_own$k_decision" != 1reverted ] ||
    refuse CONNECTIVITY_REVERTED "this run's change was not confirmed in time, or the node booted before that: it is reverted"
}

# trial_number: k_number = the next number, by which the revert orders its records.
trial_number() {
  read -r k_number <"$k_trial/count" && k_number=$((k_number + 1)) && echo "$k_number" >"$k_trial/count"
}

# keep_path PATH: records the path for the revert: a file, a link, a folder without its contents, or its absence.
keep_path() {
  trial_number || exit 1
  if [ -d "${1%/*}/" ]; then
    safe_parents "$1"
    [ -z "$k_theirs" ] || refuse FILE_PARENT_UNSAFE "$1 lies where another user can make names: it cannot be changed on trial"
    kind_of "$1"
    case $kind in
      file | symlink) cp -a "$1" "$k_trial/$k_number.kept" || exit 1 ;;
      directory) stat -c '%u:%g %a' "$1" >"$k_trial/$k_number.folder" || exit 1 ;;
      special) refuse FILE_IN_THE_WAY "$1 is a device: it cannot be changed on trial" ;;
    esac
  fi
  printf '%s\n' "$1" >"$k_trial/$k_number.path" || exit 1
}

# keep_unit UNIT HOW: records whether the unit is active and enabled, for the revert. HOW brings an active unit to the
# restored files: systemctl restart, reload-or-restart or start; keep restores only whether it is enabled.
keep_unit() {
  trial_number && printf '%s\n' "$1" "$(systemctl is-active "$1")" "$(systemctl is-enabled "$1" 2>/dev/null)" "$2" >"$k_trial/$k_number.unit" || exit 1
}

# on_revert COMMAND: at the revert, sh runs the command in the step's environment, after the earlier records.
on_revert() {
  trial_number && printf '%s\n' "$k_env" "$1" >"$k_trial/$k_number.command" || exit 1
}
