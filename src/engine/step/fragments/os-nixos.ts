import { sh, type Sh } from "../sh.ts";
import { liveFunctions, judgeAccess, judgeMachine } from "./os-debian.ts";

/** Refuses a live system that cannot install NixOS, or whose machine could not be reached afterwards. */
export function judgeNixos(user: string): Sh {
  return sh`${judgeMachine("NixOS")}
for tool in nixos-install nixos-generate-config; do
  have "$tool" || refuse TOOL_MISSING "$tool is not on this node: boot it from an image of the NixOS installer"
done
${judgeAccess(user)}`;
}

/** Reports facts about the live system (os.live), or refuses; needs `disk`. */
export function reportLive(user: string): Sh {
  return sh`${liveFunctions}
${judgeNixos(user)}
device=$disk
for link in /dev/disk/by-id/*; do
  [ "$(readlink -f "$link")" != "$disk" ] || { device=$link && break; }
done
fact device "$device"
fact network "$(for card in $cards; do echo "[Card $card]" && network_of "$card"; done)"
fact hostKeys "$(ls /etc/ssh/ssh_host_*_key)"
lines_of() { keys_of "$1" '' | sed -e 's/^[[:space:]]*//' -e '/^#/d' -e '/^$/d' | sort -u; }
fact rootKeys "$(lines_of root)"
fact userKeys "$(lines_of ${user})"
read -r booted </proc/cmdline
fact consoles "$(for word in $booted; do case $word in console=*[!A-Za-z0-9,]*) ;; console=*) echo "\${word#console=}" ;; esac; done)"
fact release "$(sed -n 's/^VERSION_ID="\{0,1\}\([0-9][0-9.]*\).*/\1/p' /etc/os-release)"
show_hardware() { nixos-generate-config --no-filesystems --show-hardware-config; }
hardware=$(show_hardware 2>/dev/null) || { show_hardware >/dev/null; exit 1; }
fact hardware "$hardware"`;
}

/** The function `put_flake PATH BLOB`: writes a file of the flake below `$K_TMP/flake`. */
export const putFlake = sh`put_flake() {
  mkdir -p "$K_TMP/flake/$(dirname "$1")" && cat <"$2" >"$K_TMP/flake/$1" || exit 1
}`;

/**
 * Copies this machine's host keys and the flake from `$K_TMP/flake` to the target at `$t`, before NixOS is built there.
 */
export const copyToNixos = sh`note "its host keys and its flake"
mkdir -p "$t/etc/ssh" && chmod 755 "$t" "$t/etc" "$t/etc/ssh" || exit 1
cp -p /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub "$t/etc/ssh/" || exit 1
rm -rf "$t/etc/nixos" && cp -R "$K_TMP/flake" "$t/etc/nixos" && chmod -R u=rwX,go=rX "$t/etc/nixos" || exit 1`;

/** The arguments of nixos-install besides the flake. */
export interface Installation {
  /** `nixosConfigurations.NAME` of the flake. */
  readonly name: string;
  /** A flake that replaces the input nixpkgs; empty: the flake's own input. */
  readonly nixpkgs: string;
  /** Disables substituters: the live system's store has all paths. */
  readonly offline: boolean;
}

/** Runs nixos-install(8), reports its stages as progress, and refuses with its last lines if it fails. */
export function runInstaller({ name, nixpkgs, offline }: Installation): Sh {
  const words = [
    "--no-root-passwd",
    "--no-channel-copy",
    ...(nixpkgs === "" ? [] : ["--override-input", "nixpkgs", nixpkgs]),
    ...(offline ? ["--option", "substituters", ""] : []),
  ];
  return sh`{ nixos-install --root "$t" --flake "path:$t/etc/nixos#"${name} ${words} </dev/null 2>&1 || echo failed >"$K_TMP/failed"; } | {
  copied=0
  while IFS= read -r line; do
    printf '%s\n' "$line"
    printf '%s\n' "$line" >>"$K_TMP/installer"
    case $line in
      "building the flake"*) note "nixos-install: building the system" ;;
      "installing the boot loader"*) note "nixos-install: installing the boot loader" ;;
      "copying path "*)
        copied=$((copied + 1))
        [ $((copied % 100)) -ne 0 ] || note "nixos-install: $copied paths copied"
        ;;
    esac
  done
}
[ ! -e "$K_TMP/failed" ] || refuse NIXOS_INSTALL_FAILED "nixos-install failed$K_NL$(tail -n 20 "$K_TMP/installer")"`;
}

/**
 * Adds a UEFI boot entry for the disk, before the entry of the present medium, since NixOS's GRUB adds no entry. Needs
 * `disk` and `esp_name`; `guid` is the PARTUUID of the EFI system partition.
 */
export function bootDiskFirst(guid: string): Sh {
  return sh`if [ -d /sys/firmware/efi/efivars ] && have efibootmgr && ! efibootmgr -v 2>/dev/null | grep -qi ${guid}; then
  efibootmgr -c -d "$disk" -p "$(cat "/sys/class/block/$esp_name/partition")" -L NixOS -l '\\EFI\\BOOT\\BOOTX64.EFI' >"$K_TMP/loader" 2>&1 ||
    note "the firmware takes no entry: it has to be told to boot from this disk: $(tail -n 1 "$K_TMP/loader")"
fi`;
}
