import type { LabNode } from "#lab/lab.ts";
import { on } from "./deploy.ts";

/** Files that differ between installations: random, momentary, or a log of the installation itself. */
const varyingFiles = [
  "/etc/machine-id",
  "/etc/ssh/ssh_host_*",
  "/etc/kcore/*",
  "/var/lib/kcore/*",
  "/var/lib/dbus/machine-id",
  "/var/lib/systemd/*",
  "/var/lib/apt/*",
  "/var/lib/dpkg/*-old",
  "/var/cache/*",
  "/var/log/*",
  "/var/tmp/*",
  "/tmp/*",
  "/root/.*",
  "/boot/grub/grubenv",
  "/nix/var/*",
  "/swap*",
];

/** Lines that only one of the two has, marked `-` for the first and `+` for the other. */
export function differences(one: readonly string[], other: readonly string[]): readonly string[] {
  const only = (from: readonly string[], known: ReadonlySet<string>, mark: string): string[] =>
    from.filter((line) => !known.has(line)).map((line) => mark + line);
  return [...only(one, new Set(other), "- "), ...only(other, new Set(one), "+ ")];
}

/**
 * The result of an installation, which must not depend on its course: tables, filesystems, packages, units, and each file's kind, mode, owner
 * and contents.
 */
export async function installedState(node: LabNode): Promise<readonly string[]> {
  const excluded = varyingFiles.map((path) => `-not -path '${path}'`).join(" ");
  const disks = `for d in /dev/disk/by-id/virtio-${node.name}-disk?; do sfdisk -d $d | grep -v '^device'; done | sed 's#^/dev/...##'`;
  const text = await on(
    node,
    `${disks}; lsblk -nro FSTYPE,LABEL,UUID,PARTLABEL,MOUNTPOINT | sort
     dpkg-query -W -f '\${Package} \${Version} \${Status}\\n'
     systemctl list-unit-files --no-legend | grep -v ' transient' | sed 's/  */ /g'; systemctl list-units --failed --no-legend
     cat /etc/fstab; getent passwd; getent group
     find / -xdev ${excluded} -printf '%p %y %m %u:%g %l\\n' | sort
     find /etc /boot /usr/local /opt /var/lib -xdev -type f ${excluded} -print0 | sort -z | xargs -0 md5sum
     dpkg --verify`,
    600_000,
  );
  return text.split("\n");
}
