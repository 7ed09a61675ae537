/** The type of a fact's value; `texts` are a list of texts. */
export type FactType = "text" | "integer" | "boolean" | "texts";

export interface FactDescription {
  /** Path below `facts`; `N` means each item of a list from 0, `NAME` each key of a map. */
  readonly name: string;
  readonly type: FactType;
  readonly about: string;
  readonly unit?: string;
  /** Where the node's sh reads it. */
  readonly source: string;
  /** The fact changes by itself, so comparisons of nodes ignore it. */
  readonly isVolatile?: true;
}

type Row = readonly [name: string, type: FactType, about: string, source: string, more?: Pick<FactDescription, "unit">];

function describe([name, type, about, source, more]: Row): FactDescription {
  return { name, type, about, source, ...more, ...(volatile.has(name) && { isVolatile: true }) };
}

const volatile = new Set([
  "bootId",
  "uptimeSeconds",
  "clock.epochSeconds",
  "memory.availableKiB",
  "swap.freeKiB",
  "root.freeKiB",
  "rootFree.KiB",
]);

const rows: readonly Row[] = [
  ["hostname", "text", "its own name", "/proc/sys/kernel/hostname"],
  ["machineId", "text", "the installation's id (machine-id(5))", "/etc/machine-id"],
  ["bootId", "text", "another one after each boot", "/proc/sys/kernel/random/boot_id"],
  ["uptimeSeconds", "integer", "since it booted", "/proc/uptime", { unit: "s" }],
  [
    "arch",
    "text",
    "as Debian names it: `amd64`, `arm64`, `armhf`, `i386`, `ppc64el`, `riscv64`, `s390x`",
    "`uname -m`",
  ],
  ["kernel.release", "text", "as `uname -r` has it", "/proc/sys/kernel/osrelease"],
  ["kernel.version", "text", "how and when it was built", "/proc/sys/kernel/version"],
  ["kernel.arch", "text", "as `uname -m` has it: `x86_64`, `aarch64`", "`uname -m`"],
  ["os.id", "text", "`debian`, `alpine`, `nixos` … (os-release(5))", "/etc/os-release"],
  ["os.version", "text", "VERSION_ID, a text also where it is a number", "/etc/os-release"],
  ["os.codename", "text", "`bookworm` …", "/etc/os-release"],
  ["os.name", "text", "for people", "/etc/os-release"],
  ["os.like", "text", "ids of what it is made from, blanks between", "/etc/os-release"],
  ["init", "text", "the init system: `systemd`, `openrc`, `runit`, `other`", "/run"],
  ["packageManager", "text", "`apt`, `dnf`, `yum`, `zypper`, `pacman`, `apk`, `opkg`; the first there is", "PATH"],
  ["nixos", "boolean", "is it NixOS?", "/etc/NIXOS"],
  ["nix", "boolean", "is there a Nix store?", "/nix/store"],
  ["security.selinux", "text", "`enforcing`, `permissive`, `disabled`", "/sys/fs/selinux"],
  ["security.apparmor", "boolean", "does the kernel use AppArmor?", "/sys/module/apparmor"],
  ["firmware", "text", "how it boots: `efi`, `other`", "/sys/firmware/efi"],
  ["hardware.vendor", "text", "the vendor of the machine", "/sys/class/dmi/id"],
  ["hardware.product", "text", "its model", "/sys/class/dmi/id, /proc/device-tree"],
  ["hardware.serial", "text", "its serial number; for root alone", "/sys/class/dmi/id"],
  ["virtualization.type", "text", "`none`, `vm`, `container`", "/run, /proc/cpuinfo, /sys/class/dmi/id"],
  [
    "virtualization.name",
    "text",
    "`qemu`, `vmware`, `oracle`, `microsoft`, `xen`, `amazon`, `google`, `other`; of a container what runs it: `systemd-nspawn`, `docker`, `podman`, `lxc` …",
    "as virtualization.type",
  ],
  ["cpu.count", "integer", "threads that the kernel uses", "/proc/cpuinfo"],
  ["cpu.cores", "integer", "cores of all sockets", "/proc/cpuinfo"],
  ["cpu.sockets", "integer", "chips", "/proc/cpuinfo"],
  ["cpu.vendor", "text", "`GenuineIntel`, `AuthenticAMD` …", "/proc/cpuinfo"],
  ["cpu.model", "text", "for people", "/proc/cpuinfo"],
  ["memory.totalKiB", "integer", "that the kernel has", "/proc/meminfo", { unit: "KiB" }],
  ["memory.availableKiB", "integer", "for new programs, without swapping", "/proc/meminfo", { unit: "KiB" }],
  ["swap.totalKiB", "integer", "0: there is none", "/proc/meminfo", { unit: "KiB" }],
  ["swap.freeKiB", "integer", "not used", "/proc/meminfo", { unit: "KiB" }],
  ["clock.epochSeconds", "integer", "its clock, since 1970 in UTC", "`date`", { unit: "s" }],
  ["clock.utcOffset", "text", "of its local time: `+0100`", "`date`"],
  ["clock.timeZone", "text", "`Europe/Berlin` …", "/etc/localtime, /etc/timezone"],
  ["root.device", "text", "the device of the root file system", "/proc/mounts"],
  ["root.filesystem", "text", "its type: `ext4` …", "/proc/mounts"],
  ["root.totalKiB", "integer", "its size", "`df`", { unit: "KiB" }],
  ["root.freeKiB", "integer", "free there, for users other than root", "`df`", { unit: "KiB" }],
  ["rootFree.KiB", "integer", "the former name of root.freeKiB", "`df`", { unit: "KiB" }],
  ["network.interface", "text", "of the default route, else the first one that is not `lo`", "/proc/net/route"],
  ["network.gateway", "text", "of the IPv4 default route", "/proc/net/route"],
  ["network.gateway6", "text", "of the IPv6 default route", "/proc/net/ipv6_route"],
  ["network.addresses", "texts", "IPv4, without `lo`; those of network.interface first", "`ip`"],
  ["network.addresses6", "texts", "IPv6, without `lo` and link-local ones", "`ip`"],
  ["network.nameservers", "texts", "addresses", "/etc/resolv.conf"],
  ["network.search", "texts", "domains that are tried", "/etc/resolv.conf"],
  ["network.interfaces.NAME.name", "text", "the same as NAME", "/sys/class/net"],
  ["network.interfaces.NAME.mac", "text", "its hardware address", "/sys/class/net"],
  ["network.interfaces.NAME.mtu", "integer", "bytes in a packet", "/sys/class/net", { unit: "bytes" }],
  ["network.interfaces.NAME.state", "text", "`up`, `down`, `unknown` …", "/sys/class/net"],
  ["network.interfaces.NAME.physical", "boolean", "is there a device behind it?", "/sys/class/net"],
  ["network.interfaces.NAME.addresses", "texts", "IPv4 with prefix: `192.0.2.11/24`", "`ip`"],
  ["network.interfaces.NAME.addresses6", "texts", "IPv6 with prefix", "`ip`"],
  ["network.routes.N.destination", "text", "IPv4 with prefix: `0.0.0.0/0`", "/proc/net/route"],
  ["network.routes.N.gateway", "text", "null: on the link", "/proc/net/route"],
  ["network.routes.N.interface", "text", "its name", "/proc/net/route"],
  ["network.routes.N.metric", "integer", "the lowest counts", "/proc/net/route"],
  ["disks.N.name", "text", "the kernel's: `sda`; may be another one after a boot", "/sys/block"],
  ["disks.N.bytes", "integer", "its size", "/sys/block", { unit: "bytes" }],
  ["disks.N.serial", "text", "as the roster's `serial`", "/sys/block, udev"],
  ["disks.N.wwn", "text", "as the roster's `wwn`", "udev, /sys/block"],
  ["disks.N.model", "text", "as the roster's `model`", "/sys/block, udev"],
  ["disks.N.type", "text", "`disk`, `loop`, `raid` (md), `mapped` (LVM, LUKS)", "its name"],
  ["disks.N.rotational", "boolean", "does it turn?", "/sys/block"],
  ["disks.N.removable", "boolean", "can its medium be taken out?", "/sys/block"],
  ["disks.N.readOnly", "boolean", "is it write-protected?", "/sys/block"],
  [
    "disks.N.contents",
    "text",
    "the content at its beginning, as blkid(8) names it: `gpt`, `dos`, `ext4`, `LVM2_member`, `crypto_LUKS`, `linux_raid_member`, `zfs_member` …; `partitions`: only these are seen; null: nothing that is known",
    "udev, else `blkid`",
  ],
  ["partitions.N.name", "text", "`sda1`", "/sys/block"],
  ["partitions.N.disk", "text", "`sda`", "/sys/block"],
  ["partitions.N.bytes", "integer", "its size", "/sys/block", { unit: "bytes" }],
  ["partitions.N.contents", "text", "as of disks", "udev, else `blkid`"],
  ["partitions.N.uuid", "text", "of what is in it", "udev, else `blkid`"],
  ["partitions.N.label", "text", "of what is in it", "udev, else `blkid`"],
];

/** Every fact (docs/facts.md); those of a list are in the order of the columns in facts.sh. */
export const factCatalogue: readonly FactDescription[] = rows.map(describe);
