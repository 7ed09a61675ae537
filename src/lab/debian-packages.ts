/** The Debian release of the nodes. */
export const suite = "bookworm";

/** The commands that the lab needs on this machine, with their packages; only missing packages are installed. */
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

/** The commands that virtual machines need besides. */
export const vmHostPackages: Readonly<Record<string, string>> = {
  "qemu-system-x86_64": "qemu-system-x86",
  "qemu-img": "qemu-utils",
};

/** The commands that a virtual machine's TPM needs besides. */
export const tpmHostPackages: Readonly<Record<string, string>> = { swtpm: "swtpm" };

/** A Debian node's packages besides debootstrap's minimum: the packages of every Debian server, and a few more. */
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
  "gdisk", // its sgdisk runs behind the lab's table-tool
  "e2fsprogs",
  "openssl",
  "ca-certificates",
];

/** A virtual machine's packages besides; in its image, because an emulated processor takes minutes to install them. */
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

/** The packages of the smallest node, with the libraries of Debian's dropbear. */
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
 * The packages of the lab's own repository, which also has the dependencies that a node lacks. Nodes reach no
 * other repository. Each list is resolved by itself, because Debian's two time daemons exclude each other.
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
  ["nftables"], // firewall.rules, also rules that lock kcore out, which the node takes back
  ["cron", "logrotate"], // cron.managed, logrotate.managed
  ["tree", "hello"], // small packages for tests of package.installed
];
