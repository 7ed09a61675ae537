import { luksUuid, mappingName, partitionGuid, type PartitionOf } from "../disk-names.ts";
import type { StepContext } from "../define.ts";
import { sh, type Sh } from "../sh.ts";
import { luksFolder } from "./luks.ts";
import { keyLines, type LoginAccess } from "./os-debian.ts";

/** The label of a container's header until it holds a bootable system. */
export const unfinishedLabel = "kcore-unfinished";

/** The initrd's port differs from the system's, because its host key does. */
export const unlockPort = 2222;

/** The path of the initrd's own host key, in OpenSSH's form. */
export function initrdHostKey(uuid: string): string {
  return `${luksFolder}/${uuid}.ssh`;
}

/** The UUID of the container on this partition. */
export function containerUuid(source: PartitionOf, context: StepContext): string {
  return luksUuid(partitionGuid(context, source));
}

/** Refuses a machine that no operator could unlock remotely. Follows `judgeLive`. */
export function judgeUnlock(access: LoginAccess): Sh {
  return sh`${unlockFunctions}
initrd_keys ${access.user} ${keyLines(access.authorizedKeys)} | grep -q . ||
  refuse LIVE_UNSUITED 'no operator could unlock the installed system: none of the authorized keys stands without options of its own'
[ -n "$(initrd_network)" ] || refuse LIVE_UNSUITED "the initrd could not be reached: no network card of this machine has an IPv4 address, which unlocking needs$K_NL$(ip -o addr 2>&1)"`;
}

/**
 * `initrd_keys USER LINES`: prints the keys that the initrd accepts, each for the unlock command alone. A key whose line
 * has options is left out, because their restrictions would be lost.
 * `initrd_network`: prints the network arguments of initramfs-tools(7) for the card of the IPv4 default route, else for
 * the first card with an IPv4 address; klibc's ipconfig supports only IPv4.
 */
export const unlockFunctions = sh`initrd_keys() {
  { keys_of root ''; keys_of "$1" "$2"; } | grep -E '^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) ' | sort -u |
    sed 's/^/no-port-forwarding,no-agent-forwarding,no-X11-forwarding,command="cryptroot-unlock" /'
}
mask_of() { awk -v bits="$1" 'BEGIN { for (i = 0; i < 4; i++) { n = bits - 8 * i; n = n > 8 ? 8 : n < 0 ? 0 : n; printf "%s%d", i ? "." : "", 256 - 2 ^ (8 - n) } }'; }
initrd_network() {
  for card in $(ip -4 route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p') $cards; do
    case " $(echo $cards) " in *" $card "*) ;; *) continue ;; esac
    ip -4 -o addr show dev "$card" scope global | head -n 1 | grep -q . || continue
    ip -4 -o addr show dev "$card" scope global | head -n 1 | {
      read -r number name family address rest
      case $rest in
        *dynamic*) echo IP=dhcp ;;
        *)
          gateway=$(ip -4 route show default dev "$card" | sed -n 's/^default via \([^ ]*\).*/\1/p' | head -n 1)
          echo "IP=\${address%/*}::$gateway:$(mask_of "\${address#*/}")::"
          ;;
      esac
    }
    echo "BOOTIF=01-$(tr : - <"/sys/class/net/$card/address")"
    break
  done
}`;

/** Configures the new system, mounted at `$t`, to open its own container, and to be unlocked remotely. */
export function configureUnlock(uuid: string, { user, authorizedKeys }: LoginAccess): Sh {
  const mapping = mappingName(uuid);
  return sh`note "the means to unlock it"
for part in share/initramfs-tools/hooks/cryptroot share/initramfs-tools/hooks/dropbear bin/dropbearconvert; do
  [ -e "$t/usr/$part" ] ||
    refuse TOOL_MISSING "the image has no /usr/$part: a system with an encrypted root needs cryptsetup-initramfs and dropbear-initramfs"
done
# The passphrase is asked at the console or over SSH: no key file gets into the initrd.
echo ${`${mapping} UUID=${uuid} none luks,initramfs`} >"$t/etc/crypttab"
mkdir -p "$t"${luksFolder} && chmod 0755 "$t/etc/kcore" && chmod 0700 "$t"${luksFolder} && cp -p ${luksFolder}/${uuid}.* "$t"${luksFolder}/ || exit 1
initrd=$t/etc/dropbear/initramfs
rm -f "$initrd"/dropbear_*_host_key
chroot "$t" dropbearconvert openssh dropbear ${initrdHostKey(uuid)} /etc/dropbear/initramfs/dropbear_ed25519_host_key >"$K_TMP/convert" 2>&1 ||
  { cat "$K_TMP/convert" >&2 && exit 1; }
chmod 600 "$initrd/dropbear_ed25519_host_key"
initrd_keys ${user} ${keyLines(authorizedKeys)} >"$initrd/authorized_keys" && chmod 600 "$initrd/authorized_keys" || exit 1
echo ${`DROPBEAR_OPTIONS="-p ${unlockPort} -s -j -k -I 300 -c cryptroot-unlock"`} >"$initrd/dropbear.conf"
initrd_network >"$t/etc/initramfs-tools/conf.d/kcore-unlock" || exit 1
# The initrd contains the host key, so only root may read it.
echo UMASK=0077 >>"$t/etc/initramfs-tools/conf.d/kcore-unlock"`;
}
