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
        { name: "lvm", size: "48M", type: "lvm" },
        { name: "raid", size: "32M", type: "raid" },
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
  {
    id: "disk.partitioned raid",
    module: "disk.partitioned",
    helps: true,
    args: { disk: disk(1), partitions: [{ name: "raid", size: "32M", type: "raid" }] },
  },
  {
    id: "md.array",
    module: "md.array",
    args: { name: "pair", disks: [disk(0), disk(1)], partition: "raid" },
    drift: {
      by: `mdadm --wait /dev/md/pair; mdadm -q --manage /dev/md/pair --fail $(readlink -f ${device(1, 1)}) && mdadm -q /dev/md/pair --remove failed`,
      finds: { "member v1-disk1": "not in it" },
    },
    refusal: { args: { name: "pair", level: 0, disks: [disk(0), disk(1)], partition: "raid" }, code: "ARRAY_DIFFERS" },
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
];
