/** Packages to install for the stand-in: a default NixOS has them, a Debian node of the lab does not. */
export const packages = ["curl", "lvm2", "nix-bin"];

/** Files of the default configuration, without desktop and with OpenSSH; each becomes a link if the node has it. */
const made =
  `fstab hostname hosts issue locale.conf login.defs nsswitch.conf os-release profile modules-load.d/nixos.conf
  modprobe.d/nixos.conf nix/nix.conf pam.d ssh/ssh_config ssh/sshd_config ssl/certs/ca-certificates.crt
  ssl/certs/ca-bundle.crt sysctl.d/60-nixos.conf systemd/journald.conf systemd/logind.conf systemd/system
  systemd/user tmpfiles.d udev/rules.d zoneinfo`.split(/\s+/);

/** Debian's programs that a default NixOS lacks. It has useradd and its like, since users.mutableUsers is true. */
const gone = `apt apt-cache apt-get apt-key apt-mark debconf deb-systemd-helper dpkg dpkg-query dpkg-divert
  dpkg-statoverride locale-gen update-ca-certificates update-initramfs update-locale cron crontab cryptsetup gpg
  gpgv logrotate mdadm netplan nft openssl parted sgdisk adduser addgroup debootstrap grub-install mkfs.xfs
  smartctl zpool zfs`.split(/\s+/);

/**
 * A sh text that makes a Debian node of the lab look like NixOS to a step. Generated files under /etc become links by way of /etc/static into
 * a read-only /nix/store (nixos/modules/system/etc); accounts and the machine's id stay files. Programs that a default NixOS lacks are removed.
 */
export const standInForNixOs = `set -u
store=/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-etc/etc
mkdir -p $store /etc/nix /etc/ssl/certs /etc/modules-load.d /etc/modprobe.d /etc/sysctl.d
ln -s $store /etc/static
echo 'kernel.kptr_restrict = 1' >/etc/sysctl.d/60-nixos.conf
for name in modules-load.d/nixos.conf modprobe.d/nixos.conf nix/nix.conf locale.conf ssl/certs/ca-certificates.crt ssl/certs/ca-bundle.crt; do
  [ -e /etc/$name ] || : >/etc/$name
done
rm -f /etc/os-release && printf 'ID=nixos\\nNAME=NixOS\\nVERSION_ID="25.05"\\n' >/etc/os-release
cp -r /usr/share/zoneinfo /etc/zoneinfo
for name in ${made.join(" ")}; do
  [ -e /etc/$name ] || continue
  mkdir -p "$(dirname $store/$name)" && mv /etc/$name $store/$name && ln -s /etc/static/$name /etc/$name || exit
done
ln -sfn /etc/zoneinfo/UTC /etc/localtime
for name in ${gone.join(" ")}; do rm -f /bin/$name /sbin/$name /usr/bin/$name /usr/sbin/$name /usr/local/sbin/$name; done
rm -rf /etc/apt /etc/default /var/lib/dpkg /etc/sudoers.d /etc/cron.d /etc/logrotate.d /etc/security/limits.d
mount --bind /nix/store /nix/store && mount -o remount,ro,bind /nix/store`;
