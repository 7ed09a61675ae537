import { sh, type Sh } from "../sh.ts";

/** Refuses a machine that kcore cannot install Debian on, or that would not be reachable after a boot from its own disk. */
export function judgeLive({ user, authorizedKeys }: LoginAccess): Sh {
  return sh`${judgeMachine("Debian")}
case $(tar --version 2>/dev/null) in *GNU*) ;; *) refuse TOOL_MISSING 'GNU tar is not on this node; package tar has it' ;; esac
${judgeAccess(user, authorizedKeys)}`;
}

/** Refuses a machine whose architecture kcore does not install. */
export function judgeMachine(system: "Debian" | "NixOS"): Sh {
  return sh`[ "$(uname -m)" = x86_64 ] || refuse LIVE_UNSUITED ${`kcore installs ${system} on x86_64 machines only, and this one is `}"$(uname -m)"`;
}

/**
 * Refuses a live system without host keys, without a network card that has an address, or without a key for the user.
 * `authorizedKeys`: the step's own keys; undefined if the module has no such argument.
 */
export function judgeAccess(user: string, authorizedKeys?: readonly string[]): Sh {
  return sh`set -- /etc/ssh/ssh_host_*_key
[ -s "$1" ] || refuse LIVE_UNSUITED "there are no host keys of OpenSSH in /etc/ssh, and the installed system shall be known by those of the live one"
cards=$(way_out)
[ -n "$cards" ] || refuse LIVE_UNSUITED "no network card of this machine has an address of its own (bonds, VLANs and bridges are not carried over)$K_NL$(ip -o addr 2>&1)"
keys_of ${user} ${keyLines(authorizedKeys ?? [])} | grep -q . ||
  refuse LIVE_UNSUITED ${`no user could log in to the installed system: ${user} has no authorized keys here${authorizedKeys ? ", and the step names none" : ""}`}`;
}

export function keyLines(keys: readonly string[]): string {
  return keys.map((key) => `${key}\n`).join("");
}

/**
 * `keys_of USER LINES`: prints the user's authorized keys on the live system (also from NixOS's own folder), and LINES.
 */
const keysOf = sh`keys_of() {
  # Unlike cat, grep ends an unterminated last line.
  grep -h '' "$(awk -F: -v who="$1" '$1 == who { print $6 }' /etc/passwd)/.ssh/authorized_keys" "/etc/ssh/authorized_keys.d/$1" 2>/dev/null
  printf %s "$2"
}`;

/**
 * Functions for texts over a live system. `way_out` prints the cards with a global address. `network_of CARD` prints a
 * systemd.network(5) file that keeps the card's addresses, routes and name servers. Cards are matched by their hardware
 * addresses: names differ between systems.
 */
export const liveFunctions = sh`${keysOf}
way_out() {
  for card in /sys/class/net/*; do
    card=\${card##*/}
    [ -e "/sys/class/net/$card/device" ] && ip -o addr show dev "$card" scope global | grep -q . && echo "$card"
  done
}
network_of() {
  echo "[Match]"
  echo "MACAddress=$(cat "/sys/class/net/$1/address")"
  echo "Type=ether"
  echo "[Network]"
  ip -o addr show dev "$1" scope global | while read -r number card family address rest; do
    case "$family $rest" in
      "inet "*dynamic*) echo DHCP=ipv4 ;;
      # The router announces these.
      "inet6 "*dynamic* | "inet6 "*temporary*) ;;
      *) echo "Address=$address" ;;
    esac
  done
  ip route show default dev "$1" | while read -r word via gateway rest; do
    case "$via $rest" in "via "*"proto dhcp"*) ;; "via "*) echo "Gateway=$gateway" ;; esac
  done
  ip -6 route show default dev "$1" 2>/dev/null | while read -r word via gateway rest; do
    case "$via $rest" in "via "*"proto ra"*) ;; "via "*) echo "Gateway=$gateway" ;; esac
  done
  sed -n 's/^nameserver[[:space:]][[:space:]]*\([^[:space:]]*\).*/\1/p' /run/systemd/resolve/resolv.conf /etc/resolv.conf 2>/dev/null |
    grep -v -e '^127\.' -e '^::1$' | awk '!seen[$0]++ { print "DNS=" $0 }'
}`;

/**
 * Writes this machine's names, keys, network and package sources to the new system, which is mounted at `$t`. `$device`,
 * `$boot` (if not empty) and `$esp` are its partitions.
 */
export function configureDebian({ hostname, user, authorizedKeys }: LoginAccess & { readonly hostname: string }): Sh {
  return sh`note "its name, keys and network"
printf 'UUID=%s / ext4 rw,noatime 0 1\nUUID=%s /boot/efi vfat umask=0077,nofail 0 2\n' \
  "$(blkid -p -o value -s UUID "$device")" "$(blkid -p -o value -s UUID "$esp")" >"$t/etc/fstab" || exit 1
[ -z "$boot" ] || printf 'UUID=%s /boot ext4 rw,noatime,nofail 0 2\n' "$(blkid -p -o value -s UUID "$boot")" >>"$t/etc/fstab" || exit 1
echo ${hostname} >"$t/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost ip6-loopback\n' ${hostname} >"$t/etc/hosts"
tr -d - </proc/sys/kernel/random/uuid >"$t/etc/machine-id"
cp -p /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub "$t/etc/ssh/" || exit 1
# Users who may log in to the live system may log in to the new one.
user=${user}
if [ "$user" != root ] && ! grep -q "^$user:" "$t/etc/passwd"; then
  chroot "$t" useradd -m -s /bin/bash "$user" || exit 1
  echo "$user ALL=(ALL:ALL) NOPASSWD: ALL" >"$t/etc/sudoers.d/kcore-$user" && chmod 440 "$t/etc/sudoers.d/kcore-$user" || exit 1
fi
for who in root "$user"; do
  home=$(awk -F: -v who="$who" '$1 == who { print $6 }' "$t/etc/passwd") || exit 1
  mkdir -p "$t$home/.ssh"
  keys_of "$who" ${keyLines(authorizedKeys)} | sort -u >"$t$home/.ssh/authorized_keys"
  chmod 700 "$t$home/.ssh" && chmod 600 "$t$home/.ssh/authorized_keys" && chroot "$t" chown -R "$who:" "$home/.ssh" || exit 1
done
rm -f "$t"/etc/systemd/network/10-kcore-*
for card in $cards; do network_of "$card" >"$t/etc/systemd/network/10-kcore-$card.network" || exit 1; done
# The package sources of a live system of the same release work for this machine.
same() { sed -n "s/^$2=//p" "$1/etc/os-release" 2>/dev/null; }
if [ -n "$(same '' VERSION_CODENAME)" ] && [ "$(same '' VERSION_CODENAME)" = "$(same "$t" VERSION_CODENAME)" ]; then
  for file in sources.list sources.list.d keyrings trusted.gpg.d; do
    [ ! -e "/etc/apt/$file" ] || cp -R "/etc/apt/$file" "$t/etc/apt/" || exit 1
  done
fi`;
}

/** The user who may log in, and the keys for that user and root. */
export interface LoginAccess {
  readonly user: string;
  readonly authorizedKeys: readonly string[];
}

/**
 * Makes the initrd, if root is encrypted, and installs the boot loader for UEFI and BIOS. The first sector is written last, so
 * that the disk boots by BIOS only with a whole system. The kernel gets `parameters` and the live system's console= ones.
 */
export function bootLoader(parameters: readonly string[], isEncrypted: boolean): Sh {
  return sh`note "its boot loader"
words=${parameters.join(" ")}
read -r booted </proc/cmdline
# A shell reads the file with these words.
for word in $booted; do case $word in console=*[!A-Za-z0-9,]*) ;; console=*) words="$words $word" ;; esac; done
sed -i '/^GRUB_CMDLINE_LINUX=/d' "$t/etc/default/grub" && echo "GRUB_CMDLINE_LINUX=\"\${words# }\"" >>"$t/etc/default/grub" || exit 1
for place in dev proc sys; do
  mount --rbind "/$place" "$t/$place" && mount --make-rslave "$t/$place" || exit 1
done
in_target() { chroot "$t" "$@" >"$K_TMP/loader" 2>&1 || { cat "$K_TMP/loader" >&2 && exit 1; }; }
${
  isEncrypted
    ? sh`note "its initrd"
in_target update-initramfs -u -k all`
    : sh``
}
mkdir -p "$t/boot/grub"
in_target update-grub
in_target grub-install --target=x86_64-efi --efi-directory=/boot/efi --removable --no-nvram
if [ -d /sys/firmware/efi/efivars ]; then
  # UEFI then boots the disk before the present medium.
  chroot "$t" grub-install --target=x86_64-efi --efi-directory=/boot/efi --bootloader-id=debian >"$K_TMP/loader" 2>&1 ||
    note "the firmware takes no entry: it has to be told to boot from this disk: $(tail -n 1 "$K_TMP/loader")"
fi
sync
in_target grub-install --target=i386-pc "$disk"`;
}
