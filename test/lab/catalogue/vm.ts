import { generateKeyPairSync } from "node:crypto";
import type { Sample } from "#support/sample.ts";

/** What needs a kernel of its own. */
const disk = (number: number) => ({ serial: `v1-disk${number}` });
const device = (number: number, part: number): string => `/dev/disk/by-id/virtio-v1-disk${number}-part${part}`;
const { publicKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});

/** A time server at an address of its own, which leaves the clock alone; unpacked, as Debian has one time service installed. */
const server = "127.0.0.2";
const timeServer = `cd /srv && apt-get -q update && apt-get -q download chrony && dpkg -x chrony_*.deb chrony &&
mkdir -p /run/chrony && systemd-run -q --unit=sample-ntp /srv/chrony/usr/sbin/chronyd -x -d -u root \\
  'bindaddress ${server}' 'cmdport 0' 'allow' 'local stratum 5' 'pidfile /run/sample-ntp.pid'`;

export const samples: readonly Sample[] = [
  {
    id: "sysctl.set vm",
    module: "sysctl.set",
    args: { name: "vm.swappiness", value: 17 },
    drift: { by: "echo 60 >/proc/sys/vm/swappiness", finds: { "vm.swappiness": "60 now, 17 at boot" } },
  },
  {
    id: "kernel_module.loaded really",
    module: "kernel_module.loaded",
    args: { name: "dummy", options: { numdummies: 0 } },
    drift: {
      by: "modprobe -r dummy && rm /etc/modules-load.d/kcore-dummy.conf",
      finds: { now: "absent", atBoot: "absent" },
    },
    refusal: { args: { name: "kcore_none" }, code: "KERNEL_MODULE_REFUSED" },
  },
  {
    id: "hostname.set vm",
    module: "hostname.set",
    args: { name: "v1.example.org", hosts: true },
    drift: { by: "hostname other", finds: { live: "other" } },
  },
  {
    id: "clock.synchronized",
    module: "clock.synchronized",
    args: { servers: [server] },
    before: timeServer,
    drift: { by: "systemctl stop systemd-timesyncd", finds: { active: "inactive" } },
    refusal: { args: { service: "chrony" }, code: "TOOL_MISSING" },
  },
  {
    id: "swap.managed",
    module: "swap.managed",
    args: { state: "on", size: "32MiB" },
    drift: { by: "swapoff /swapfile", finds: { active: "no" } },
    refusal: { args: { state: "on", path: "/etc/hostname", size: "32MiB" }, code: "FILE_IN_THE_WAY" },
  },
  {
    id: "disk.partitioned vm",
    module: "disk.partitioned",
    helps: true,
    args: {
      disk: disk(0),
      partitions: [
        { name: "swap", size: "32M", type: "swap" },
        { name: "lvm", size: "64M", type: "lvm" },
      ],
    },
  },
  {
    id: "swap.enabled",
    module: "swap.enabled",
    args: { disk: disk(0), partition: "swap", priority: 5 },
    drift: { by: `swapoff ${device(0, 1)}`, finds: { active: "no" } },
    refusal: { args: { disk: disk(0), partition: "none" }, code: "PARTITION_NOT_FOUND" },
  },
  {
    id: "lvm.physical_volume vm",
    module: "lvm.physical_volume",
    helps: true,
    args: { disk: disk(0), partition: "lvm" },
  },
  {
    id: "lvm.volume_group vm",
    module: "lvm.volume_group",
    helps: true,
    args: { name: "vg_sample", disks: [disk(0)], partition: "lvm" },
  },
  {
    id: "lvm.logical_volume",
    module: "lvm.logical_volume",
    args: { vg: "vg_sample", name: "data", size: "32MiB" },
    drift: { by: "lvchange -q -a n vg_sample/data", finds: { active: /^(|inactive|absent)$/ } },
    refusal: { args: { vg: "vg_sample", name: "other", size: "1GiB" }, code: "LVM_NO_SPACE" },
  },
  ...[1, 2].map((number): Sample => ({
    id: `disk.partitioned raid ${number}`,
    module: "disk.partitioned",
    helps: true,
    args: { disk: disk(number), partitions: [{ name: "raid", size: "48M", type: "raid" }] },
  })),
  {
    id: "md.array",
    module: "md.array",
    args: { name: "pair", disks: [disk(1), disk(2)], partition: "raid" },
    drift: {
      by: `mdadm --wait /dev/md/pair; mdadm -q --manage /dev/md/pair --fail $(readlink -f ${device(2, 1)}) && mdadm -q /dev/md/pair --remove failed`,
      finds: { "member v1-disk2": "not in it" },
    },
    refusal: { args: { name: "pair", level: 0, disks: [disk(1), disk(2)], partition: "raid" }, code: "ARRAY_DIFFERS" },
  },
  {
    id: "luks.opened",
    module: "luks.opened",
    args: { array: "pair" },
    drift: { by: "sed -i '/^luks-/d' /etc/crypttab", finds: { crypttab: "absent" } },
    refusal: { args: { array: "none" }, code: "ARRAY_NOT_FOUND" },
  },
  {
    id: "luks.escrowed",
    module: "luks.escrowed",
    args: { publicKey },
    drift: { by: "rm /etc/kcore/luks/*.recovery", finds: { missing: /^[0-9a-f-]{36} $/ } },
  },
  {
    id: "disk.partitioned zfs",
    module: "disk.partitioned",
    helps: true,
    args: { disk: disk(3), partitions: [{ name: "zfs", type: "zfs" }] },
  },
  {
    id: "zfs.pool",
    module: "zfs.pool",
    args: { disks: [disk(3)], partition: "zfs", rootProperties: { compression: "lz4" } },
    drift: {
      by: "systemctl disable -q zfs-mount.service && zfs set compression=off tank0",
      finds: { boot: " zfs-mount.service", "root compression": "off" },
    },
    refusal: { args: { disks: [disk(3)], partition: "zfs", layout: "stripe", ashift: 9 }, code: "ZFS_POOL_DIFFERS" },
  },
  {
    id: "zfs.dataset",
    module: "zfs.dataset",
    args: { name: "data", mountpoint: "/srv/tank", properties: { recordsize: "1M" } },
    drift: { by: "zfs unmount tank0/data", finds: { mounted: "no" } },
    refusal: { args: { pool: "none0", name: "a" }, code: "ZFS_POOL_MISSING" },
  },
];
