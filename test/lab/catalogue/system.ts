import type { Sample } from "#support/sample.ts";

/**
 * Settings of the system. Left out: clock.synchronized, as no time service starts in a container; swap.managed, as a container sees its host's swap,
 * and takes none in use.
 */
export const samples: readonly Sample[] = [
  {
    id: "sysctl.set",
    module: "sysctl.set",
    args: { values: { "net.ipv4.ip_forward": 1, "net/ipv4/conf/lo/rp_filter": 2 }, file: "/etc/sysctl.d/60-lab.conf" },
    busybox: "converges",
    drift: {
      by: "echo 0 >/proc/sys/net/ipv4/ip_forward; echo '# nothing' >/etc/sysctl.d/60-lab.conf",
      finds: { "net.ipv4.ip_forward": "0 now, not set at boot", file: /^sha256:/ },
    },
    refusal: {
      args: { name: "net.ipv4.ip_forward", value: 1 },
      code: "SYSCTL_OVERRIDDEN",
      before: "echo 'net/ipv4/ip_forward = 0' >/etc/sysctl.d/90-late.conf",
      after: "rm /etc/sysctl.d/90-late.conf",
    },
  },
  {
    id: "sysctl.set one key",
    module: "sysctl.set",
    args: { name: "net.ipv4.tcp_rmem", value: "4096 131072 4194304" },
    busybox: "converges",
    drift: {
      by: "echo 4096 87380 4194304 >/proc/sys/net/ipv4/tcp_rmem",
      finds: { "net.ipv4.tcp_rmem": "4096 87380 4194304 now, 4096 131072 4194304 at boot" },
    },
    // Its host's kernel is read-only for a container.
    refusal: { args: { name: "vm.swappiness", value: 17 }, code: "SYSCTL_REFUSED" },
  },
  {
    // What a kernel has built in counts as loaded: of a container's kernel, its host's, no file tells.
    id: "kernel_module.loaded",
    module: "kernel_module.loaded",
    args: { name: "loop", options: { max_part: 7 } },
    busybox: "converges",
    before:
      "mkdir -p /lib/modules/$(uname -r) && echo kernel/drivers/block/loop.ko >/lib/modules/$(uname -r)/modules.builtin",
    drift: {
      by: "rm /etc/modules-load.d/kcore-loop.conf; echo options loop max_part=3 >/etc/modprobe.d/kcore-loop.conf",
      finds: { atBoot: "absent", options: "max_part=3" },
    },
    refusal: {
      args: { name: "kcore_none" },
      code: "KERNEL_MODULE_REFUSED",
      before: "[ -e /sbin/modprobe ] || ln -s /bin/true /sbin/modprobe",
      after: '[ ! -L /sbin/modprobe ] || [ "$(readlink /sbin/modprobe)" != /bin/true ] || rm /sbin/modprobe',
    },
  },
  {
    id: "hostname.set",
    module: "hostname.set",
    args: { name: "lab.example.org", pretty: "A lab's node", hosts: true },
    busybox: "converges",
    drift: {
      by: "hostname other && echo other >/etc/hostname && sed -i /127.0.1.1/d /etc/hosts",
      finds: { static: "other", live: "other", hosts: "absent" },
    },
    refusal: {
      args: { name: "lab" },
      code: "FILE_IN_THE_WAY",
      before: "mv /etc/hostname /etc/hostname.was && mkdir /etc/hostname",
      after: "rmdir /etc/hostname && mv /etc/hostname.was /etc/hostname",
    },
  },
  {
    id: "timezone.set",
    module: "timezone.set",
    args: { zone: "Europe/Berlin" },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "tzdata" },
    drift: {
      by: "ln -sf /usr/share/zoneinfo/Asia/Tokyo /etc/localtime",
      finds: { zone: "Asia/Tokyo (/etc/localtime), Europe/Berlin (/etc/timezone)" },
    },
    refusal: { args: { zone: "Europe/Berlyn" }, code: "TIMEZONE_UNKNOWN" },
  },
  {
    id: "locale.set",
    module: "locale.set",
    args: { locale: "C.UTF-8", categories: { LC_TIME: "C" } },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "locales" },
    drift: {
      by: "printf 'LANG=C\\nLC_ALL=POSIX\\n' >/etc/default/locale",
      finds: { LANG: "C", LC_TIME: "unset", LC_ALL: "POSIX" },
    },
    // Nothing serves the package locales to the lab's nodes.
    refusal: { args: { locale: "de_DE.UTF-8" }, code: "TOOL_MISSING" },
  },
  {
    id: "limits.set",
    module: "limits.set",
    args: { name: "60-lab", limits: [{ domain: "@adm", item: "nofile", value: 65_536 }] },
    busybox: "converges",
    drift: {
      by: "chmod 600 /etc/security/limits.d/60-lab.conf && echo >>/etc/security/limits.d/60-lab.conf",
      finds: { content: /^sha256:/, mode: "0600" },
    },
    refusal: {
      args: { name: "61-lab", limits: [{ domain: "*", item: "core", value: 0 }] },
      code: "FILE_IN_THE_WAY",
      before: "mkdir /etc/security/limits.d/61-lab.conf",
      after: "rmdir /etc/security/limits.d/61-lab.conf",
    },
  },
];
