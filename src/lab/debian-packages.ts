/** The Debian release of the nodes. */
export const suite = "bookworm";

/** The lab's needs on this machine, as command → package: only missing packages are installed. */
export const hostPackages: Readonly<Record<string, string>> = {
  "systemd-nspawn": "systemd-container",
  debootstrap: "debootstrap",
  ssh: "openssh-client",
  "mkfs.ext4": "e2fsprogs",
  losetup: "mount",
  flock: "util-linux",
  partx: "util-linux",
  ip: "iproute2",
  perl: "perl-base",
};

/** The further needs of virtual machines. */
export const vmHostPackages: Readonly<Record<string, string>> = {
  "qemu-system-x86_64": "qemu-system-x86",
  "qemu-img": "qemu-utils",
};

/** The needs of a virtual machine's TPM. */
export const tpmHostPackages: Readonly<Record<string, string>> = { swtpm: "swtpm" };

/** A Debian node's packages besides debootstrap's minimum: those of every Debian server, and few more. */
export const imagePackages: readonly string[] = [
  "systemd", // the real init …
  "systemd-sysv",
  "libpam-systemd", // … with its login sessions
  "dbus",
  "udev",
  "openssh-server",
  "sudo", // users ops and opspw
  "iproute2",
  "iputils-ping",
  "procps",
  "kmod",
  "fdisk",
  "gdisk", // the lab's own partition helper stands before sgdisk
  "e2fsprogs",
  "openssl",
  "ca-certificates",
];

/** A virtual machine's further packages: an emulated processor takes minutes to install them. */
export const vmPackages: readonly string[] = [
  "lvm2",
  "thin-provisioning-tools",
  "cryptsetup-bin",
  "mdadm",
  "xfsprogs",
  "dosfstools",
  "systemd-timesyncd", // its clock is its own
  "tpm2-tools", // luks.opened by a TPM, for the libraries
];

/** The packages of the smallest node; the libraries are those that Debian's dropbear is linked to. */
export const busyboxPackages: readonly string[] = [
  "busybox-static",
  "dropbear-bin",
  "libc6",
  "libtomcrypt1",
  "libtommath1",
  "libcrypt1",
  "zlib1g",
  "libgmp10",
];

/** Packages that a node with Nix has besides. */
export const nixPackages: readonly string[] = ["nix-bin", "nix-setup-systemd"];

/**
 * The packages of the lab's own repository, with their dependencies that a node does not have. Nodes reach no
 * other repository. Each list is resolved by itself: Debian's two time daemons exclude each other.
 */
export const servedPackages: readonly (readonly string[])[] = [
  nixPackages, // nix.installed from Debian's packages
  ["xfsprogs", "dosfstools", "parted", "lvm2"], // filesystem.formatted, and what a disk may hold already
  ["chrony"], // preflight wants one time daemon …
  ["systemd-timesyncd"], // … or the other
  ["curl", "ca-certificates", "openssl"], // tests of TLS end points from a node
  ["tpm2-tools"], // luks.opened by a TPM, for the libraries
  ["ifupdown"], // network.interface, by each of the programs that Debian has for it
  ["network-manager"],
  ["nftables"], // a firewall that keeps us out, on trial; firewall.rules
  ["cron", "logrotate"], // cron.managed, logrotate.managed
  ["tree", "hello"], // small packages for tests of package.installed
];
