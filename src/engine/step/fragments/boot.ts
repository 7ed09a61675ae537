import type { Step } from "../define.ts";
import { sh } from "../sh.ts";

/** Reboots the node from a detached process, a second later: until then the run's journal can record the step. */
export const rebootNode: Pick<Step, "apply" | "ends"> = {
  apply: sh`if [ -d /run/systemd/system ]; then set -- systemctl reboot; else set -- reboot; fi
have "$1" || refuse TOOL_MISSING "there is no program to reboot with"
sync
setsid sh -c 'sleep 1; exec "$@"' reboot "$@" </dev/null >/dev/null 2>&1 3>&- 5>&- &`,
  ends: "boot",
};

/**
 * The function `why_boot`: prints a line for each reason to boot. It reads Debian's reboot-required, dnf's
 * needs-restarting(1) and NixOS's booted-system. A newer kernel in /boot, a replaced file of the running kernel, or its
 * missing modules are reasons, too. A container has no kernel of its own.
 */
export const whyBoot = sh`why_boot() {
  for file in /run/reboot-required /var/run/reboot-required; do
    [ -e "$file" ] || continue
    echo "$file: $(sort -u "$file.pkgs" 2>/dev/null | tr '\n' ' ')"
    break
  done
  ! have needs-restarting || needs-restarting -r >/dev/null 2>&1 || echo "needs-restarting(1) says so"
  if [ -e /run/systemd/container ] || grep -q 'container=' /proc/1/environ 2>/dev/null; then return 0; fi
  if [ -e /run/booted-system ]; then
    for part in kernel initrd kernel-modules; do
      [ "$(readlink -f "/run/booted-system/$part")" = "$(readlink -f "/run/current-system/$part")" ] ||
        echo "the system has another $part than it was booted with"
    done
    return 0
  fi
  runs=$(uname -r)
  newest=$(for file in "-$runs" /boot/vmlinuz-[1-9]*; do echo "\${file#*-}"; done | grep -v '\*' | sort -V | tail -n 1)
  [ "\${newest:-$runs}" = "$runs" ] || echo "kernel $newest is installed, $runs runs"
  booted=$(sed -n 's/^btime //p' /proc/stat) written=$(stat -c %Z "/boot/vmlinuz-$runs" 2>/dev/null)
  [ "\${written:-0}" -le "$booted" ] || echo "kernel $runs was replaced since it was booted"
  set -- /lib/modules/*
  if [ -d "$1" ] && [ ! -d "/lib/modules/$runs" ]; then echo "the modules of kernel $runs are gone"; fi
}`;

/**
 * The function `stale_units`: prints the units, one a line, that run a program or library which was replaced or removed
 * on the disk. `init` stands for the first process. The kernel marks such mappings (deleted), proc(5).
 */
export const staleUnits = sh`stale_units() {
  grep -lE '^[^ ]+ r-xp .* /(usr|lib|lib32|lib64|bin|sbin|opt|nix)/.*\(deleted\)$' /proc/[0-9]*/maps 2>/dev/null |
    while IFS=/ read -r empty proc pid rest; do
      if [ "$pid" = 1 ]; then echo init && continue; fi
      # The innermost service of the process; services of users' own managers are left out.
      sed -n -e '/\/user@[0-9]*\.service/d' -e 's/^\(0:\|[0-9]*:name=systemd\):.*\/\([^/]*\.service\)\(\/.*\)\{0,1\}$/\2/p' "/proc/$pid/cgroup" 2>/dev/null
    done | sort -u
}`;
